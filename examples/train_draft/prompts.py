"""The prompts that a draft layer is trained on, and those that are held out: calls of tools, of one tool that is there
alone, dialogue, code, mathematics and prose.

    python examples/train_draft/prompts.py --shared DATA

prints what there is of each. The prompts of a target whose chat template lists tools have them there."""

import argparse
import gzip
import hashlib
import json
import os
import random
import re
from collections import Counter
from pathlib import Path

from target import ROOT, Target, load_tokenizer, model_option
from prompt import answer_text, signature  # of examples/tiny_model

DOMAINS = ("tools", "lone tools", "dialogue", "code", "math", "prose")
HELD_OUT_OF_256 = 20
LONGEST = {"tools": 520, "lone tools": 520, "dialogue": 200, "code": 220, "math": 200, "prose": 220}

EXAMPLE = [{"name": "function_name", "arguments": {"parameter_name": "value"}}]
CALLS_ALONE = f"Answer with function calls alone. A call is written like this:\n{answer_text(EXAMPLE, 'python')}"

# No file of these has a row that anything is measured with: that is BFCL's simple_python.
CALLS = (
    "bfcl/multiple.jsonl",
    "bfcl/parallel.jsonl",
    "bfcl/parallel_multiple.jsonl",
    "bfcl/live_simple.jsonl",
    "bfcl/live_multiple.jsonl.gz",
    "bfcl/live_parallel.jsonl",
    "bfcl/live_relevance.jsonl",
    "bfcl/irrelevance.jsonl",
    "bfcl/live_irrelevance.jsonl.gz",
    "bfcl/exec.jsonl",
    "apibank/level1.jsonl",
    "tools/toolalpaca.jsonl",
    "tools/toolbench_queries.jsonl.gz",
)
MEASURED = "bfcl/simple_python.jsonl"


def read_text(file: Path) -> str:
    opened = gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")
    with opened:
        return opened.read()


def read_lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in read_text(file).split("\n") if line]


def question_with_tools(functions: list[dict], question: str) -> str:
    """A user's turn with the documents of tools, as the program writes it for a model that has no place for them."""
    return f"Functions:\n{''.join(signature({'function': function}) for function in functions)}\nQuestion: {question}"


def call_turns(functions: list[dict], question: str) -> list[tuple[str, str]]:
    """The turns of the program's prompt for a call."""
    turns = [("system", CALLS_ALONE)]
    for shot in read_lines(ROOT / "examples/data/shots.jsonl")[:2]:
        turns += [
            ("user", question_with_tools(shot["tools"], shot["messages"][0]["content"])),
            ("assistant", answer_text(shot["calls"], "python")),
        ]
    return [*turns, ("user", question_with_tools(functions, question))]


def call_text(target: Target, functions: list[dict], question: str) -> str:
    """The program's prompt for a call; a template that lists tools needs no examples."""
    if target.lists_tools:
        return target.chat([("user", question)], functions)
    return target.chat(call_turns(functions, question))


def question_of(row: dict) -> str:
    """What a row of any of the files asks."""
    if "apis" in row:
        return re.findall(r"^User: (.*)$", row["input"], re.MULTILINE)[-1]
    if "query" in row:
        return row["query"]
    question = row["question"]
    return question if isinstance(question, str) else "\n".join(turn["content"] for turn in question)


def functions_of(row: dict) -> list[dict]:
    """The documents of what it may call, API-Bank's under the names that others use."""
    if "functions" in row:
        return row["functions"]
    return [{**api, "parameters": api["json_schema"]} for api in row["apis"]]


def rows_of_calls(shared: Path):
    """What is asked, the documents of what may be called, and whatever else a row says."""
    measured = {question_of(row) for row in read_lines(shared / MEASURED)}
    for name in CALLS:
        for row in read_lines(shared / name):
            if (question := question_of(row)) not in measured:
                rest = {key: value for key, value in row.items() if key not in ("functions", "apis")}
                yield question, functions_of(row), json.dumps(rest)


def calls(shared: Path, _: random.Random):
    for question, functions, _ in rows_of_calls(shared):
        yield question, functions


def lone_calls(shared: Path, _: random.Random):
    """Two of several functions, each as if there were no other; those that the row's answer names before others."""
    for question, functions, rest in rows_of_calls(shared):
        if len(functions) > 1:
            for function in sorted(functions, key=lambda function: function["name"] not in rest)[:2]:
                yield question, [function]


