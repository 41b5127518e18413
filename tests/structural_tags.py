"""Structural tags judged by XGrammar, whose language they are.

    python tests/structural_tags.py PROGRAM [FORMATS] [--seed N]

Makes random formats over three letters, and asks `tooldecode check` and XGrammar about every text of up to four
letters and some longer ones: both must accept the same. Left out are triggers inside another one or inside a text that
is excluded, of which XGrammar lets some pass unseen. Then XGrammar judges what `tooldecode sample` draws from objects
in every style. Says why it is skipped, with exit code 77, where something is missing.
"""
import argparse
import collections
import importlib.util
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
STYLES = ("json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "glm_xml", "cohere_xml", "kimi_k3_xml",
          "deepseek_v4_1_xml")
# Closed objects, as XGrammar has those that do not say what they are; no integers, which may be 1e3 here.
OBJECTS = (
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"],
     "additionalProperties": False},
    {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "boolean"}}, "word": {"enum": ["red", "green"]},
        "inner": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"],
                  "additionalProperties": False}}, "required": ["inner"], "additionalProperties": False},
)


def skip(reason: str):
    print(f"SKIPPED: structural_tags.py {reason}", file=sys.stderr)
    sys.exit(77)


class Absent(type):
    """Stands for what a module that is not installed has."""

    def __getattr__(cls, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: False


def absent(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(name, (), {"__init__": lambda *_, **__: None})


class Formats:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def word(self, least: int, most: int) -> str:
        return "".join(self.random.choices("abc", k=self.random.randint(least, most)))

    def words(self, share: float) -> list:
        return [self.word(1, 3)] if self.random.random() < share else []

    def tag(self, depth: int, begin: str) -> dict:
        ends = [self.word(1, 2), self.word(1, 2)]
        return {"type": "tag", "begin": begin, "content": self.format(depth - 1),
                "end": ends if self.random.random() < 0.3 else ends[0]}

    def format(self, depth: int) -> dict:
        choose, share = self.random.choice, self.random.random
        kinds = ["const_string", "any_text", "regex"]
        if depth > 0:
            kinds += ["sequence", "or", "optional", "plus", "star", "repeat", "tag", "triggered_tags",
                      "tags_with_separator", "dispatch"] * 2
        kind = choose(kinds)
        made = {"type": kind}
        if kind == "const_string":
            made["value"] = self.word(0, 3)
        elif kind == "any_text":
            made |= {"excludes": self.words(0.5)} | ({"max_chars": choose(range(4))} if share() < 0.3 else {})
        elif kind == "regex":
            made["pattern"] = choose(["ab*", "[ab]c?", "a|bc", "(ab)*c", "[^a]{2}"])
        elif kind in ("sequence", "or"):
            made["elements"] = [self.format(depth - 1) for _ in range(choose((1, 2, 3)))]
        elif kind == "tag":
            made = self.tag(depth, self.word(1, 3))
        elif kind == "tags_with_separator":
            made |= {"tags": [self.tag(depth, self.word(1, 2)) for _ in range(choose((1, 2)))],
                     "separator": self.word(0, 2), "at_least_one": share() < 0.4, "stop_after_first": share() < 0.3}
        elif kind == "triggered_tags":
            triggers = sorted({self.word(1, 2) for _ in range(choose((1, 2)))})
            made |= {"triggers": triggers, "excludes": self.words(0.4), "at_least_one": share() < 0.3,
                     "tags": [self.tag(depth, one + self.word(0, 2)) for one in triggers],
                     "stop_after_first": share() < 0.3}
        elif kind == "dispatch":
            made |= {"rules": [[self.word(1, 2), self.format(depth - 1)] for _ in range(choose((1, 2)))],
                     "loop": share() < 0.6, "excludes": self.words(0.4)}
        else:
            made["content"] = self.format(depth - 1)
            if kind == "repeat":
                least = choose((0, 1, 2))
                made |= {"min": least, "max": choose((-1, least, least + 1))}
        return made


def is_plain(made) -> bool:
    """Whether no trigger stands inside another one, or inside a text that is excluded."""
    if isinstance(made, list):
        return all(map(is_plain, made))
    if not isinstance(made, dict):
        return True
    triggers = made.get("triggers") or [rule[0] for rule in made.get("rules", [])]
    outer = [trigger[:-1] for trigger in triggers] + (made.get("excludes", []) if triggers else [])
    return not any(trigger in text for trigger in triggers for text in outer) and all(map(is_plain, made.values()))


def run(program: str, command: str, rows: list, *options: str) -> list:
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = subprocess.run(
            [program, command, "--format", "structural-tag", *options, str(path)], capture_output=True, text=True,
            encoding="utf-8", timeout=600, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("formats", nargs="?", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.path.append(str(ROOT / "build/python/judge"))  # where tests/python.sh puts it
    for module in ("torch", "transformers"):  # which it imports for their types only
        if importlib.util.find_spec(module) is None:
            sys.modules[module] = types.ModuleType(module)
            sys.modules[module].__getattr__ = absent
    try:
        import xgrammar
        from xgrammar.testing import _is_grammar_accept_string as accepts
    except Exception as error:
        skip(f"needs the Python package xgrammar ({error})")

    def grammar_of(tag):
        return xgrammar.Grammar.from_structural_tag({"type": "structural_tag", **tag})

    counts = collections.Counter()
    wrong = []
    made = Formats(options.seed)
    formats = list(itertools.islice(filter(is_plain, (made.format(1 + k % 3) for k in itertools.count())),
                                    options.formats))
    texts = ["".join(letters) for length in range(5) for letters in itertools.product("abc", repeat=length)]
    texts += [made.word(5, 8) for _ in range(80)]
    rows = [{"id": k, "spec": {"format": one}, "tests": [{"text": text} for text in texts]}
            for k, one in enumerate(formats)]
    tiny = ROOT / "examples/data/tiny"
    verdicts = iter(run(options.program, "check", rows, "--vocabulary", str(tiny)))
    for row in rows:
        said = list(itertools.islice(verdicts, len(texts)))
        try:
            grammar = grammar_of(row["spec"])
        except RuntimeError as error:
            grammar = None
            refusal = str(error)[-100:]
        is_refused = "refused" in said[0]
        counts["formats refused by both" if is_refused and grammar is None else "formats"] += 1
        if is_refused != (grammar is None):
            wrong.append(f"{json.dumps(row['spec'])}: {said[0].get('reason') if is_refused else refusal}")
        if is_refused or grammar is None:
            continue
        for text, verdict in zip(texts, said):
            counts["texts"] += 1
            counts["accepted"] += verdict["accepted"]
            if accepts(grammar, text) != verdict["accepted"]:
                wrong.append(f"{json.dumps(row['spec'])}: {text!r} accepted: {verdict['accepted']}")

    rows = [{"spec": {"format": {"type": "json_schema", "json_schema": schema, "style": style}}}
            for style in STYLES for schema in OBJECTS]
    for drawn in run(options.program, "sample", rows, "--vocabulary", str(tiny / "tokenizer.json"),
                     "--count", "180", "--seed", str(options.seed)):
        counts["texts drawn"] += 1
        if not accepts(grammar_of(drawn["spec"]), drawn["text"]):
            wrong.append(f"{json.dumps(drawn['spec'])}: drew {drawn['text']!r}")
    for one in wrong[:20]:
        print(f"wrong: {one}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f", {len(wrong)} wrong")
    return 1 if wrong or not counts["texts drawn"] else 0


if __name__ == "__main__":
    sys.exit(main())
