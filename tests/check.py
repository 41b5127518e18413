"""`tooldecode check`: verdicts on texts whose conformance can be told by eye.

    python tests/check.py PROGRAM
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from random import Random

TINY = pathlib.Path(__file__).parent.parent / "examples/data/tiny"
PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name"], "additionalProperties": False}


def run(folder, rows, *arguments, format="json-schema", vocabulary=TINY, status=0):
    """The verdicts by id, and what is said on stderr."""
    path = folder / "rows.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    command = [sys.argv[1], "check", "--vocabulary", vocabulary, "--format", format, *arguments, path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8", timeout=100)
    assert done.returncode == status, (command, done.returncode, done.stderr)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({json.dumps(verdict["id"]) for verdict in verdicts}) == len(verdicts), verdicts
    return {verdict["id"]: verdict for verdict in verdicts}, done.stderr


def test_texts(folder):
    texts = {
        '{"name": "Ann", "age": 3}': None, '{"age":3,"name":"Ann"}': None, '{ "name" :\n"Ann" }': None,
        '{"age": 3}': 9, '{"name": "Ann", "age": null}': 23, '{"name": "Ann"': 14, ' {"name": "Ann"}': 0,
        '{"name": "Ann", "name": "Bo"}': 17, '{"name": "Ann"} ': 15, '{"name": "Ann", "other": 1}': 17}
    rows = [{"id": text, "schema": PERSON, "text": text} for text in texts]
    verdicts, report = run(folder, rows)
    assert list(verdicts) == list(texts)
    for text, error_at in texts.items():
        verdict = verdicts[text]
        assert "refused" not in verdict and verdict["accepted"] == (error_at is None), verdict
        assert verdict["error_at"] == error_at, verdict
        assert (verdict["expected"] is None) == (error_at is None), verdict
    assert verdicts['{"name": "Ann", "age": null}']["expected"] == "one of: a number of a certain form: next " \
        "one of the characters [\\-0-9]; white space"
    assert verdicts['{"age": 3}']["expected"].startswith("one of: a comma ','; inside a number"), verdicts
    assert f"{len(texts)} rows" in report and "3 accepted" in report, report
    fixed, _ = run(folder, rows, "--documented-order")
    assert [text for text in texts if fixed[text]["accepted"]] == [list(texts)[0], list(texts)[2]], fixed


def test_tests(folder):
    data = [({"name": "Ann"}, True), ({"age": 1}, False), ({"name": "Ann", "age": 1}, True), ({"name": 1}, False)]
    row = {"id": "person", "schema": PERSON, "tests": [{"valid": valid, "data": value} for value, valid in data]}
    wrong = {"id": "wrong", "schema": True, "tests": [{"valid": False, "data": 1}]}
    verdicts, report = run(folder, [row, wrong], "--timing")
    assert list(verdicts) == ["person#0", "person#1", "person#2", "person#3", "wrong#0"], verdicts
    for k, (_, valid) in enumerate(data):
        assert verdicts[f"person#{k}"]["accepted"] == valid, verdicts
        assert verdicts[f"person#{k}"]["build_us"] > 0, verdicts
        assert 1e6 < verdicts[f"person#{k}"]["peak_bytes"] < 1e9, verdicts
    assert "4 of 5 verdicts as the rows have them" in report, report


def test_refusals(folder):
    schemas = {"#/properties/a/uniqueItems: uniqueItems": {"properties": {"a": {"uniqueItems": True}}},
               "#/items/type: type": {"items": {"type": "thing"}},
               "#/pattern: pattern": {"type": "string", "pattern": "("},
               "#: unsatisfiable_schema": False}
    rows = [{"id": name, "schema": schema, "tests": [{"data": 1, "valid": True}, {"data": 2}]}
            for name, schema in schemas.items()]
    verdicts, report = run(folder, rows)
    assert len(verdicts) == 2 * len(schemas), verdicts
    for name in schemas:
        for k in range(2):
            verdict = verdicts[f"{name}#{k}"]
            assert verdict["refused"] == name and "accepted" not in verdict, verdict
    assert "8 under specifications that are refused" in report and "verdicts as" not in report, report


def test_bad_rows(folder):
    verdicts, report = run(folder, [{"id": "a", "text": "1"}, {"id": "b", "schema": True, "text": "1"},
                                    {"id": "c", "schema": True, "tests": [1]}], status=2)
    assert [verdicts[i]["accepted"] for i in "abc"] == [False, True, False], verdicts
    assert "malformed_document" in report, report


def test_beginnings(folder):
    texts = {'{"name": "A': True, '{"age": 1': True, '{"name": 1': False, "": True, '{"name": "Ann"}': True}
    rows = [{"id": text, "schema": PERSON, "text": text, "complete": False} for text in texts]
    verdicts, _ = run(folder, rows)
    assert {text: verdict["accepted"] for text, verdict in verdicts.items()} == texts, verdicts
    assert verdicts['{"name": 1']["error_at"] == 9, verdicts
    tests = [{"text": text, "complete": complete} for text in texts for complete in (False, True)]
    verdicts, _ = run(folder, [{"id": "b", "schema": PERSON, "tests": tests}])
    for k, (text, begun) in enumerate(texts.items()):
        assert verdicts[f"b#{2 * k}"]["accepted"] == begun, verdicts
        assert verdicts[f"b#{2 * k + 1}"]["accepted"] == text.endswith("}"), verdicts


def test_grammars(folder):
    sums = 'sum ::= sum "+" number | number\nnumber ::= [0-9]+ # digits'
    texts = {"1+23": None, "1+": 2, "+1": 0, "": 0, "1 + 2": 1, "7": None}
    rows = [{"id": text, "spec": sums, "root": "sum", "text": text} for text in texts]
    rows += [{"id": "begun", "spec": sums, "root": "sum", "text": "1+", "complete": False},
             {"id": "root", "spec": "root ::= \"a\"*",
              "tests": [{"text": "aa", "valid": True}, {"text": "ab", "valid": True}]}]
    verdicts, report = run(folder, rows, format="ebnf")
    assert {text: verdicts[text]["error_at"] for text in texts} == texts, verdicts
    assert verdicts["begun"]["accepted"] and verdicts["root#0"]["accepted"], verdicts
    assert not verdicts["root#1"]["accepted"] and verdicts["root#1"]["error_at"] == 1, verdicts
    assert "1 of 2 verdicts as the rows have them" in report, report
    refused = {"root ::= (": "line 1, column 10: malformed_grammar",
               "root ::= \"a\"\n  other": "line 2, column 3: malformed_grammar",
               "a ::= \"a\"": ": malformed_grammar", "root ::= \"a\" root": ": unsatisfiable_schema"}
    verdicts, report = run(folder, [{"id": spec, "spec": spec, "text": "a"} for spec in refused], format="ebnf")
    assert {spec: verdict["refused"] for spec, verdict in verdicts.items()} == refused, verdicts
    assert "4 under specifications that are refused" in report, report
    _, report = run(folder, [{"id": 1, "schema": True, "text": "a"}], format="ebnf", status=2)
    assert "a row has a spec" in report, report


def test_documents(folder):
    schema = {"items": {"$ref": "http://example.org/a#/$defs/word"}}
    documents = {"http://example.org/a": {"$defs": {"word": {"$ref": "b"}}},
                 "http://example.org/b": {"enum": ["x"]}}
    rows = [{"id": text, "schema": schema, "documents": documents, "text": text} for text in ('["x"]', '["y"]')]
    verdicts, _ = run(folder, [*rows, {"id": "alone", "schema": schema, "text": "[]"}])
    assert verdicts['["x"]']["accepted"] and not verdicts['["y"]']["accepted"], verdicts
    assert verdicts["alone"]["refused"] == "#/items/$ref: $ref", verdicts
    verdicts, _ = run(folder, [{"id": "list", "schema": True, "documents": [], "text": "a"}])
    assert verdicts["list"]["reason"] == "malformed_document: documents are an object of schemas", verdicts


def test_expressions(folder):
    texts = {"a1": True, "b22": True, "a": False, "xa1": False, "a1 ": False}
    rows = [{"id": text, "spec": "^[ab]\\d+$", "text": text} for text in texts]
    verdicts, _ = run(folder, [*rows, {"id": "begun", "spec": "[ab]\\d+", "text": "a", "complete": False},
                               {"id": "refused", "spec": "(a", "text": "a"}], format="regex")
    assert {text: verdicts[text]["accepted"] for text in texts} == texts, verdicts
    assert verdicts["begun"]["accepted"], verdicts
    assert verdicts["refused"]["refused"].endswith(": malformed_pattern"), verdicts


def test_structural_tags(folder):
    tag = {"format": {"type": "triggered_tags", "triggers": ["<f"], "at_least_one": True, "tags": [
        {"begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}]}}
    texts = {"<f>12</f>": None, "<f>1</f> <f>2</f>": None, "<f></f>": 3, "1": 0, "<f>1</f><f": 10}
    for spec in (tag, json.dumps(tag)):
        verdicts, _ = run(folder, [{"id": text, "spec": spec, "text": text} for text in texts], format="structural-tag")
        assert {text: verdicts[text]["error_at"] for text in texts} == texts, verdicts
    refused = {"unknown": ({"format": {"type": "text"}}, "#/format/type: type"),
               "tokens": ({"format": {"type": "any_text", "max_tokens": 2}}, "#/format/max_tokens: max_tokens"),
               "text": ("{", "byte 1: malformed_json")}
    verdicts, report = run(folder, [{"id": id, "spec": spec, "text": "a"} for id, (spec, _) in refused.items()],
                           format="structural-tag")
    assert {id: verdict["refused"] for id, verdict in verdicts.items()} == \
        {id: said for id, (_, said) in refused.items()}, verdicts
    assert "3 under specifications that are refused" in report, report


def write_vocabulary(folder, *pieces):
    """A tokenizer of the printable bytes of ASCII, and of more tokens."""
    vocabulary = {chr(byte): byte - 33 for byte in range(33, 127)} | {"\u0120": 94}
    for piece in pieces:
        vocabulary[piece] = len(vocabulary)
    tokenizer = {"added_tokens": [{"id": len(vocabulary), "content": "<end>", "special": True}],
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                 "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<end>"}', encoding="utf-8")


def test_cross_check(folder):
    write_vocabulary(folder, '{"', '":', "name", '"name":', 'e":"', '"}', "12", "aa")
    texts = ['{"name":"Ann","age":12}', '{"age":12}', '{"name":"aa"', "12", ""]
    rows = [{"id": "person", "schema": PERSON, "tests": [{"text": text} for text in texts]}]
    plain, _ = run(folder, rows, vocabulary=folder)
    checked, _ = run(folder, rows, "--cross-check", vocabulary=folder)
    assert checked == plain and [verdict["accepted"] for verdict in plain.values()] == [True] + 4 * [False], checked
    for format, spec in (("ebnf", 'root ::= [a-n]+ "12"? root | "aa"'), ("regex", "([^x]*12){1,3}")):
        verdicts, _ = run(folder, [{"id": text, "spec": spec, "text": text} for text in ("aa", "ann12aa", "a12", "x")],
                          "--cross-check", format=format, vocabulary=folder)
        assert any(verdict["accepted"] for verdict in verdicts.values()), verdicts
    tool = {"name": "greet", "description": "", "parameters": PERSON}
    verdicts, _ = run(folder, [{"id": 1, "functions": [tool], "text": "[greet(name='aa')]"}], "--cross-check",
                      format="python", vocabulary=folder)
    assert verdicts[1]["accepted"], verdicts


def test_numbers(folder):
    large, tiny = 2 ** 64 + 1, 5e-324
    rows = [{"id": "large", "schema": {"const": large}, "tests": [{"data": large, "valid": True},
                                                                  {"data": float(large), "valid": False}]},
            {"id": "tiny", "schema": {"enum": [tiny]}, "tests": [{"data": tiny, "valid": True},
                                                                 {"data": 0, "valid": False}]},
            {"id": "small", "schema": {"minimum": 0}, "tests": [{"data": 1e-7, "valid": True},
                                                                {"data": -1e-7, "valid": False}]}]
    verdicts, report = run(folder, rows)
    assert "6 of 6 verdicts as the rows have them" in report, (report, verdicts)
    verdicts, _ = run(folder, [{"id": large, "schema": {"const": tiny}, "text": "5E-324"}])
    assert verdicts[float(large)]["accepted"], verdicts


def test_calls(folder):
    tool = {"name": "greet", "description": "", "parameters": PERSON}
    verdicts, _ = run(folder, [{"id": 1, "functions": [tool], "text": "[greet(name='Ann')]"},
                               {"id": 2, "functions": [tool], "text": "[greet(age=1)]"}], format="python")
    assert verdicts[1]["accepted"] and not verdicts[2]["accepted"], verdicts
    begun = {"functions": [tool], "text": "[greet(name='A", "complete": False}
    verdicts, _ = run(folder, [{"id": "begun", **begun}, {"id": "ended", **begun, "complete": True}], format="python")
    assert verdicts["begun"]["accepted"] and not verdicts["ended"]["accepted"], verdicts


def test_expectations(folder):
    tool = {"name": "greet", "description": "", "parameters": PERSON}
    verdicts, _ = run(folder, [{"id": 2, "functions": [tool], "text": "[greet(age=1)]"}], format="python")
    assert verdicts[2]["expected"].startswith('in the argument "age" of greet: one of: a comma'), verdicts


def test_explanations(folder):
    tool = {"name": "greet", "description": "", "parameters": PERSON}
    long = '{"name": "' + "\u00e9" * 200 + '", "age": -1}'
    rows = [{"id": "low", "schema": PERSON, "text": '{"age": -1}'}, {"id": "fits", "schema": PERSON, "text": '{"name": ""}'},
            {"id": "long", "schema": PERSON, "text": long}]
    verdicts, report = run(folder, rows, "--explain")
    assert "refusal" not in verdicts["fits"] and verdicts["fits"]["accepted"], verdicts
    assert verdicts["low"]["refusal"] == {
        "at": 9, "too_short": False, "line": 1, "column": 10, "excerpt": '{"age": -1}', "caret": 9,
        "reason": '"1" cannot follow', "expected": verdicts["low"]["expected"], "value_at": "/age",
        "rules": [{"pointer": "#/properties/age/minimum", "value": "0"}]}, verdicts
    assert '\n{"age": -1}\n         ^\nexpected: ' in report and "\n#/properties/age/minimum: 0\n" in report, report
    found = verdicts["long"]["refusal"]
    assert found["excerpt"].startswith("...\u00e9") and found["excerpt"][found["caret"]] == "1", found
    assert found["column"] == len(long) - 1 and found["at"] == len(long.encode()) - 2, found
    calls, report = run(folder, [{"id": 1, "functions": [tool], "text": "[greet(age=1)]"}], "--explain", format="python")
    assert calls[1]["refusal"]["rules"] == [{"pointer": "#/0/parameters/required", "value": '["name"]'}], calls
    silent, _ = run(folder, rows)
    assert all("refusal" not in verdict for verdict in silent.values()), silent


SUBSCHEMAS = [
    {"type": "integer", "minimum": 3, "maximum": 30}, {"type": "string", "maxLength": 2}, {"enum": ["a", "ab", 4]},
    {"type": "string", "pattern": "^a"}, {"const": None}, {"type": ["boolean", "null"]}, {"$ref": "#/$defs/d"},
    {"not": {"type": "string"}}, {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/d"}}]
VALUES = [0, 4, 31, "a", "b", "abc", None, True, [], ["a"], ["a", 31], [["b"]], {}, {"x": "abc"}]


def random_schema(random, depth=0):
    def below():
        return random_schema(random, depth + 1) if depth < 2 else random.choice(SUBSCHEMAS)
    kind = random.randrange(5)
    if kind == 0:
        return {random.choice(["anyOf", "oneOf", "allOf"]): [below(), below()]}
    if kind == 1:
        return {"type": "array", "prefixItems": [below()], "items": below(), "minItems": random.randrange(3)}
    if kind == 2:
        return random.choice(SUBSCHEMAS)
    return {"type": "object", "properties": {"x": below(), "y/~": below()}, "required": random.choice([[], ["x"]]),
            "additionalProperties": random.choice([True, False, {"type": "string"}]), "maxProperties": 2}


def random_value(random, depth=0):
    kind = random.randrange(4) if depth < 3 else 3
    if kind == 0:
        return [random_value(random, depth + 1) for _ in range(random.randrange(3))]
    if kind == 1:
        return {key: random_value(random, depth + 1) for key in ("x", "y/~", "z") if random.randrange(2)}
    return random.choice(VALUES)


def reported(schema, errors):
    """The pointers of the keywords that jsonschema's errors name, through references and branches."""
    for error in errors:
        at, pointer = schema, "#"
        for step in error.absolute_schema_path:
            if step == "$ref" or isinstance(at, dict) and step not in at:  # versions differ in whether they say so
                at, pointer = schema["$defs"]["d"], at["$ref"]  # all lead to the one definition
            if step != "$ref":
                at, pointer = at[step], pointer + "/" + str(step).replace("~", "~0").replace("/", "~1")
        yield pointer
        yield from reported(schema, error.context)