def dialogues(shared: Path, rng: random.Random):
    """What people said to assistants; half of those with several turns go on from a later one."""
    seen = set()
    for dialogue in read_text(shared / "corpus/dialogue.txt.gz").split("\n\nUSER: "):
        turns = re.split(r"\n(USER|ASSISTANT): ", "\nUSER: " + dialogue.removeprefix("USER: "))[1:]
        turns = [(role.lower(), text.strip()) for role, text in zip(turns[::2], turns[1::2])]
        last = rng.choice([index for index, (role, _) in enumerate(turns) if role == "user"])
        if (text := " ".join(text for _, text in turns[: last + 1])) not in seen:
            seen.add(text)
            yield text, turns[: last + 1]
    for name in ("apibank/level1.jsonl", "tools/toolbench_queries.jsonl.gz", "bfcl/live_irrelevance.jsonl.gz"):
        for row in read_lines(shared / name):
            if (question := question_of(row)) not in seen:
                seen.add(question)
                yield question, [("user", question)]


def code(shared: Path, rng: random.Random):
    """Beginnings of functions to complete and pieces of files to explain."""
    text = read_text(shared / "corpus/code.txt.gz")
    python = re.findall(r'^( *)(def \w+\(.*\)(?: ->.*)?:\n\1 +"""(?:(?!""")[\s\S])+""")', text, re.MULTILINE)
    for indent, function in python:
        piece = re.sub(f"^{indent}", "", function, flags=re.MULTILINE)
        yield piece, [("user", f"Complete this Python function:\n\n```python\n{piece}\n```")]
    lines = text.split("\n")
    asks = (
        "Explain what this code does:",
        "Write a unit test for this code:",
        "Rewrite this code so that it is easier to read:",
        "Write this in Python:",
        "What could go wrong in this code?",
    )
    for start in range(0, len(lines) - 30, 45):
        piece = "\n".join(lines[start : start + rng.randint(6, 14)]).strip("\n")
        if len(piece) > 120:
            yield piece, [("user", f"{rng.choice(asks)}\n\n```\n{piece}\n```")]


def mathematics(shared: Path, rng: random.Random):
    endings = ("", "", " Think step by step.", " Show how you get there.")
    for question in re.findall(r"^Question: (.*)$", read_text(shared / "corpus/math.txt.gz"), re.MULTILINE):
        yield question, [("user", question + rng.choice(endings))]


def prose(shared: Path, rng: random.Random):
    asks = (
        "Summarize this passage:",
        "Continue this text:",
        "Rewrite this in simple words:",
        "What is this passage about?",
        "List the main points of this text:",
        "Write a short story that begins like this:",
    )
    for paragraph in read_text(shared / "corpus/prose.txt.gz").split("\n\n"):
        piece = paragraph.strip()
        if 250 < len(piece) < 900:
            yield piece, [("user", f"{rng.choice(asks)}\n\n{piece}")]


def is_held_out(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] < HELD_OUT_OF_256


def read_prompts(shared: Path, target: Target, tokenizer, most: int = 3000) -> tuple[dict, dict]:
    """The prompts of each domain as tokens, in an order drawn once: those of training, and those held out.

    A domain gives texts, each with the documents of its tools or with the turns of a dialogue."""
    parts = {}, {}

    def written(text: str, given: list) -> str:
        return target.chat(given) if given and isinstance(given[0], tuple) else call_text(target, given, text)

    for domain, read in zip(DOMAINS, (calls, lone_calls, dialogues, code, mathematics, prose)):
        rows = list(read(shared, random.Random(f"{domain} texts")))
        random.Random(f"{domain} order").shuffle(rows)
        encoded = tokenizer.encode_batch([written(*row) for row in rows[:most]], add_special_tokens=False)
        for part in parts:
            part[domain] = []
        for (text, _), encoding in zip(rows, encoded):
            if len(encoding.ids) <= LONGEST[domain]:
                parts[is_held_out(text)][domain].append(encoding.ids)
    return parts


def shared_data(parser: argparse.ArgumentParser):
    """Adds the option that says where the data lie."""
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(os.environ.get("TOOLDECODE_SHARED_DATA", ROOT / "../shared/data")),
        help="folder of the data sets (default: $TOOLDECODE_SHARED_DATA)",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared_data(parser)
    model_option(parser)
    options = parser.parse_args()
    target = Target(options.model)
    for name, part in zip(("training", "held out"), read_prompts(options.shared, target, load_tokenizer(target.file))):
        for domain, rows in part.items():
            lengths = Counter(length // 100 * 100 for length in map(len, rows))
            spread = " ".join(f"{least}+:{count}" for least, count in sorted(lengths.items()))
            print(f"{name:9} {domain:9} {len(rows):5} prompts, {sum(map(len, rows)):7} tokens, by length {spread}")


if __name__ == "__main__":
    main()
