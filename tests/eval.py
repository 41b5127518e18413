"""The program's comparison of methods, judged by rows whose outcome the constraint alone decides.

    python tests/eval.py PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

CLASSES = {"awareness", "selection", "format", "key", "value"}


def run(*arguments, data=None, status=0):
    """Runs eval; what it prints, its JSON and its plot."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [sys.argv[1], "eval", *arguments, "--json", str(folder / "out.json"),
                   "--plot", str(folder / "out.svg")]
        if data is not None:
            (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
            command += ["--data", str(folder / "rows.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
        assert done.returncode == status, (command, done.returncode, done.stderr)
        if status != 0:
            return done.stderr
        plot = xml.etree.ElementTree.parse(folder / "out.svg").getroot()
        document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
        assert document["made_by"]["command"].split()[1] == "eval" and document["made_by"]["commit"], document
        methods = document["methods"] | ({"left_out": document["left_out"]} if document["left_out"] else {})
        return done.stdout, methods, " ".join(plot.itertext())


def only(document: dict, error: str, method: str = "constrained"):
    """All of a method's rows are of one class."""
    result = document[method]
    assert set(result["errors"]) == CLASSES
    for kind, share in result["errors"].items():
        assert share == (1 if kind == error else 0), (error, result)
    assert result["accuracy"] == (1 if error == "correct" else 0), (error, result)
    assert result["ci95"] == [result["accuracy"]] * 2, result


def tool(name: str, properties: dict) -> dict:
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


TOOLS = [tool("f", {"a": {"type": "string", "enum": ["q"]}}), tool("g", {})]


def dialogue(choice: str, calls: list, form: str = "python", tools: list = TOOLS) -> dict:
    return {"id": "own", "format": form, "choice": choice, "seen": True, "tools": tools,
            "messages": [{"role": "user", "content": "Please."}],
            "calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def test_classes():
    """A named tool of one enum value can be called in one way only."""
    for form in ("python", "hermes"):
        for choice, calls, error in (
                ("f", [("f", {"a": "q"})], "correct"), ("none", [], "correct"), ("g", [("g", {})], "correct"),
                ("none", [("g", {})], "awareness"), ("f", [], "awareness"),
                ("f", [("g", {})], "selection"), ("f", [("f", {"a": "q"})] * 2, "selection"),
                ("f", [("f", {})], "value"), ("f", [("f", {"a": "q", "b": 1})], "key"),
                ("f", [("f", {"a": "r"})], "value")):
            _, document, _ = run("--method", "constrained", data=[dialogue(choice, calls, form)] * 2)
            only(document, error)
            assert document["constrained"]["samples"] == 2
    rows = [dialogue("f", [("f", {"a": "q"})])]
    only(run("--method", "tooldec-schema", "--max-tokens", "1", data=rows)[1], "format", "tooldec-schema")
    for method in ("constrained", "tool-decoding"):  # ends, or is refused where it cannot
        said = run("--method", method, "--oc", "1", "--max-tokens", "1", data=rows, status=2)
        assert "no row can be used" in said and "shortest" in said, said


def test_choice():
    """What is asked of all rows stands above what a row says."""
    for choice, error in (("none", "awareness"), ("required", "correct"), ("f", "correct"), ("auto", None)):
        row = dialogue("none" if choice != "none" else "f", [("f", {"a": "q"})], tools=TOOLS[:1])
        _, document, _ = run("--method", "constrained", "--choice", choice, data=[row])
        if error:
            only(document, error)
    said = run("--method", "constrained", "--choice", "h", data=[row], status=2)
    assert "no row can be used" in said and "h" in said, said


def test_format_and_white_space():
    """A format for all rows stands above a row's, and white space that may follow leaves less of a text forced."""
    rows, passes = [dialogue("f", [("f", {"a": "q"})])], []
    for white_space in ("0", "8"):
        with tempfile.TemporaryDirectory() as folder:
            answers = pathlib.Path(folder) / "answers.jsonl"
            _, document, _ = run("--method", "constrained", "--format", "hermes", "--whitespace", white_space, "--answers",
                                 str(answers), data=rows)
            answer = json.loads(answers.read_text(encoding="utf-8").splitlines()[1])
        assert answer["text"].startswith("<tool_call>"), answer
        passes.append(document["constrained"]["passes_per_sample"])
    assert passes[0] < passes[1], passes
    assert "hermes" in run("--format", "hermse", data=rows, status=2)


def test_shares():
    rows = [dialogue("f", [("f", {"a": "q"})])] * 7 + [dialogue("f", [("f", {"a": "r"})])] * 3
    text, document, _ = run("--method", "tool-decoding", "--oc", "1,2", data=rows)
    assert list(document) == ["tool-decoding-oc1", "tool-decoding-oc2"], document
    for result in document.values():
        assert abs(result["accuracy"] - 0.7) < 1e-9 and abs(result["errors"]["value"] - 0.3) < 1e-9, result
        low, high = result["ci95"]
        # The binomial law of 10 rows at 0.7 has its 2.5 % and 97.5 % points at 4 and 9.
        assert low in (0.4, 0.5) and high in (0.9, 1.0), result
    # A pair of equal methods: nothing is reduced, in any resample.
    assert document["tool-decoding-oc2"]["value_error_reduction"] == {
        "share": 0, "ci95": [0, 0], "mended": 0, "added": 0, "p": 1}, document
    assert "| 2 | 3 | 0.0 % | 0.0 to 0.0 % | 0 / 0 | 1.000 |" in text, text
    assert "| tool-decoding-oc1 | 10 | 70.0 % |" in text, text


def test_rows():
    """BFCL and API-Bank rows are read; what cannot be used is counted by reason."""
    question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Please."}]
    bfcl = {"id": "b", "category": "own_bfcl", "question": question, "functions": TOOLS}
    bad = tool("h", {"a": {"type": "array", "uniqueItems": True}})
    bank = {"id": "a", "level": 1, "input": "User: Please.\nGenerate API Request:\n", "call_python": "[f(a='1')]",
            "call_json": {"name": "f", "arguments": {"a": 1}},
            "apis": [{"name": "f", "description": "", "input_parameters": {"a": {"type": "int"}},
                      "json_schema": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}}]}
    typed = json.loads(json.dumps(bank))
    typed["apis"][0]["json_schema"]["properties"]["a"] = {"enum": ["1"]}
    text, document, _ = run("--method", "constrained", data=[bank, typed])
    only(document, "correct")
    text, document, _ = run(
        "--method", "constrained",
        data=[bank, dialogue("none", []), {**bfcl, "expects_call": False},
              {**bfcl, "expects_call": True, "answers": [{"g": {}}]},
              {**bfcl, "expects_call": True, "functions": [bad], "answers": [{"h": {"a": [[1]]}}]},
              {**bfcl, "expects_call": True}, {**bfcl, "expects_call": True, "call_json": None},
              {"id": "other", "x": 1}, {**dialogue("f", []), "messages": 1},
              {**dialogue("f", []), "messages": [{"role": "user", "content": "word " * 3000}]}])
    assert document["constrained"]["samples"] == 4 and document["left_out"] == 6, text
    assert {name: group["samples"] for name, group in document["constrained"]["groups"].items()} == {
        "API-Bank level 1": 1, "no call needed": 1, "own_bfcl": 2}, document
    for reason in ("1 row, unsupported_keyword", "2 rows, a call is expected, but not known which", "model's context",
                   "no row of a form that is known (other)"):
        assert reason in text, text


def test_methods():
    text, document, plot = run("--limit", "4", "--max-tokens", "50", "--oc", "1,4", "--jobs", "2")
    names = ["greedy", "beam", "self-consistency", "tooldec", "tooldec-schema", "constrained",
             "tool-decoding-oc1", "tool-decoding-oc4"]
    assert list(document) == names, document
    for name, result in document.items():
        assert result["samples"] == 4
        assert abs(result["accuracy"] + sum(result["errors"].values()) - 1) < 1e-9, result
        assert 0 <= result["ci95"][0] <= result["accuracy"] <= result["ci95"][1] <= 1, result
        assert result["seconds_per_sample"] > 0 and result["passes_per_sample"] > 1, result
        assert 0 < result["prompt_seconds_per_sample"] < result["seconds_per_sample"], result
        assert f"| {name} | 4 |" in text and name.split("-oc")[0] in plot, text
    assert "oc 4" in plot
    assert document["greedy"]["time_to_greedy"] == 1
    again = run("--limit", "3", "--max-tokens", "40", "--method", "sampling,self-consistency", "--seed", "3")[1]
    other = run("--limit", "3", "--max-tokens", "40", "--method", "sampling,self-consistency", "--seed", "3", "--jobs",
                "2")[1]
    for name in again:  # the same seed gives the same answers, however many threads
        for key in ("accuracy", "ci95", "errors", "passes_per_sample"):
            assert again[name][key] == other[name][key], (name, again, other)


def test_types_only():
    """A ToolDec of types writes a text of its own where the schema leaves one; the other one cannot."""
    row = dialogue("f", [("f", {"a": "q"})])
    _, document, _ = run("--method", "tooldec,tooldec-schema,constrained", data=[row])
    only(document, "correct", "tooldec-schema")
    only(document, "correct", "constrained")
    only(document, "value", "tooldec")


def test_name_prompts():
    """Names asked for by a prompt are chosen by it: other tools, but known ones, in calls that conform."""
    _, document, _ = run("--limit", "12", "--method", "tooldec,tooldec-prompted")
    plain, asked = document["tooldec"], document["tooldec-prompted"]
    assert asked["errors"]["selection"] != plain["errors"]["selection"], (plain, asked)
    assert asked["errors"]["format"] == plain["errors"]["format"] == 0, (plain, asked)


def test_repairs():
    """A name that no tool has becomes the one with its suffix; what each method wrote can be read."""
    tools = [tool("Tisch_buchen_II", {}), tool("qwx_weather_table", {})]
    row = dialogue("required", [("qwx_weather_table", {})], tools=tools)
    row["messages"][0]["content"] = "Please book a table at Luigi's for four people, outdoors."
    with tempfile.TemporaryDirectory() as folder:
        answers = pathlib.Path(folder) / "answers.jsonl"
        run("--method", "greedy,fuzzy-matching,backtrace", "--answers", str(answers), data=[row])
        lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()[1:]]
    texts = {line["method"]: line["text"] for line in lines}
    assert set(texts) == {"greedy", "fuzzy-matching", "backtrace"} and {line["id"] for line in lines} == {"own"}, lines
    name, arguments = texts["greedy"].split("(", 1)
    assert name[1:] not in ("Tisch_buchen_II", "qwx_weather_table") and name.endswith("_table"), texts
    assert texts["fuzzy-matching"] == "[qwx_weather_table(" + arguments, texts


def test_orders():
    """One order alone; the documented one is what one order always was."""
    many = pathlib.Path(__file__).parent.parent / "examples/data/tiny/heldout_many.jsonl"
    rows = [json.loads(line) for line in many.read_text(encoding="utf-8").splitlines()[:12]]
    text, document, _ = run("--method", "tool-decoding", "--oc", "1,3", "--order", "documented,reversed,shuffled",
                            data=rows)
    names = ["oc1", "oc3", "documented", "reversed", "shuffled"]
    assert list(document) == [f"tool-decoding-{name}" for name in names], document
    same = ("accuracy", "ci95", "errors", "passes_per_sample", "tokens_per_sample")
    one, documented, reverse = (document[f"tool-decoding-{name}"] for name in ("oc1", "documented", "reversed"))
    assert [one[key] for key in same] == [documented[key] for key in same], (one, documented)
    assert reverse["passes_per_sample"] != one["passes_per_sample"], "another order is another run"
    assert "| tool-decoding-shuffled | 12 |" in text, text


def test_resume():
    """A run that goes on asks what it has not, and ends as one that was never cut; a prefix changes no answer."""
    costs = ("seconds_per_sample", "prompt_seconds_per_sample", "time_to_greedy")
    def figures(document):
        return {name: {key: value for key, value in result.items() if key not in costs} for name, result in document.items()}
    with tempfile.TemporaryDirectory() as folder:
        path, kept = pathlib.Path(folder) / "answers.jsonl", pathlib.Path(folder) / "kept.jsonl"
        def command(file, *more):
            return ("--method", "greedy,constrained", "--max-tokens", "50", "--answers", str(file), *more)
        whole = run(*command(kept, "--limit", "5"))[1]
        run(*command(path, "--limit", "3"))
        settings, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        assert json.loads(settings)["max_tokens"] == 50 and len(lines) == 6, settings
        assert all(json.loads(line)["passes"] > 0 for line in lines), lines
        path.write_text(settings + "".join(lines[:5]) + lines[5][:20], encoding="utf-8")  # cut in the last answer
        assert figures(run(*command(path, "--limit", "5", "--resume"))[1]) == figures(whole)
        same = {line["id"] + line["method"]: line["text"] for line in map(json.loads, kept.read_text("utf-8").splitlines()[1:])}
        for file, more in ((path, ()), (pathlib.Path(folder) / "prefix.jsonl", ("--limit", "5", "--keep-prefix"))):
            if more:
                run(*command(file, *more))
            lines = list(map(json.loads, file.read_text("utf-8").splitlines()[1:]))
            assert {line["id"] + line["method"]: line["text"] for line in lines} == same and len(lines) == 10, lines
        told = path.read_text(encoding="utf-8").replace('"passes":', '"passes":1000', 1)
        path.write_text(told, encoding="utf-8")
        assert sum(result["passes_per_sample"] for result in run(*command(path, "--limit", "5", "--resume"))[1].values()) > 200
        assert "other settings" in run(*command(path, "--resume", "--seed", "2"), status=2)
        path.write_text(told + "{}\n", encoding="utf-8")
        assert "malformed_json" in run(*command(path, "--resume"), status=2)
    assert "--answers" in run("--resume", status=2)


def test_speculative():
    """Drafts change no answer; what earlier rows wrote is drafted for later ones."""
    tiny = str(pathlib.Path(__file__).parent.parent / "examples" / "data" / "tiny")
    passes = {}
    for drafts in (("lookup",), ("forced+suffix",), ("model", "--draft-model", tiny), ("eagle",), ("medusa",), ("all",)):
        text, document, _ = run("--limit", "8", "--method", "constrained,speculative", "--speculation", *drafts)
        plain, drafted = document["constrained"], document["speculative"]
        assert drafted["errors"] == plain["errors"] and drafted["accuracy"] == plain["accuracy"], text
        passes[drafts[0]] = drafted["passes_per_sample"]
        assert passes[drafts[0]] < plain["passes_per_sample"], text
    assert passes["model"] < passes["forced+suffix"] < passes["lookup"], passes
    assert passes["all"] < min(passes["eagle"], passes["medusa"]), passes
    assert "--speculation" in run("--method", "speculative", status=2)
    assert "--method speculative" in run("--method", "constrained", "--speculation", "lookup", status=2)
    assert "eagle3" in run("--method", "speculative", "--speculation", "eagle3", "--limit", "1", status=2)


def test_refusals():
    assert "invalid_option" in run("--method", "tool-decoding", "--order", "random", status=2)
    assert "invalid_option" in run("--method", "guessing", status=2)
    assert "invalid_option" in run("--method", "tool-decoding", "--oc", "0", status=2)
    for jobs in ("0", "-1", "1025"):
        assert "--jobs" in run("--jobs", jobs, status=2)
    assert "file_unreadable" in run("--data", "no-such-file", status=2)
    assert "no row can be used" in run("--method", "greedy", data=[{"id": "x"}], status=2)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: passed")
