"""ToolDec's Table 5 on RestBench: is a path of API calls found without the APIs' documentation?

    LLAMA_CPP_LIB_PATH=FOLDER python3 benchmarks/real_models/paths.py --model FILE.gguf... --shared DATA [--json OUT]

Needs llama-cpp-python and tooldecode. The model lists the functions that answer a query, as a JSON array of names. Four
conditions: names and descriptions of all functions in the prompt, or nothing of them; decoded freely, or over a trie of
the names. The prompt's examples are queries of Spotify, so none names a function of TMDB. Decoding is greedy.

A path is correct if it contains the annotated path in order, as in RestBench, and names no function that does not exist;
exact if it is that path. Placeholders are
not compared, because the annotations name them in several ways. A format error is an answer that is no array of strings;
a name error names a function that does not exist.
"""
import argparse
import json
import math
import pathlib
import re
import sys
from collections.abc import Callable

import llama_cpp
import tooldecode
from tooldecode.llama_cpp import LogitsProcessor, prompt_tokens, vocabulary_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_record  # noqa: E402

EXAMPLES = 4
MOST_FUNCTIONS = 4  # annotated paths have one to three
MAX_TOKENS = 128
TASK = ("You plan calls to the REST API of {service}. Answer with a JSON array of the functions to call, in order, such "
        "that each has the ids that it needs from those before it. Write nothing else.")
CONDITIONS = {"documented, free": (True, False), "documented, ToolDec": (True, True),
              "undocumented, free": (False, False), "undocumented, ToolDec": (False, True)}


