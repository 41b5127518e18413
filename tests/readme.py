"""Checks README.md, CHANGELOG.md, the pages in docs, and benchmarks/README.md against the files that they quote.

    python tests/readme.py            prints what differs, and how it should read; exit code 1
    python tests/readme.py --write    writes tables and code again, then checks the sentences and links

Tables stand between `<!-- name -->` and `<!-- end of name -->` and are made from the files in benchmarks/results.
Sentences are written by hand; each sentence with figures is listed here with the figures of the results, and must be in
benchmarks/README.md, with any line breaks. A block of code that is cut from a file has `<!-- FILE -->` or
`<!-- FILE: name -->` on the line before it; `name` selects the lines between the two lines `//! [name]`. Every block of
C++ or C must be cut from a file. Relative links must lead to files, and every page in docs must be reachable from
docs/landing.md.
"""
import json
import pathlib
import random
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"
sys.path.insert(0, str(ROOT / "benchmarks/peers"))
import report as peers_report  # noqa: E402

CLASSES = ("awareness", "selection", "format", "key", "value")


def results(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %".replace("-0.0 %", "0.0 %")


def points(share: float) -> str:
    return percent(share).removesuffix(" %")


def table(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def eval_table(name: str) -> str:
    rows = []
    for method, one in results(name)["methods"].items():
        low, high = one["ci95"]
        rows.append([method, str(one["samples"]), percent(one["accuracy"]), f"{points(low)} to {percent(high)}",
                     *(percent(one["errors"][error]) for error in CLASSES), f"{1000 * one['seconds_per_sample']:.2f}",
                     f"{one['passes_per_sample']:.2f}", f"{one['time_to_greedy']:.3f}"])
    return table(["method", "samples", "accuracy", "95 % interval", *CLASSES, "ms/sample", "passes/sample",
                  "time / greedy"], rows)


def real_table(name: str, times: bool = True) -> str:
    """A real model's answers, each collection of rows by itself; what the outside judge says, where it judged."""
    found = results(name)
    groups = list(next(iter(found["methods"].values()))["groups"])
    judged = {(one["category"], one["method"]): one for one in found.get("judged", [])}
    rows = []
    for method, one in found["methods"].items():
        cells = [f"{one['groups'][group]['samples']}: {percent(one['groups'][group]['accuracy'])}" for group in groups]
        if judged:
            right = sum(judged[group, method]["right"] for group in groups)
            cells.append(percent(right / sum(judged[group, method]["rows"] for group in groups)))
        low, high = one["ci95"]
        rows.append([method, *cells, f"{points(low)} to {percent(high)}",
                     *(percent(one["errors"][error]) for error in CLASSES), f"{one['tokens_per_sample']:.1f}"])
        if times:
            rows[-1] += [f"{one['seconds_per_sample']:.2f}", f"{one['time_to_greedy']:.3f}" if "time_to_greedy" in one else ""]
    return table(["method", *groups, *(["by bfcl-eval"] if judged else []), "95 % interval of all", *CLASSES,
                  "tokens", *(["s/sample", "time / greedy"] if times else [])], rows)


def value_errors(one: dict) -> int:
    """Rows whose first error is a value's."""
    return round(one["errors"]["value"] * one["samples"])


def votes_table(name: str) -> str:
    """Value errors by the number of orders, paired with those of one order."""
    methods = results(name)["methods"]
    one = methods["tool-decoding-oc1"]
    rows = [["1", str(value_errors(one)), "", "", "", ""]]
    for method, found in methods.items():
        if "value_error_reduction" in found:
            reduction = found["value_error_reduction"]
            low, high = reduction["ci95"]
            rows.append([method.removeprefix("tool-decoding-oc"), str(value_errors(found)),
                         percent(reduction["share"]), f"{points(low)} to {percent(high)}",
                         f"{reduction['mended']} / {reduction['added']}", f"{reduction['p']:.3f}"])
    return table(["oc", "value errors", "reduction", "95 % interval", "rows mended / added", "p (McNemar)"], rows)


def pooled_votes() -> dict:
    """The sets of rows by name: three, two and all."""
    sets = results("qwen_coder_0.5b_votes")["sets"]
    return {next((word for word in ("three", "two") if word in name), name): one for name, one in sets.items()}


def pooled_votes_table() -> str:
    words = {"three": "three and more", "two": "two", "all": "all"}
    rows = []
    for name, one in pooled_votes().items():
        low, high = one["ci95"]
        rows.append([words[name], str(one["samples"]), *map(str, one["value_errors"]), percent(one["reduction"]),
                     f"{points(low)} to {percent(high)}", f"{one['mended']} / {one['added']}", f"{one['p']:.3f}"])
    return table(["required parameters", "rows", "value errors, one order", "most orders", "reduction", "95 % interval",
                  "rows mended / added", "p (McNemar)"], rows)


def restbench_table() -> str:
    """Paths of API calls with and without the APIs' documentation, by model."""
    found = results("restbench")
    rows = []
    for model, one in found["models"].items():
        for condition, counts in one["conditions"].items():
            low, high = counts["ci95"]
            rows.append([model.partition("-Instruct")[0], condition, f"{counts['prompt_tokens']:.0f}",
                         f"{counts['correct']} of {found['queries']}", f"{points(low)} to {percent(high)}", str(counts["exact"]),
                         str(counts["format_errors"]), str(counts["name_errors"])])
    return table(["model", "prompt, decoding", "tokens of the prompt", "correct path", "95 % interval", "exact path",
                  "format errors", "name errors"], rows, left=2)


def restbench_sentences() -> list[str]:
    found = results("restbench")
    models = found["models"]
    assert all(one["format_errors"] == one["name_errors"] == 0 for model in models.values()
               for name, one in model["conditions"].items() if name.endswith("ToolDec"))
    largest = models["Qwen2.5-Coder-1.5B-Instruct.Q4_K_M"]
    free, here = (largest["conditions"][name] for name in ("documented, free", "undocumented, ToolDec"))
    assert largest["p"] > 0.05, "the difference is significant: write it so"
    return [f"finds {here['correct']} of {found['queries']} paths without documentation, and {free['correct']} with it in free "
            f"decoding (McNemar p = {largest['p']:.2f}), in {here['prompt_tokens'] / free['prompt_tokens']:.2f} of the prompt"]


def guesses_table() -> str:
    """How often one of n guesses is the model's call, and what the formula says."""
    return table(["guesses n", "α(n)", "95 % interval", "1 - (1 - α)^n", "tools run per call", "of them wasted"],
                 [[count, f"{one['alpha']:.3f}", f"{one['ci95'][0]:.3f} to {one['ci95'][1]:.3f}", f"{one['formula']:.3f}",
                   f"{one['tools_run']:.2f}", f"{one['wasted']:.2f}"]
                  for count, one in results("qwen_coder_guesses")["guesses"].items()])


def guesses_sentences() -> list[str]:
    found = results("qwen_coder_guesses")
    most = found["guesses"]["9"]
    assert most["gap_ci95"][1] < 0, "the formula is within the interval: write it so"
    assert found["called"] == found["tasks"], "not each task has a call: write it so"
    return [f"bootstrap over {found['tasks']} tasks", f"The greedy guess is right in {percent(found['greedy'])}",
            f"nine reach {most['alpha']:.2f}, where the formula says {most['formula']:.2f}"]


def llama_cpp_table() -> str:
    rows = [[one["contender"], *(str(one[key]) for key in ("calls", "cut", "conforming", "right")),
             f"{one['passes_per_call']:.1f}", f"{one['build_ms']:.2f}", f"{one['constraint_us_per_pass']:.0f}",
             percent(one["constraint_share"]), percent(one["constraint_share_with_prompt"]), f"{one['ms_per_call']:.0f}",
             f"{one['time_to_grammar']:.2f}", f"{one['time_to_token_first']:.2f}"]
            for one in results("llama_cpp")["contenders"]]
    return table(["contender", "calls", "cut", "conform", "right", "passes", "build ms", "constraint us/pass",
                  "its share of a call", "with the prompt", "ms/call", "time / grammar", "time / best token first"], rows)


def llama_cpp_text_table() -> str:
    return table(["contender", "texts", "the same as without drafts", "tokens", "tokens/pass", "ms/token", "speed / no drafts"],
                 [["llama.cpp" if one["contender"] == "no grammar" else one["contender"].replace("no grammar, its", "llama.cpp, its"),
                   str(one["calls"]), str(one["same_as_plain"]), f"{one['tokens_per_call']:.0f}",
                   f"{one['tokens_per_call'] / one['passes_per_call']:.2f}", f"{one['ms_per_token']:.1f}",
                   f"{one['tokens_per_second_to_plain']:.2f}"] for one in results("llama_cpp_text")["contenders"]])


def awareness_sentences() -> list[str]:
    """Whether Qwen2.5-Coder calls a function where none fits."""
    methods = results("qwen_coder_0.5b_irrelevant")["methods"]
    assert all(one["samples"] == 119 for one in methods.values()) and len({one["accuracy"] for one in methods.values()}) == 1
    return [f"On BFCL's 119 rows for which no function fits, Qwen2.5-Coder-0.5B makes no call in {percent(methods['greedy']['accuracy'])}"]


def call_speed() -> dict:
    """Contenders by name."""
    return {one["contender"]: one for one in results("llama_cpp_qwen_coder_0.5b")["contenders"]}


def call_speed_table() -> str:
    """Speed of Qwen2.5-Coder's calls against llama.cpp's."""
    return table(["contender", "conform", "right", "tokens/call", "tokens/pass", "ms/token", "speed / no grammar"],
                 [[name, f"{one['conforming']} of {one['calls']}", str(one["right"]), f"{one['tokens_per_call']:.1f}",
                   f"{one['tokens_per_call'] / one['passes_per_call']:.2f}", f"{one['ms_per_token']:.1f}",
                   f"{one['tokens_per_second_to_plain']:.2f}"] for name, one in call_speed().items()])


def llama_server_table() -> str:
    """llama-server's times with its grammars and with the library's."""
    rows = []
    for one in results("llama_server")["requests"]:
        both = lambda key: [f"{one[key][name]:.0f}" for name in ("llama.cpp", "tooldecode")]  # noqa: E731
        rows.append([one["request"], *both("cold_first_ms"), *both("first_ms"), f"{one['first_ms']['ratio']:.2f}",
                     *(f"{one['token_ms'][name]:.1f}" for name in ("llama.cpp", "tooldecode")),
                     f"{one['token_ms']['ratio']:.2f}", "yes" if one["equal"] else "no"])
    return table(["request", "new grammar, first token, ms", "with the library", "first token, ms", "with the library", "ratio",
                  "ms/token", "with the library", "ratio", "same answers"], rows)


def equality_table() -> str:
    rows = [[one["runs"], *(str(one[key]) for key in ("rows", "tokens", "same")), str(len(one["near_ties"])),
             str(len(one["different"])), ", ".join(map(str, one["passes"]))]
            for one in results("llama_cpp_equality")["comparisons"]]
    return table(["runs", "rows", "tokens", "the same", "parted at a near-tie", "else", "passes"], rows)


def drafts_table() -> str:
    rows = []
    plain = results("end_to_end")["drafters"][0]
    words = {"forced+lookup": "forced + lookup", "all": "all (eagle, lookup, forced)"}
    for one in results("end_to_end")["drafters"]:
        drafted = one["drafted"] / (one["passes"] - one["answers"])
        depths = [f"{100 * accepted / tried:.0f}" for accepted, tried in zip(one["accepted"], one["tried"]) if tried][:4]
        rows.append([words.get(one["drafter"], one["drafter"]), str(one["passes"]), f"{one['tokens'] / one['passes']:.2f}",
                     f"{plain['passes'] / one['passes'] * one['tokens'] / plain['tokens']:.2f}", f"{drafted:.1f}",
                     ", ".join(depths) + (" %" if depths else ""), f"{one['milliseconds'] / plain['milliseconds']:.2f}"])
    return table(["drafter", "passes", "tokens per pass", "against plain", "drafted per pass",
                  "accepted at depth 1, 2, 3, 4", "time / plain"], rows)


def sizes_table() -> str:
    sizes = results("end_to_end")["sizes"]
    shares = [2, 4, 8, 16]
    whole = max(one["k"] for one in sizes)
    rows, even = [], {}
    for constrained in (False, True):
        for ranks, words in (("in-domain", "own ranks"), ("off-domain", "books")):
            for context in (False, True):
                cells = []
                for part in shares:
                    one, = [one for one in sizes if one["k"] == whole // part and one["ranks"] == ranks and
                            one["constrained"] == constrained and one["context"] == context]
                    cells.append(percent(one["retention"]))
                    even.setdefault(part, []).append(one["break_even"])
                rows.append([("constrained, " if constrained else "free, ") + words + (" and context" if context else ""),
                             *cells])
    rows.append(["break-even", *(f"{points(min(even[part]))} to {percent(max(even[part]))}" for part in shares)])
    rows[0][0] = "retention, " + rows[0][0]
    return table(["share of V", *(f"{100 / part:.4g} %" for part in shares)], rows)


def held_out_table() -> str:
    found = results("ranks_qwen2")
    size = found["vocabulary_size"]
    ks = [one["k"] for one in found["coverage"]][2:]
    rows = [["all five, counted themselves", *(percent(one["share"], 2) for one in found["coverage"][2:])]]
    rows += [[f"{one['text'].split('.')[0]}, by the other four", *(percent(cell["share"], 2) for cell in one["coverage"][2:])]
             for one in found["held_out"]]
    return table(["covered by the first", *(f"{100 * k / size:.3g} %" for k in ks)], rows)


def span(ends: list[float], scale: float = 1, digits: int = 2) -> str:
    return f"{scale * ends[0]:.{digits}f} to {scale * ends[1]:.{digits}f}"


def acceptance_table(found: dict) -> str:
    rows = []
    for one in found["acceptance"]:
        kept = f"{percent(one['retention'])} ({span(one['retention_ci95'], 100, 1)})" if "retention" in one else ""
        rows.append([one["way"], *(f"{domain['acceptance_length']:.2f}" for domain in one["domains"]),
                     f"{one['mean']:.2f} ({span(one['ci95'])})", kept, f"{one['drafted_per_round']:.1f}"])
    names = [domain["domain"] for domain in found["acceptance"][0]["domains"]]
    return table(["tokens of a pass", *names, "mean (95 %)", "retention (95 %)", "drafted a round"], rows)


def speed_table(found: dict) -> str:
    rows = []
    for one in found["speed"]:
        whole, target = (f"{one[name]:.2f} ({span(one[name + '_ci95'])})" if name in one else ""
                         for name in ("to_all_rows", "to_target_head"))
        rows.append([one["way"], *(f"{domain['tokens_per_second']:.1f} ({domain['to_plain']:.2f})" for domain in one["domains"]),
                     f"{one['to_plain']:.2f} ({span(one['to_plain_ci95'])})", whole, target])
    names = [domain["domain"] for domain in found["speed"][0]["domains"]]
    return table(["tokens/s (of plain)", *names, "mean of plain (95 %)", "of K = V (95 %)", "of the target's head (95 %)"], rows)


def fr_spec_acceptance() -> str:
    """FR-Spec's tables 1, 6 and 7, and the paper's averages."""
    paper = [["Llama-3-8B", "3.89", "97.7 %", "93.3 %", "87.4 %", "80.5 %"],
             ["Llama-3.2-1B", "2.81", "98.7 %", "95.8 %", "92.6 %", "88.5 %"],
             ["Qwen-2-7B (64k, 32k, 16k, 8k of 152k)", "3.74", "98.6 %", "95.4 %", "89.7 %", "83.0 %"]]
    return acceptance_table(results("fr_spec_smollm2")) + "\n\n" + table(
        ["the paper, SlimPajama's ranks", "K = V", "50 %", "25 %", "12.5 %", "6.25 %"], paper)


def fr_spec_speed() -> str:
    """Tables 2, 5 and 8."""
    paper = [["EAGLE-2, K = V", "2.03", "1.28", "1.63"], ["the best K", "2.27 (32k)", "1.59 (16k)", "1.76 (32k)"],
             ["to K = V", "1.12", "1.24", "1.08"]]
    return speed_table(results("fr_spec_smollm2")) + "\n\n" + table(
        ["the paper, of plain", "Llama-3-8B", "Llama-3.2-1B", "Llama-3-8B by Medusa"], paper)


def fr_spec_sampled() -> str:
    """Table 3."""
    found = results("fr_spec_sampled")
    assert found["temperature"] == 1 and found["answers_that_differ"] == 0
    paper = [["EAGLE-2, K = V", "1.95", "1.00"], ["K = 32k", "2.20", "1.13"]]
    return "\n\n".join([acceptance_table(found), speed_table(found),
                        table(["the paper, Llama-3-8B", "of plain", "of K = V"], paper)])


def fr_spec_rounds() -> str:
    """Figures 1 and 6."""
    found = results("fr_spec_smollm2")["rounds"]
    rows = [[one["way"], f"{one['tokens']:.2f}", f"{one['drafted']:.1f}", *(f"{ms:.1f}" for ms in one["ms"].values())]
            for one in found]
    return table(["ms of a round", "tokens", "drafted", *(name.replace("_", " ") for name in found[0]["ms"])], rows)


def fr_spec_coverage() -> str:
    found = results("fr_spec_smollm2")["coverage"]
    rows = [[f"{one['ranked_without']}: {one['of']}", *(percent(cell["share"], 2) for cell in one["covered"])] for one in found]
    return table(["covered by the first", *(f"{cell['k']:,}" for cell in found[0]["covered"])], rows)


def drawn(ways: list[dict], of: dict, value) -> list[float]:
    """The 95 % interval of a value of two ways, from prompts drawn with repetition."""
    rng, count = random.Random(5), len(of["each"])
    values = []
    for _ in range(2000):
        some = [rng.randrange(count) for _ in range(count)]
        values.append(value(*([sum(way["each"][i][part] for i in some) for part in range(3)] for way in ways)))
    values.sort()
    return [values[50], values[1949]]


def pruned_tables() -> str:
    """FR-Spec's tables 2, 6 and 8 over llama.cpp."""
    ways = results("pruned_eagle")["ways"]
    plain, whole = ways[0], next(way for way in ways if way.get("rows") == 0)
    domains = list(plain["domains"])
    rows = []
    for way in ways:
        every = way["all"]
        length, speed = every["tokens_per_pass"], every["speed_to_plain"]
        kept, faster = "", ""
        if way is not plain and way is not whole:
            ends = drawn([way, whole], way, lambda a, b: (a[0] / a[1]) / (b[0] / b[1]))
            kept = f"{percent(length / whole['all']['tokens_per_pass'])} ({span(ends, 100, 1)})"
            ends = drawn([way, whole], way, lambda a, b: (a[0] / a[2]) / (b[0] / b[2]))
            faster = f"{every['speed_to_all_rows']:.2f} ({span(ends)})"
        ends = drawn([way, plain], way, lambda a, b: (a[0] / a[2]) / (b[0] / b[2]))
        rows.append([way["way"], *(f"{way['domains'][one]['tokens_per_pass']:.2f}" for one in domains), f"{length:.2f}",
                     kept, f"{speed:.2f} ({span(ends)})", faster,
                     percent(every["head_seconds"] / every["seconds"]) if way.get("rows") is not None else ""])
    return table(["tokens of a pass", *domains, "all", "of K = V's (95 %)", "speed of plain (95 %)", "of K = V (95 %)",
                  "the head's share of the time"], rows)


def pruned_sentences() -> list[str]:
    ways = results("pruned_eagle")["ways"]
    whole = next(way for way in ways if way.get("rows") == 0)
    best = max((way for way in ways if way.get("rows")), key=lambda way: way["all"]["speed_to_plain"])
    ends = drawn([best, whole], best, lambda a, b: (a[0] / a[2]) / (b[0] / b[2]))
    return [f"{ways[0]['all']['answers']} prompts",
            f"{best['rows']:,} rows are {best['all']['speed_to_all_rows']:.2f} times as fast as all ({span(ends)}) and "
            f"{best['all']['speed_to_plain']:.2f} times as fast as plain decoding",
            f"{whole['all']['same_as_plain']} answers of K = V are those of plain decoding"]


def pruned_model_sentences() -> list[str]:
    """What pruned rows of a draft model's head can save; its times were taken beside other work, so shares alone."""
    ways = {way.get("rows"): way["all"] for way in results("pruned_model")["ways"]}
    whole, few = ways[0], ways[8192]
    head = {rows: ways[rows]["head_seconds"] / ways[rows]["drafting_seconds"] for rows in (0, 8192)}
    assert whole["head_seconds"] / whole["seconds"] < 0.015, "pruning may save more than a little: write it so"
    return [f"On {whole['answers']} prompts the head takes {percent(head[0])} of a draft's time with all rows and {percent(head[8192])} "
            f"with 8,192",
            f"drafts take {percent(whole['drafting_seconds'] / whole['seconds'])} of an answer's, because few are made "
            f"({whole['tokens_per_pass']:.2f} tokens of a pass, {few['tokens_per_pass']:.2f} with 8,192 rows)",
            f"can save at most {percent(whole['head_seconds'] / whole['seconds'])} of an answer's time"]


class Points:
    """Rows of a latency sweep by their columns."""

    def __init__(self, name: str):
        self.all = results(name)
        self.rows = [dict(zip(self.all["columns"], row)) for row in self.all["points"]]

    def find(self, **wanted) -> dict:
        wanted = {"agents": 1, "speculators": 1, "acceptance": 0.8, "gate": False} | wanted
        found = [row for row in self.rows if all(row[key] == value for key, value in wanted.items())]
        assert len(found) == 1, (wanted, len(found))
        return found[0]

    def gain(self, **wanted) -> float:
        return self.find(policy="engine", **wanted)["time_saved"] - self.find(policy="client", **wanted)["time_saved"]


SIMULATED_S = [0.0, 0.5, 1.0, 2.25]


def latency_table() -> str:
    simulated, real = Points("tool_latency"), Points("tool_latency_real")
    generation = simulated.all["parameters"]["generation_s"]
    rows = [["simulated, client-side"], ["simulated, engine-side"]]
    for row, policy in zip(rows, ("client", "engine")):
        row += [percent(simulated.find(policy=policy, tool_latency_s=tool, prefix_cache=True)["time_saved"])
                for tool in SIMULATED_S]
    text = table([f"time saved, G = {generation:.3f} s", *(f"T = {tool:g} s" for tool in SIMULATED_S)], rows)
    tools = sorted({row["tool_latency_s"] for row in real.rows if row["agents"] == 1})
    rows = [["real server, client-side"], ["real server, engine-side"]]
    for row, policy in zip(rows, ("client", "engine")):
        row += [percent(real.find(policy=policy, tool_latency_s=tool)["time_saved"]) for tool in tools]
    text += "\n\n" + table([f"time saved, G = {real.all['parameters']['generation_s']:.2f} s",
                            *(f"T = {tool:g} s" for tool in tools)], rows)
    cost = simulated.all["cost"]
    rows = [[words, *(percent(one[key]) for one in cost["by_speculators"])]
            for words, key in (("turns with a right guess", "hit_rate"), ("time saved", "time_saved"),
                               ("added cost", "added_cost"), ("of it for nothing", "wasted_cost"))]
    return text + "\n\n" + table([f"simulated, client-side, T = {cost['chosen']['tool_latency_s']} s: speculators",
                                  *(str(one["speculators"]) for one in cost["by_speculators"])], rows)


def guessed_rows() -> list[dict]:
    found = results("tool_latency_guessed")
    return [dict(zip(found["columns"], row)) for row in found["points"]]


def guessed_table() -> str:
    """A model that reasons, with calls that another one guesses: by the tools' times, policy by policy."""
    rows = []
    for one in guessed_rows():
        policy = one["policy"] + (", gate" if one["gate"] else "")
        saved = ["", "", "", "", ""] if one["policy"] == "none" else [
            f"{percent(one['time_saved'])} ± {points(one['saved_error'])}", percent(1 - one["eq1_s"] / one["none_s"]),
            percent(one["hit_rate"]), percent(one["resident_share"]), f"{one['wasted_per_call']:.2f}"]
        rows.append([one["tools"], policy, f"{one['tasks']} / {one['calls']}", f"{one['generation_s']:.2f}",
                     f"{one['tool_s']:.2f}", f"{one['task_s']:.2f} ± {one['task_s_error']:.2f}", f"{one['eq1_s']:.2f}",
                     "" if one["eq6_s"] is None else f"{one['eq6_s']:.2f}", *saved, f"{one['same_tasks']}"])
    return table(["tools", "policy", "tasks / calls", "G, s", "T waited for, s", "task, s", "Eq. 1, s", "Eq. 6, s", "time saved",
                  "by Eq. 1", "hits", "in the batch", "wasted per call", "same answers"], rows, left=2)


def constraint_table() -> str:
    words = {"build": "build a constraint", "build_and_first_mask": "build it, and its first mask",
             "along_calls/mask_cold": "mask, state met for the first time",
             "along_calls/mask_prepared": "mask, prepared for 20 ms before",
             "along_calls/mask_warm": "mask, state met before",
             "along_calls/advance_cold": "advance, first time", "along_calls/advance_warm": "advance, met before",
             "along_answers/one_cold": "mask of text or a call, one format, first time",
             "along_answers/family_cold": "mask of text or a call, four formats, first time",
             "along_answers/one_warm": "one format, met before", "along_answers/family_warm": "four formats, met before",
             "batch_of_256/filled": "256 masks, two threads", "batch_of_256/updated": "256 masks, what differs",
             "batch_of_256/copied": "copying 256 masks"}
    found = results("constraint")["microseconds"]

    def shown(value: float) -> str:
        return f"{value:.2g}" if value < 99 else f"{value:.0f}"

    rows = [[text, *(shown(found[name][what]) for what in ("mean", "p50", "p99"))] for name, text in words.items()]
    return table(["microseconds", "mean", "p50", "p99"], rows)


def worst_masks_table() -> str:
    """The slowest masks over all schemas at hand, by vocabularies; times in milliseconds."""
    rows = []
    for vocabulary, sets in results("worst_masks")["masks"].items():
        for one in sets:
            rows.append([vocabulary, one["set"], f"{one['texts']:,}", f"{one['tokens']:,}", f"{one['refused']}",
                         f"{one['over_budget']}",
                         *(f"{one[key] / 1000:.3f}" for key in ("mean_us", "p99_us", "p999_us", "worst_us"))])
    return table(["vocabulary", "schemas", "texts", "tokens", "refused", "over budget", "mean, ms", "p99", "p99.9", "worst"],
                 rows, left=2)


def peers_tables() -> str:
    found = results("peers")
    found.pop("made_by", None)
    return peers_report.readme(found)


def engines_measured(measure: str, what: str) -> str:
    bfcl = results("peers")["bfcl"]
    return ", ".join(f"{name} {peers_report.number(bfcl[name][measure][what])}"
                     for name in ("tooldecode", "llguidance", "xgrammar"))


def schemas_measured(name: str) -> tuple[str, int, int]:
    """Of JSONSchemaBench: the share of the schemas reached that are right, how many are wrong, how many were reached."""
    one = results("peers")["jsonschemabench"][name]
    reached = one["schemas"] - one["not_run"]
    return percent(one["right"] / reached), one["wrong"], reached


def drafts_measured() -> tuple[dict, dict]:
    """Constrained calls of SmolLM2, timed: without drafts, and with all drafters."""
    drafts = results("fr_spec_smollm2")
    assert drafts["answers_that_differ"] == 0
    ways = {one["way"]: one["domains"] for one in drafts["speed"]}
    plain, drafted = (next(domain for domain in ways[way] if domain["domain"] == "tools, constrained")
                      for way in ("plain", "EAGLE, K = V/4, context, lookup, forced"))
    return plain, drafted


def before_table() -> str:
    """A GGUF model without and with a constraint."""
    methods = results("smollm2_bfcl")["methods"]
    plain, constrained = methods["greedy"], methods["constrained"]
    return table([f"{plain['samples']} BFCL calls", "plain", "constrained"], [
        ["right call", percent(plain["accuracy"]), percent(constrained["accuracy"])],
        ["not parseable", percent(plain["errors"]["format"]), percent(constrained["errors"]["format"])],
        ["wrong parameter name", percent(plain["errors"]["key"]), percent(constrained["errors"]["key"])],
        ["time, relative", "1.00", f"{constrained['time_to_greedy']:.2f}"],
    ])


def measured_table() -> str:
    """The rows of README.md."""
    found = results("peers")
    bfcl, peers = found["bfcl"], found["made_by"]["peers"]
    us = lambda one, measure, what: peers_report.number(one[measure][what])  # noqa: E731
    cold = lambda name: (f"{us(bfcl[name], 'build_first_mask_us', 'p50')} us, {us(bfcl[name], 'next_mask_us', 'mean')} us "  # noqa: E731
                         f"({us(bfcl[name], 'next_mask_us', 'p99')} us)")
    assert all(bfcl[name]["right"] == bfcl[name]["schemas"] for name in ("tooldecode", "llguidance", "xgrammar"))
    inside = results("engines")["results"]["vllm"]["bfcl"]["first_visits"]["fill"]
    schemas = {name: schemas_measured(name) for name in ("tooldecode", "llguidance", "xgrammar")}
    pruned = {one["way"]: one for one in results("pruned_eagle")["ways"]}
    few, whole = pruned["K = 8192"], pruned["K = V"]
    few_ends = drawn([few, pruned["plain"]], few, lambda a, b: (a[0] / a[2]) / (b[0] / b[2]))
    calls, votes = call_speed(), pooled_votes()["all"]
    rows, before, after, larger = larger_votes()
    return table(["what", "measured", "limits"], [
        ["cold: median first mask of a new constraint, then each next mask, mean (p99)",
         f"{cold('tooldecode')}; llguidance {cold('llguidance')}; XGrammar {cold('xgrammar')}",
         f"{bfcl['tooldecode']['schemas']} BFCL tools, which all three enforce; documented order of keys, fixed spacing, Qwen2's "
         f"vocabulary, 1 thread; llguidance {peers['llguidance']}, XGrammar {peers['xgrammar']}, whose first mask with a filled "
         f"compiler cache takes {us(bfcl['xgrammar_warm'], 'build_first_mask_us', 'p50')} us"],
        ["the same next masks inside vLLM: median, mean (p99)",
         "; ".join(f"{words}{inside[name]['median']:.1f} us, {inside[name]['mean']:.1f} us ({inside[name]['p99']:.0f} us)"
                   for name, words in (("tooldecode", ""), ("llguidance", "llguidance "), ("xgrammar", "XGrammar "))),
         f"{inside['tooldecode']['count']} masks through vLLM's own classes"],
        ["all masks of all texts of a constraint, mean (p99)",
         "; ".join(f"{words}{us(bfcl[name], 'mask_us', 'mean')} us ({us(bfcl[name], 'mask_us', 'p99')} us)" for name, words in
                   (("tooldecode", ""), ("llguidance", "llguidance "), ("xgrammar", "XGrammar "))),
         "the tools and engines of the first row; most states were met before"],
        ["JSONSchemaBench: schemas with every verdict right; schemas silently wrong",
         "; ".join(f"{words} {schemas[name][0]}, {schemas[name][1]}"
                   for name, words in (("tooldecode", "tooldecode"), ("llguidance", "llguidance"), ("xgrammar", "XGrammar"))),
         f"{schemas['tooldecode'][2]} schemas; XGrammar reached {schemas['xgrammar'][2]} of them in its time; tooldecode refuses "
         f"{found['jsonschemabench']['tooldecode']['refused']}"],
        ["constrained calls in tokens per second, llama.cpp without a grammar being 1",
         f"{calls[FORCED]['tokens_per_second_to_plain']:.2f}; llama.cpp with its grammar "
         f"{calls[ITS_GRAMMAR]['tokens_per_second_to_plain']:.2f}, with its n-gram drafts "
         f"{calls['no grammar, its n-gram drafts']['tokens_per_second_to_plain']:.2f}",
         f"{calls[FORCED]['calls']} BFCL calls, {calls[FORCED]['right']} right, and with llama.cpp's grammar "
         f"{calls[ITS_GRAMMAR]['right']}; Qwen2.5-Coder-0.5B Q4_K_M on 2 CPU threads, greedy; without the prompt"],
        ["calls voted on under several orders of their parameters: rows with a wrong value, of one order and of all",
         f"Qwen2.5-Coder-0.5B {votes['value_errors'][0]} and {votes['value_errors'][1]} of {votes['samples']}, "
         f"{percent(votes['reduction'])} fewer; 1.5B {before} and {after} of {rows}, {percent(larger['share'])} fewer",
         f"95 % intervals {points(votes['ci95'][0])} to {percent(votes['ci95'][1])} and {points(larger['ci95'][0])} to "
         f"{percent(larger['ci95'][1])}; Q4_K_M; BFCL calls with two and more required parameters, for the larger model with three "
         "and more"],
        ["an EAGLE layer over llama.cpp, its head pruned to 8,192 of 151,936 rows: speed of plain decoding",
         f"{few['all']['speed_to_plain']:.2f}; with all rows {whole['all']['speed_to_plain']:.2f}",
         f"{few['all']['answers']} prompts; Qwen2.5-Coder-0.5B on 1 CPU thread beside other work; 95 % interval {span(few_ends)}"],
    ], left=3)


def all_measured_table() -> str:
    """The rows of docs/measured.md."""
    many, asked = results("eval_many")["methods"], results("required")

    greedy, constrained = many["greedy"], many["constrained"]
    plain, speed = drafts_measured()
    guessed = {one["policy"]: one for one in guessed_rows() if one["tools"] == "all" and not one["gate"]}
    saved = [percent(guessed[policy]["time_saved"]) for policy in ("client", "engine")]
    return table(["what", "measured"], [
        ["BFCL, Qwen2's vocabulary: first mask of a new constraint (median) and one mask (mean)",
         f"{engines_measured('build_first_mask_us', 'p50')} us; {engines_measured('mask_us', 'mean')} us"],
        ["JSONSchemaBench: schemas with every verdict right, and schemas silently wrong",
         ", ".join("{} {} and {}".format(name, *schemas_measured(name)) for name in ("tooldecode", "llguidance", "xgrammar"))],
        [f"{greedy['samples']} calls with three to five required parameters, plain and constrained (embedded model)",
         f"{percent(greedy['accuracy'])} and {percent(constrained['accuracy'])} right; "
         f"{percent(greedy['errors']['key'])} and {percent(constrained['errors']['key'])} with a wrong key; "
         f"time {constrained['time_to_greedy']:.2f} of plain"],
        [f"`serve` with default options, {asked['questions']} questions that need tools: conforming calls with "
         "`tool_choice` `required` and `auto`",
         "; ".join(f"{row['model']} {row['required']} and {row['auto']}" for row in asked["rows"])],
        [f"SmolLM2-135M in the library's own `LlamaModel`, {speed['prompts']} constrained calls of {speed['tokens']:.0f} tokens with "
         "all drafters: tokens per pass, speed",
         f"{speed['acceptance_length']:.2f}, without drafts {plain['acceptance_length']:.2f}; {speed['to_plain']:.2f} of plain "
         f"({span(speed['to_plain_ci95'])}); the answers are the same, token for token"],
        [f"SmolLM2 reasons, the embedded model guesses its calls, {guessed['client']['tasks']} tasks: time saved at the client and "
         "in the engine",
         " and ".join(saved)],
    ], left=2)


def compile_time_table() -> str:
    rows = []
    for unit, one in results("compile_time")["units"].items():
        aim = f"{one['aim_s']} s, {one['aim_mb']} MB" if "aim_s" in one else ""
        rows.append([unit, f"{one['processor_s']:.1f} s", f"{one['frontend_s']:.1f} s", f"{one['peak_mb']} MB",
                     f"{one['times_nlohmann']:.2f}", aim])
    return table(["unit", "processor time", "its front end", "peak memory", "times nlohmann's", "aim"], rows)


def required_table() -> str:
    """Of how many questions each model calls, and of how many greetings it does not."""
    found = results("required")
    questions, greetings = found["questions"], found["greetings"]
    return table(["model", "a call required", "a call left to the model", "greetings and the like without a call"],
                 [[row["model"], f"{row['required']} of {questions}", f"{row['auto']} of {questions}",
                   f"{row['greetings']} of {greetings}"] for row in found["rows"]])


def required_llama_server_table() -> str:
    """Of how many questions a llama-server makes the call that is required."""
    found = results("required_llama_server")
    return table(["model", "llama-server", "with the library", "with `TOOLDECODE_REQUIRED_CALLS=1`"],
                 [[row["model"], *(f"{row[name]} of {found['questions']}" for name in ("alone", "library", "required_calls"))]
                  for row in found["rows"]])


def engines_table() -> str:
    """Medians that an engine's interface gives; all cells are in the file."""
    measured = results("engines")["results"]
    shown = [("first mask", "first_mask", None), ("mask, first visit", "first_visits", "fill"),
             *((f"mask, {rows} rows, {threads} threads", f"{rows} rows, {threads} threads", "fill")
               for rows, threads in ((1, 1), (32, 1), (256, 1), (256, 2))),
             ("accept", "256 rows, 1 threads", "accept"), ("draft of 4", "256 rows, 1 threads", "draft_of_4")]
    rows = []
    for engine, name in (("vllm", "vLLM"), ("sglang", "SGLang")):
        for workload, cells in measured[engine].items():
            for what, key, part in shown:
                cell = cells[key] if part is None else cells[key][part]
                rows.append([name, workload, what, *(f"{cell[who]['median']:,.1f}" for who in ("tooldecode", "xgrammar", "llguidance")),
                             f"{cell['median_ratio']:.2f}", f"{cell['copies']['median']:,.1f}" if "copies" in cell else ""])
    return table(["through", "workload", "µs", "tooldecode", "XGrammar", "llguidance", "ours to the better", "copies alone"],
                 rows, left=3)


CUDA_ROWS = {
    "pruned head, logits": ("K = 32768, n = 10", "K = 131072, n = 60"),
    "pruned head, top 10": ("K = 32768, n = 1", "K = 32768, n = 10", "K = 32768, n = 60", "K = 131072, n = 1", "K = 131072, n = 10"),
    "pruned head, masked top 10": ("K = 32768, n = 10",),
    "pruned head, rows by index, top 10": ("K = 32768, n = 10",),
    "masked softmax": ("V = 128256, B = 1", "V = 128256, B = 64", "V = 128256, B = 256"),
    "masked arg-max": ("V = 128256, B = 64",),
    "masked draw, by Gumbel noise": ("V = 128256, B = 64",),
    "tree attention": ("L = 1024, N = 60", "L = 8192, N = 60", "L = 16384, N = 60", "L = 32768, N = 60"),
    "tree attention, pages of 16": ("L = 8192, N = 60", "L = 32768, N = 60"),
    "draft trees, 6 levels, 60 nodes": ("B = 1", "B = 16"),
    "verification of 60 nodes": ("B = 16",),
    "compaction, 32 layers": ("B = 16",),
    "round of these three": ("B = 1", "B = 16"),
}


def cuda_table() -> str:
    """Some of the kernels' sizes; all are in the file."""
    found = results("cuda")
    torch = {}
    for row in found["pytorch"]["results"]:
        torch[row["operation"], row["size"]] = row["ratio"]
    rows = []
    for kernel, sizes in CUDA_ROWS.items():
        for row in found["results"]:
            if row["kernel"] != kernel or row["size"] not in sizes or row["numbers"] == "F16":
                continue
            names = {(kernel, row["size"]), (f"{kernel}, {row['numbers']}", row["size"])}
            ratios = {"PyTorch": torch[name] for name in names if name in torch}
            ratios |= {name: peer / row["microseconds"] for name, peer in row["peer_microseconds"].items()}
            rows.append([kernel, row["numbers"], row["size"], f"{row['microseconds']:.1f}",
                         percent(row["share_of_floor"], 0) if row["floor_microseconds"] else "",
                         ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())])
    return table(["kernel", "numbers", "size", "us", "floor's share of it", "times as fast as"], rows, left=3)


def cuda_sentences() -> list[str]:
    found = results("cuda")
    return [f"{verdict['goal']}: {'holds' if verdict['holds'] else 'missed'}, least {percent(verdict['least_share'])}"
            for verdict in found["verdicts"]] + [
        f"{found['copy_gigabytes_per_second'] / 1000:.2f} TB/s copied", f"{found['read_gigabytes_per_second'] / 1000:.2f} TB/s read"]


TABLES = {"fr_spec_acceptance": fr_spec_acceptance, "fr_spec_speed": fr_spec_speed, "fr_spec_sampled": fr_spec_sampled,
          "fr_spec_rounds": fr_spec_rounds, "pruned": pruned_tables,
          "fr_spec_coverage": fr_spec_coverage, "required": required_table, "required_llama_server": required_llama_server_table, "compile_time": compile_time_table, "cuda": cuda_table, "engines": engines_table,
          "eval_heldout": lambda: eval_table("eval_heldout"), "eval_many": lambda: eval_table("eval_many"),
          "drafts": drafts_table, "sizes": sizes_table, "held_out": held_out_table, "latency": latency_table,
          "guessed": guessed_table, "restbench": restbench_table, "guesses": guesses_table,
          "constraint": constraint_table, "worst_masks": worst_masks_table, "peers": peers_tables, "llama_cpp": llama_cpp_table,
          "call_speed": call_speed_table, "llama_cpp_text": llama_cpp_text_table, "llama_server": llama_server_table,
          "llama_cpp_equality": equality_table,
          "smollm2_bfcl": lambda: real_table("smollm2_bfcl"),
          "qwen_coder_0.5b_three": lambda: real_table("qwen_coder_0.5b_three", times=False),
          "votes_0.5b_three": lambda: votes_table("qwen_coder_0.5b_three"),
          "qwen_coder_1.5b_three": lambda: real_table("qwen_coder_1.5b_three", times=False),
          "votes_1.5b_three": lambda: votes_table("qwen_coder_1.5b_three"),
          "qwen_coder_0.5b_two": lambda: real_table("qwen_coder_0.5b_two"),
          "votes_0.5b": pooled_votes_table,
          "qwen_coder_0.5b_apibank": lambda: real_table("qwen_coder_0.5b_apibank", times=False)}


def eval_sentences() -> list[str]:
    first, many = results("eval_heldout")["methods"], results("eval_many")["methods"]
    ends = [name for name in many if name == "constrained" or name.startswith("tool-decoding")]
    assert all(table[method]["errors"][error] == 0 for table in (first, many) for method in ends if method in table
               for error in ("format", "key")), "no format and no key errors"
    rows = many["constrained"]["samples"]
    cut = round(many["tooldec"]["errors"]["format"] * rows)
    wrong = {orders: round(many[f"tool-decoding-oc{orders}"]["errors"]["value"] * rows) for orders in (1, 4, 6, 9, 12)}
    intervals = {orders: many[f"tool-decoding-oc{orders}"]["value_error_reduction"]["ci95"] for orders in (4, 12)}
    span = {orders: f"{100 * low:.0f} to {100 * high:.0f} %" for orders, (low, high) in intervals.items()}
    accuracy = {name: percent(many[f"tool-decoding-{name}"]["accuracy"]) for name in ("oc1", "oc3", "reversed", "shuffled")}
    assert min(wrong[6], wrong[12]) >= wrong[1] - 2, "oc 6 or 12 gains here after all: write it so"
    assert all(low < 0 < high for low, high in intervals.values()), "an interval excludes none: write it so"
    assert cut > 1
    return [
        f"The second table has {cut} format errors of `tooldec`: answers that ran into their limit of 160 tokens, which no "
        "constrained answer reaches",
        f"Of the toy's {rows} answers, {wrong[1]} have a wrong value with one order, {wrong[4]} with oc 4, {wrong[6]} with the default, 6, "
        f"{wrong[9]} with 9 and {wrong[12]} with 12, which gains next to nothing here",
        f"The 95 % intervals of the reduction, {span[4]} for oc 4 and {span[12]} for oc 12, include 0",
        f"The documented order alone is right in {accuracy['oc1']}, the reversed in {accuracy['reversed']}, a shuffled one in "
        f"{accuracy['shuffled']}, the vote of these three in {accuracy['oc3']}",
    ]


def larger_votes() -> tuple[int, int, int, dict]:
    """Rows, value errors of one order and of twelve, and how they differ, of Qwen2.5-Coder-1.5B."""
    methods = results("qwen_coder_1.5b_three")["methods"]
    one, most = methods["tool-decoding-oc1"], methods["tool-decoding-oc12"]
    return one["samples"], value_errors(one), value_errors(most), most["value_error_reduction"]


def larger_sentences() -> list[str]:
    rows, before, after, found = larger_votes()
    all_rows = results("qwen_coder_0.5b_three")["methods"]["greedy"]["samples"]
    low, high = found["ci95"]
    assert low > 0, "the interval includes none: write it so"
    assert rows == all_rows, "some rows are missing: write it so"
    return [f"Of {rows} answers of Qwen2.5-Coder-1.5B, {before} have a wrong value with one order and {after} with twelve, "
            f"{percent(found['share'])} fewer (95 % interval {points(low)} to {percent(high)}); the vote corrects "
            f"{found['mended']} rows and spoils {found['added']} (p = {found['p']:.3f})"]


def coder_sentences() -> list[str]:
    methods, votes = results("qwen_coder_0.5b_three")["methods"], pooled_votes()["all"]
    greedy, constrained = methods["greedy"], methods["constrained"]
    assert votes["ci95"][0] > 0 and votes["samples"] >= 200, "the interval includes none: write it so"
    both = [methods, results("qwen_coder_0.5b_two")["methods"]]
    assert all(found["errors"][error] == 0 for sets in both for name, found in sets.items() if name != "greedy"
               for error in ("awareness", "format", "key"))
    return [f"Greedy answers are right in {percent(greedy['accuracy'])} of the {greedy['samples']} rows with three or more "
            f"required parameters, constrained answers in {percent(constrained['accuracy'])}",
            f"Of {votes['samples']} rows in both sets, {votes['value_errors'][0]} have a wrong value with one order and "
            f"{votes['value_errors'][1]} with the most orders. The vote corrects {votes['mended']} rows and spoils "
            f"{votes['added']}, so {percent(votes['reduction'])} fewer have a wrong value (95 % interval {points(votes['ci95'][0])} to "
            f"{percent(votes['ci95'][1])}, p = {votes['p']:.3f})"]


ITS_GRAMMAR = "llama.cpp, its grammar, best token first"
FORCED = "tooldecode, forced text drafted"
SIZED = "tooldecode, forced text and suffixes drafted, sized"


def speed_sentences() -> list[str]:
    one = call_speed()
    plain, forced, sized, theirs = (one[name] for name in ("no grammar", FORCED, SIZED, "no grammar, its n-gram drafts"))
    return [f"On {plain['calls']} calls of Qwen2.5-Coder-0.5B",
            f"{forced['tokens_per_second_to_plain']:.2f} times the tokens per second of llama.cpp without a grammar, with sized "
            f"drafts of suffixes too at {sized['tokens_per_second_to_plain']:.2f} times",
            f"With its n-gram drafts llama.cpp runs at {theirs['tokens_per_second_to_plain']:.2f} times that speed, and "
            f"tooldecode's decoder without drafts at {one['tooldecode, forced tokens']['tokens_per_second_to_plain']:.2f} times"]


def draft_sentences() -> list[str]:
    found = results("end_to_end")
    assert all(one["mismatches"] == 0 for one in found["drafters"] + found["sizes"]), "answers differ from plain decoding"
    levels = [one["levels"] for one in found["sizes"]]
    return [f"{found['drafters'][0]['answers']} held-out tool calls",
            f"on {found['sweep']['rows']} calls of the same program and toy of 6 M parameters",
            f"verified trees have {min(levels):.1f} to {max(levels):.1f} levels on average"]


def head_sentences() -> list[str]:
    found = results("ranked_head")
    one = [row for row in found["results"] if row["states"] == 1]
    ours = {row["rows"]: row["share_of_read_bandwidth"] for row in one
            if row["contender"] == "tooldecode" and row["weights"] == "BF16"}
    large = [share for rows, share in ours.items() if rows > 8192]

    def times(contender: str, weights: str) -> float:
        found, = [row["time_to_ours_in_bf16"] for row in one
                  if (row["rows"], row["contender"], row["weights"]) == (32768, contender, weights)]
        return found

    return [f"{100 * min(large):.0f} to {100 * max(large):.0f} % of the read bandwidth measured in the same run for K = 16k to "
            f"128k, and {100 * ours[8192]:.0f} % for 8k",
            f"ten vectors at K = 32k take {found['ten_states_to_one']:.1f} times as long as one",
            f"For one vector at K = 32k Eigen takes {times('Eigen, panels widened', 'BF16'):.1f} times as long in BF16 and "
            f"{times('Eigen', 'F32'):.1f} times in F32, and OpenBLAS {times('OpenBLAS', 'F32'):.1f} times in F32"]


def latency_sentences() -> list[str]:
    simulated, real = Points("tool_latency"), Points("tool_latency_real")
    claims = [one["found"] for one in simulated.all["claims"]]
    real_claims = [one["found"] for one in real.all["claims"]]
    missed = [one["claim"] for one in simulated.all["claims"] + real.all["claims"] if not one["holds"]]
    assert all(claim.startswith("engine-side saves at least 3 points more") for claim in missed), missed
    in_time = claims[1]
    real_gains = [float(one) for one in re.findall(r"(-?[\d.]+) at", real_claims[3])]
    request = 1000 * real.all["parameters"]["call_request_s"]
    late = [simulated.gain(agents=agents, tool_latency_s=1.0, prefix_cache=True) for agents in (1, 8, 32)]
    later = [simulated.gain(agents=agents, tool_latency_s=2.25, prefix_cache=True) for agents in (1, 8, 32)]
    gated, ungated = re.fullmatch(r"the worst saves (-?[\d.]+ %) .*; without the gate (-?[\d.]+ %) .*", claims[2]).groups()
    off = re.match(r"at most ([\d.]+ %) off", claims[3])[1]
    real_off = re.match(r"at most -?([\d.]+ %) off", real_claims[1])[1]
    same, turns = re.match(r"(\d+) of (\d+) turns", real_claims[0]).groups()
    assert same == turns
    count = re.search(r"no point of (\d+)", simulated.all["claims"][2]["claim"])[1]
    error = max(row["time_saved_error"] for row in real.rows)
    return [
        f"{int(count):,} points",
        f"the standard error of its figures is at most {points(error)} points",
        f"the engine saves {in_time} more than the client",
        f"at T = 1 s the engine gains {points(late[0])} points with 1 agent, {points(late[1])} with 8 and {points(late[2])} with 32; "
        f"at T = 2.25 s {points(later[0])}, {points(later[1])} and {points(later[2])}",
        f"In the real run, with an oracle, the engine gains {min(real_gains)} to {max(real_gains)} points"
        + (", below the 3 that were aimed at" if min(real_gains) < 3 else "") +
        f": a request takes this server {request:.0f} ms, and only part of that can be saved",
        f"within {off} of the performance model where its assumptions hold, the real run within {real_off}",
        f"all {turns} turns of the real run have the calls, results and texts of turns without speculation",
        f"no simulated point is more than {gated.lstrip('-')} slower than no speculation; without it the worst is "
        f"{ungated.lstrip('-')} slower",
    ]


def fr_spec_sentences() -> list[str]:
    found = results("fr_spec_smollm2")
    assert found["answers_that_differ"] == 0, "answers differ from plain decoding"
    length, speed = ({one["way"]: one for one in found[what]} for what in ("acceptance", "speed"))
    domains = {domain["domain"]: domain["acceptance_length"] for domain in length["EAGLE, K = V"]["domains"]}
    text = [value for domain, value in domains.items() if not domain.startswith("tools")]
    quarter, context = length["EAGLE, K = V/4"], length["EAGLE, K = V/4, context"]
    pruned = [one for one in found["speed"] if one["layer"] == "EAGLE" and one["k"] and "to_all_rows" in one]
    best = max(pruned, key=lambda one: one["to_target_head"])
    everything = speed["EAGLE, K = V/4, context, lookup, forced"]
    called, = [domain for domain in everything["domains"] if domain["domain"] == "tools, constrained"]
    alone = {(row["shape_of"], row["states"], row["vocabulary_size"] // row["k"]): row["times_faster"] for row in found["products"]}
    rounds = {one["way"]: one for one in found["rounds"]}
    drafted = [rounds[one["way"]]["drafted"] for one in pruned]

    def head_of(way: str) -> tuple[float, float]:
        parts = rounds[way]["ms"]
        return parts["draft_head"], sum(parts.values())

    (target, longest), (head, whole) = head_of("EAGLE, the target's head"), head_of("EAGLE, K = V")
    passes = {int(tokens): ms for tokens, ms in found["ms_of_a_pass"].items()}
    third, fewest = length["EAGLE-3, its own rows"], length["EAGLE, K = 4k"]
    assert third["k"] == fewest["k"] == 4096
    return [
        f"EAGLE-3's layer with its own 4,096 rows gives {third['mean']:.2f} tokens per pass ({span(third['ci95'])}) and is "
        f"{speed['EAGLE-3, its own rows']['to_plain']:.2f} times as fast as plain decoding; EAGLE's layer with 4,096 of the "
        f"target's rows gives {fewest['mean']:.2f} and is {speed['EAGLE, K = 4k']['to_plain']:.2f} times as fast",
        f"EAGLE's layer with all rows gives {domains['tools']:.2f} tokens per pass on free calls, "
        f"{domains['tools, constrained']:.2f} on constrained calls and {min(text):.2f} to {max(text):.2f} on open text; the aims "
        "were 3.0 on calls and 2.2 on text",
        f"V/4 of the rows keep {percent(quarter['retention'])} ({span(quarter['retention_ci95'], 100, 1)}) of that, and "
        f"{percent(context['retention'])} ({span(context['retention_ci95'], 100, 1)}) with the prompt's tokens added; the aims were "
        "95 and 98 %",
        f"the best of these, {best['way']}, is {best['to_target_head']:.2f} times as fast as drafts with the target's own head "
        f"({span(best['to_target_head_ci95'])}), the paper's baseline, where the aim was 1.12; it is "
        f"{best['to_all_rows']:.2f} times as fast as all rows in 8 bits ({span(best['to_all_rows_ci95'])})",
        f"All drafters together are {called['to_plain']:.2f} times as fast as plain decoding on constrained calls "
        f"({span(called['to_plain_ci95'])}); the aim was 1.5",
        f"a head of Gemma 3 270M's shape is {alone['Gemma 3 270M', 1, 4]:.1f} times faster with V/4 of its rows and "
        f"{alone['Gemma 3 270M', 1, 8]:.1f} times faster with V/8; the aim was 3",
        f"a pass of 2, 4, 8, 16 and 32 tokens takes {', '.join(f'{passes[n] / passes[1]:.1f}' for n in (2, 4, 8, 16))} and "
        f"{passes[32] / passes[1]:.1f} times as long as a pass of one token, and the trees above have "
        f"{length['EAGLE, K = V']['drafted_per_round']:.0f} tokens",
        f"`SizedDrafter` lets EAGLE draft {min(drafted):.1f} to {max(drafted):.1f} tokens per round",
        f"The target's head takes {target:.1f} of a round's {longest:.1f} ms, so a head that costs nothing would give "
        f"{longest / (longest - target):.2f} for the same drafts; in 8 bits the head takes {head:.1f} of {whole:.1f} ms",
        f"none of {found['tokens_compared']:,.0f} timed tokens differs from plain decoding, whose own timed tokens are among them; of the "
        f"replayed answers' tokens {found['near_ties']} were chosen by less than 0.001 of a logit",
    ]


def equality_sentences() -> list[str]:
    found = results("fr_spec_equality")
    compared, plain, drafted = found["all"], found["plain"], found["drafted"]
    assert compared["different"] == 0, "a batch with drafts writes other answers"
    assert found["temperature"] == 0
    return [
        f"In batches of {found['batch']}, {compared['tokens']:,} tokens of {compared['answers']} answers, each of at most "
        f"{found['max_tokens']}, took {plain['passes']:,} passes without drafts and {drafted['passes']:,} with them: "
        f"{compared['near_ties']} answers differ at a near-tie and {compared['different']} elsewhere",
    ]


def guessed_sentences() -> list[str]:
    parameters = results("tool_latency_guessed")["parameters"]
    rows = {(one["tools"], one["policy"] + (", gate" if one["gate"] else "")): one for one in guessed_rows()}
    none, client, gated, engine = (rows["all", policy] for policy in ("none", "client", "client, gate", "engine"))
    assert all(one["guess_errors"] == 0 for one in rows.values()) and parameters["failed_tasks"] == 0
    same = sum(one["same_tasks"] for one in (client, gated, engine))
    off = {policy: one["task_s"] / one["eq1_s"] - 1 for (tools, policy), one in rows.items() if tools == "all"}
    hidden = none["generation_s"] - client["prediction_s"]  # T at which most is saved
    best = client["hit_rate"] * hidden / (none["generation_s"] + hidden)
    gains = [points(rows[tools, "engine"]["time_saved"] - rows[tools, "client"]["time_saved"]) for tools in ("short", "long")]
    return [
        f"{none['tasks']} tasks of two questions",
        f"With T = G - g speculation would save {percent(best)}",
        f"{parameters['tokens_per_call']:.0f} tokens per call",
        f"The guess is the model's call in α = {percent(client['acceptance'])} of the guesses",
        f"g = {client['prediction_s']:.2f} s, G = {none['generation_s']:.2f} s",
        f"{same} of {3 * none['tasks']} tasks with speculation have the thoughts, calls and results of the tasks without it",
        f"Eq. 1, with each call's own G and T and means for the rest, is off by {abs(off['client']) * 100:.1f} % for the client, {abs(off['client, gate']) * 100:.1f} % with the gate and "
        f"{abs(off['engine']) * 100:.1f} % for the engine",
        f"the engine gains {gains[0]} points on the client where tools are short (aim: 3) and {gains[1]} where they are long",
        f"only {percent(engine['resident_share'])} of the calls were answered in the batch, and of a tool's {none['tool_s']:.2f} s the agents waited for {engine['tool_s']:.2f} s",
        f"a token takes {1000 * parameters['decode_s']:.0f} ms to write and {1000 * parameters['prefill_s']:.0f} ms to read",
        f"Its G is {engine['generation_s']:.2f} s, the client's {client['generation_s']:.2f} s",
        f"Eq. 6 is {percent(engine['task_s'] / engine['eq6_s'] - 1)} off",
        *([f"with what a right call waits for and its verification {percent(engine['task_s'] / engine['eq6_measured_s'] - 1)}"]
          if "eq6_measured_s" in engine else []),
    ]


def llama_cpp_sentences() -> list[str]:
    found = results("llama_cpp")
    one = {row["contender"]: row for row in found["contenders"]}
    plain, grammar = one["no grammar"], one["llama.cpp, its grammar"]
    first, sampler = one["llama.cpp, its grammar, best token first"], one["llama.cpp, sampler of tooldecode"]
    drafted, ends = one["tooldecode, forced text drafted"], one["the same, answers always end"]
    assert all(row["conforming"] == row["calls"] for row in found["contenders"] if "no grammar" not in row["contender"])
    server = {row["request"]: row for row in results("llama_server")["requests"]}
    calls, tools = server["calls 400"], [server[f"tools {count}"] for count in (1, 10, 117, 400)]
    assert all(row["equal"] for row in server.values())
    ratios = [row[key]["ratio"] for row in tools for key in ("first_ms", "token_ms")]
    dearer = tools[3]["cold_first_ms"]["tooldecode"] - tools[3]["cold_first_ms"]["llama.cpp"]
    return [f"`calls 400` has its first token in {calls['first_ms']['ratio']:.2f} of the time and later ones in "
            f"{calls['token_ms']['ratio']:.2f}. `tools` take {min(ratios):.2f} to {max(ratios):.2f} of the time; the first "
            f"request with 400 tools takes {dearer:.0f} ms longer",
            f"On these {plain['calls']} calls, llama.cpp's grammar takes {percent(grammar['constraint_share'], 0)} of a call's time "
            f"without the prompt, and {percent(first['constraint_share'])} with the best token first; tooldecode's sampler takes "
            f"{percent(sampler['constraint_share'])}, and its decoder takes {percent(ends['constraint_share'])} when answers always "
            "end",
            f"need {drafted['passes_per_call']:.0f} passes instead of {grammar['passes_per_call']:.0f}. A call takes "
            f"{drafted['time_to_grammar']:.2f} of the time under llama.cpp's grammar (aim: 0.6), and "
            f"{drafted['time_to_token_first']:.2f} of that with the best token first",
            f"{plain['conforming']} of {plain['calls']} free answers conform",
            f"all {found['same_texts']} texts are equal in both engines"]


_BFCL = ("simple_python", "multiple", "parallel", "parallel_multiple")


def engine_drafts_row(found: dict, kind: str) -> list[str]:
    every = [found["files"][f"{name}.jsonl"][kind] for name in _BFCL] + [found["all"][kind]]
    accepted = every[-1]["accepted"]
    return [*(f"{one['tokens_per_step']:.2f}" for one in every), "" if accepted is None else percent(accepted, 0)]


def engine_drafts_table(name: str = "engine_drafts") -> str:
    found = results(name)["results"]
    words = {"none": "none", "history": "history", "forced": "fast-forward", "both": "both"}
    return table(["drafts", *_BFCL, "all", "accepted"],
                 [[word, *engine_drafts_row(found, kind)] for kind, word in words.items()])


def engine_cached_drafts_table() -> str:
    short, long = (results(name)["results"] for name in ("engine_cached_drafts", "engine_cached_drafts_32"))
    rows = [(short, "both", "history and fast-forward"), (short, "cached", "and cached calls"), (long, "cached", "and cached calls")]
    return table(["drafts", "most tokens of a draft", *_BFCL, "all", "accepted"],
                 [[word, str(found["draft_tokens"]), *engine_drafts_row(found, kind)] for found, kind, word in rows])


def page_sentences() -> dict[str, list[str]]:
    """Sentences with figures on the pages in docs."""
    peers = results("peers")
    uri = peers["stress"]["tooldecode"]["cases"]["format uri"]["mask_us"]["mean"]
    many = peers["tools_10000"]["tooldecode"]["build_first_mask_us"]["p50"]
    one = {row["contender"]: row for row in results("llama_cpp")["contenders"]}
    plain, grammar = one["no grammar"], one["llama.cpp, its grammar"]
    first, sampler = one["llama.cpp, its grammar, best token first"], one["llama.cpp, sampler of tooldecode"]
    drafted = one["tooldecode, forced text drafted"]
    calls = next(row for row in results("llama_server")["requests"] if row["request"] == "calls 400")
    drafts, cached, sglang = (results(name)["results"] for name in (
        "engine_drafts", "engine_cached_drafts", "engine_sglang_drafts"))
    return {
        "CHANGELOG.md": [
            f"drafts fast-forward tokens and history: {drafts['all']['both']['tokens_per_step']:.1f} tokens per step on BFCL's calls",
            f"history without a draft model: {sglang['all']['both']['tokens_per_step']:.1f} tokens per step on BFCL's calls",
            f"gives cached calls to the proposer as drafts: {cached['all']['cached']['tokens_per_step']:.1f} tokens per step by "
            f"replay, with drafts of {cached['draft_tokens']}"],
        "docs/limits.md": [f"{uri:.0f} us on average for `uri`", f"10,000 tools take {many / 1000:.0f} ms to the first mask"],
        "docs/llama_cpp.md": [
            f"first token in {calls['first_ms']['ratio']:.2f} of the time, and each later one in {calls['token_ms']['ratio']:.2f}",
            f"Its grammar takes {percent(grammar['constraint_share'], 0)} of a call's time without the prompt if it filters all "
            f"tokens, and {percent(first['constraint_share'])} if the best token is tried first; this sampler takes "
            f"{percent(sampler['constraint_share'])}. That is for {plain['calls']} calls of SmolLM2-135M",
            f"need {drafted['passes_per_call']:.0f} passes instead of {grammar['passes_per_call']:.0f}"],
    }


def constraint_sentences() -> list[str]:
    found = results("constraint")["microseconds"]
    cold, warm = (found[f"along_answers/family_{visit}"]["mean"] / found[f"along_answers/one_{visit}"]["mean"]
                  for visit in ("cold", "warm"))
    return [f"The floor of a mask is a copy of its 19 KB, which takes {found['copy_of_a_mask']['mean']:.2f} us",
            f"they take {cold:.1f} times as long as those of `hermes` alone at a first visit and {warm:.1f} times later, on "
            "average; the aim was 1.5"]


def tables(text: str, name_of_file: str, all_of: dict, write: bool) -> tuple[str, int]:
    """The text with its tables anew, and how many of them differ."""
    wrong = 0
    for name, make in all_of.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        assert text.count(begin) == text.count(end) == 1, f"{name_of_file} has no place for the table {name}"
        before, rest = text.split(begin)
        old, after = rest.split(end)
        made = make()
        if old == made:
            continue
        if write:
            text = before + begin + made + end + after
            print(f"{name}: written")
            continue
        wrong += 1
        print(f"{name}: differs from the results; `python3 tests/readme.py --write` would write\n{made}")
    return text, wrong


def code(path: str, name: str | None) -> str:
    """A file, or what stands in it between the two lines `//! [name]`, as far to the left as it goes."""
    whole = (ROOT / path).read_text(encoding="utf-8")
    if name is not None:
        parts = re.split(rf"^ *//! \[{re.escape(name)}\]\n", whole, flags=re.MULTILINE)
        assert len(parts) == 3, f"{path} has no two lines //! [{name}]"
        whole = parts[1]
    whole = re.sub(r"^ *//! \[\w+\]\n", "", whole, flags=re.MULTILINE)
    return textwrap.dedent(whole).rstrip()


def blocks(text: str, name_of_file: str, write: bool) -> tuple[str, int]:
    """The text with its code cut again, and how many blocks differ or come from no file."""
    wrong = 0

    def anew(block: re.Match) -> str:
        nonlocal wrong
        if block["path"] is None:
            if block["language"] in ("cpp", "c", "cuda"):
                wrong += 1
                print(f"{name_of_file} has code that is cut from no file:\n{block['code']}")
            return block[0]
        made = code(block["path"], block["name"])
        if made == block["code"]:
            return block[0]
        if write:
            print(f"{name_of_file}, {block['path']}: written")
            return f"{block['mark']}```{block['language']}\n{made}\n```"
        wrong += 1
        print(f"{block['path']}: {name_of_file} shows other code; `python3 tests/readme.py --write` would write\n{made}")
        return block[0]

    text = re.sub(r"^(?P<mark><!-- (?P<path>[\w/.]+)(?:: (?P<name>\w+))? -->\n)?```(?P<language>\w*)\n(?P<code>.*?)\n?^```", anew,
                  text, flags=re.DOTALL | re.MULTILINE)
    return text, wrong


def links() -> list[str]:
    """Relative links that lead nowhere, and pages in docs that no path of links from docs/landing.md reaches."""
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md",
             *sorted((ROOT / "docs").glob("*.md"))]
    wrong, leads = [], {}
    for page in pages:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", text)
        for target in (one or other for one, other in found):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            leads.setdefault(page, set()).add(file)
            if not file.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target} is not there")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                wrong.append(f"{page.relative_to(ROOT)}: {path} has no heading #{anchor}")
    reached, waiting = set(), [ROOT / "docs/landing.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting.extend(leads.get(page, ()))
    return wrong + [f"docs/landing.md leads not to {page.name}" for page in pages if page.parent.name == "docs" and page not in reached]


def anchors(page: pathlib.Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def keywords() -> list[str]:
    """The keywords of JSON Schema that the compiler knows and docs/json_schema.md does not tell of, or the other way."""
    source = (ROOT / "include/tooldecode/schema/keywords.ipp").read_text(encoding="utf-8")
    known = set(re.findall(r'\{"(\$?\w+)", \{', source))
    page = (ROOT / "docs/json_schema.md").read_text(encoding="utf-8")
    told = {name for line in page.splitlines() if line.startswith("| `")
            for name in re.findall(r"`(\$?\w+)`", line.split(" | ")[0])}
    assert len(known) > 50, known
    return sorted(known ^ told)


def main() -> int:
    write = "--write" in sys.argv
    wrong = 0
    texts = {}
    pages = {f"docs/{path.name}": {} for path in sorted((ROOT / "docs").glob("*.md"))}
    pages["docs/vllm.md"] = {"drafts": engine_drafts_table, "cached drafts": engine_cached_drafts_table}
    pages["docs/sglang.md"] = {"drafts": lambda: engine_drafts_table("engine_sglang_drafts")}
    pages |= {"CHANGELOG.md": {}, "README.md": {"before": before_table, "measured": measured_table},
              "docs/measured.md": {"measured": all_measured_table}, "benchmarks/README.md": TABLES}
    for name, all_of in pages.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text, differ = tables(text, name, all_of, write)
        wrong += differ
        text, differ = blocks(text, name, write)
        wrong += differ
        if write and text != (ROOT / name).read_text(encoding="utf-8"):
            (ROOT / name).write_text(text, encoding="utf-8")
        texts[name] = text
    for name in keywords():
        wrong += 1
        print(f"docs/json_schema.md and include/tooldecode/schema/keywords.ipp: one of them lacks {name}")
    if texts["README.md"].count("\n") > 150:
        wrong += 1
        print("README.md is longer than 150 lines")
    for text in links():
        wrong += 1
        print(text)
    flat = " ".join(texts["benchmarks/README.md"].split())
    for make in (eval_sentences, coder_sentences, speed_sentences, draft_sentences, fr_spec_sentences, pruned_sentences, pruned_model_sentences, equality_sentences, head_sentences,
                 latency_sentences, guessed_sentences, restbench_sentences, guesses_sentences, constraint_sentences,
                 llama_cpp_sentences, larger_sentences, awareness_sentences, cuda_sentences):
        for sentence in make():
            if sentence not in flat:
                wrong += 1
                print(f"not in benchmarks/README.md: {sentence}")
    for name, sentences in page_sentences().items():
        for sentence in sentences:
            if sentence not in " ".join(texts[name].split()):
                wrong += 1
                print(f"not in {name}: {sentence}")
    print("README.md and benchmarks/README.md say what the results say" if wrong == 0 else f"{wrong} places differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