def test_explanations_by_jsonschema(folder, count=400):
    """Of a value that does not conform, a keyword that is named is one that jsonschema reports."""
    try:
        import jsonschema
    except ImportError:
        print("test_explanations_by_jsonschema: SKIPPED: the package jsonschema is not installed")
        return
    rows, found = [], {}
    for seed in range(count):
        random = Random(seed)
        schema = {**random_schema(random), "$defs": {"d": random.choice(SUBSCHEMAS[:5])}}
        validator = jsonschema.Draft202012Validator(schema)
        for k in range(8):
            value = random_value(random)
            errors = list(validator.iter_errors(value))
            if errors:
                rows.append({"id": f"{seed}#{k}", "schema": schema, "text": json.dumps(value)})
                found[rows[-1]["id"]] = set(reported(schema, errors))
    verdicts, _ = run(folder, rows, "--explain")
    judged = 0
    for row in rows:
        verdict = verdicts[row["id"]]
        if "refused" in verdict:
            continue
        judged += 1
        named = {rule["pointer"] for rule in verdict["refusal"]["rules"]}
        assert named & found[row["id"]], (row, named, found[row["id"]])
    assert judged > count, (judged, len(rows))


def test_reasoning(folder):
    tool = {"name": "greet", "description": "", "parameters": PERSON}
    call = "[greet(name='Ann')]"
    texts = {call: (True, True, False), f"<think>[greet()]</think>{call}": (False, True, True),
             f"Hm.</think>{call}": (False, False, True), f"<think>{call}": (False, False, False)}
    rows = [{"id": text, "functions": [tool], "text": text} for text in texts]
    for k, reasoning in enumerate(("no", "block", "open")):
        verdicts, _ = run(folder, rows, "--reasoning", reasoning, format="python")
        for text, accepted in texts.items():
            assert verdicts[text]["accepted"] == accepted[k], (reasoning, verdicts[text])
    marks = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    call = f"{marks}<|channel|>commentary to=functions.greet <|constrain|>json<|message|>{{\"name\": \"Ann\"}}<|call|>"
    verdicts, _ = run(folder, [{"id": 1, "functions": [tool], "text": call}], "--reasoning", "block", format="harmony")
    assert verdicts[1]["accepted"], verdicts


def test_vocabulary_from_a_pipe(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((TINY / "tokenizer.json").read_bytes()), daemon=True)
    writer.start()
    verdicts, _ = run(folder, [{"id": 1, "schema": PERSON, "text": '{"name": "Ann"}'}], vocabulary=pipe)
    assert verdicts[1]["accepted"], verdicts
    writer.join(10)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as temporary:
                test(pathlib.Path(temporary))
            print(f"{name}: passed")