def read(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def documentation(functions: list[dict]) -> str:
    """A line per function: its name and the first two sentences of its description, which begins with a title."""
    lines = []
    for function in functions:
        sentences = re.split(r"(?<=\.)\s+", function["description"].split("\n")[0])
        lines.append(f"{function['name']}: {' '.join(sentences[:2])}")
    return "\n".join(lines)


def normal(name: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", name.strip())


def contains(path: list[str], annotated: list[str]) -> bool:
    """Whether `annotated` is a subsequence of `path`."""
    rest = iter(path)
    return all(any(name == other for other in rest) for name in annotated)


def messages(query: str, examples: list[dict], functions: list[dict] | None) -> list[dict]:
    system = TASK.format(service="The Movie Database (TMDB)")
    if functions is not None:
        system += "\n\nFunctions:\n" + documentation(functions)
    dialogue = [{"role": "system", "content": system}]
    for example in examples:
        dialogue += [{"role": "user", "content": f"Spotify: {example['query']}"},
                     {"role": "assistant", "content": json.dumps([name.strip() for name in example["solution"]])}]
    return [*dialogue, {"role": "user", "content": f"TMDB: {query}"}]


def generate(llama: llama_cpp.Llama, prompt: list[int], processor: LogitsProcessor | None) -> str:
    tokens: list[int] = []
    processors = llama_cpp.LogitsProcessorList([processor] if processor else [])
    for token in llama.generate(prompt, temp=0.0, repeat_penalty=1.0, logits_processor=processors):
        if llama_cpp.llama_vocab_is_eog(llama._model.vocab, token):
            break
        tokens.append(token)
        if len(tokens) == MAX_TOKENS:
            break
    return llama.detokenize(tokens).decode(errors="replace")


def judge(text: str, annotated: list[str], names: set[str]) -> dict:
    """What the answer's first JSON array says, next to the annotated path."""
    path = None
    if found := re.search(r"\[[^\[\]]*\]", text):
        try:
            path = json.loads(found[0])
        except ValueError:
            path = None
    if not isinstance(path, list) or not path or not all(isinstance(name, str) for name in path):
        return {"class": "format", "exact": False}
    path = [normal(name) for name in path]
    if not set(path) <= names:
        return {"class": "name", "exact": False}
    return {"class": "correct" if contains(path, annotated) else "path", "exact": path == annotated}


def answer(path: pathlib.Path, threads: int, functions: list[dict], queries: list[dict], examples: list[dict],
           known: dict, keep: Callable[[dict], None]) -> None:
    """Asks the model for each condition and query that is not known, one condition after another: prompts share a prefix."""
    names = {normal(function["name"]) for function in functions}
    llama = llama_cpp.Llama(str(path), n_ctx=8192, n_threads=threads, n_threads_batch=threads, verbose=False)
    constraint = tooldecode.json_schema(vocabulary_of(llama), json.dumps(
        {"type": "array", "items": {"enum": [function["name"] for function in functions]}, "minItems": 1,
         "maxItems": MOST_FUNCTIONS}))
    for condition, (documented, constrained) in CONDITIONS.items():
        for query in queries:
            if (path.stem, condition, query["id"]) in known:
                continue
            prompt = prompt_tokens(llama, messages(query["query"], examples, functions if documented else None))
            text = generate(llama, prompt, LogitsProcessor(constraint, len(prompt), MAX_TOKENS) if constrained else None)
            keep({"model": path.stem, "condition": condition, "id": query["id"], "prompt_tokens": len(prompt), "text": text,
                  **judge(text, [normal(name) for name in query["solution"]], names)})


def interval(count: int, total: int) -> list[float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.959964, count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return [max(0.0, middle - half), min(1.0, middle + half)]


def mcnemar(first: list[bool], second: list[bool]) -> float:
    """The exact p value of two paired shares."""
    up = sum(b and not a for a, b in zip(first, second, strict=True))
    down = sum(a and not b for a, b in zip(first, second, strict=True))
    tail = sum(math.comb(up + down, i) for i in range(min(up, down) + 1)) / 2 ** (up + down)
    return min(1.0, 2 * tail)


def summary(conditions: list[list[dict]]) -> dict:
    """The counts of each condition, and the p value of the paper's two."""
    results, correct = {}, {}
    for condition, some in zip(CONDITIONS, conditions, strict=True):
        correct[condition] = [row["class"] == "correct" for row in some]
        count = sum(correct[condition])
        results[condition] = {
            "correct": count, "exact": sum(row["exact"] for row in some), "ci95": interval(count, len(some)),
            "format_errors": sum(row["class"] == "format" for row in some),
            "name_errors": sum(row["class"] == "name" for row in some),
            "prompt_tokens": sum(row["prompt_tokens"] for row in some) / len(some)}
    return {"conditions": results, "p": mcnemar(correct["documented, free"], correct["undocumented, ToolDec"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--model", type=pathlib.Path, nargs="+", required=True, help="GGUF files of instructed models")
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="directory with tools")
    parser.add_argument("--program", default="build/release/examples/tooldecode", help="writes the record of the run")
    parser.add_argument("--json", type=pathlib.Path, help="results")
    parser.add_argument("--answers", type=pathlib.Path, help="what the model wrote, as JSONL; continues where this ends")
    parser.add_argument("--limit", type=int, default=0, help="first queries only; 0: all")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    functions = read(options.shared / "tools/restbench_tmdb_functions.jsonl")
    queries = read(options.shared / "tools/restbench_tmdb_queries.jsonl")[:options.limit or None]
    examples = read(options.shared / "tools/restbench_spotify_queries.jsonl")[:EXAMPLES]
    rows: dict[tuple[str, str, str], dict] = {}
    if options.answers and options.answers.exists():
        rows = {(row["model"], row["condition"], row["id"]): row for row in read(options.answers)}

    def keep(row: dict) -> None:
        rows[row["model"], row["condition"], row["id"]] = row
        if options.answers:
            with options.answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    models = {}
    for path in options.model:
        answer(path, options.threads, functions, queries, examples, rows, keep)
        models[path.stem] = summary([[rows[path.stem, condition, query["id"]] for query in queries]
                                     for condition in CONDITIONS])
        for condition, one in models[path.stem]["conditions"].items():
            print(f"{path.stem}: {condition:22} correct {one['correct']}/{len(queries)}, exact {one['exact']}, format errors "
                  f"{one['format_errors']}, name errors {one['name_errors']}, prompt {one['prompt_tokens']:.0f} tokens")
        print(f"documented, free against undocumented, ToolDec: McNemar p = {models[path.stem]['p']:.3g}")
    if options.json:
        record = run_record.run_record([options.program, "--made-by"], ["llama-cpp-python"], ["bash", "benchmarks/real_models/run.sh", "paths"])
        options.json.write_text(json.dumps({"made_by": record, "queries": len(queries), "functions": len(functions),
                                            "models": models}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
