"""Constrained generations judged from outside: Python's own parsers and the package jsonschema.

    python tests/generations.py PROGRAM [COUNT]

Draws calls over shared tools by random, peaked and adversarial logits, reads each text back with ast or
json, and validates the arguments; the formats side by side, one process each. Says why it is skipped, with
exit code 77, where something is missing.
"""
import ast
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

FORMATS = ("python", "hermes")


def skip(reason: str):
    print(f"SKIPPED: generations.py {reason}", file=sys.stderr)
    sys.exit(77)


def read_python(text: str) -> list:
    def name(node):
        return node.id if isinstance(node, ast.Name) else f"{name(node.value)}.{node.attr}"

    calls = ast.parse(text.strip(), mode="eval").body.elts
    return [{"name": name(call.func),
             "arguments": {item.arg: ast.literal_eval(item.value) for item in call.keywords}} for call in calls]


def read_hermes(text: str) -> list:
    calls = []
    for block in text.split("<tool_call>")[1:]:
        body, rest = block.split("</tool_call>", 1)
        assert not rest.strip(), "text after a call"
        calls.append(json.loads(body))
    return calls


def judge(form: str, command: list) -> tuple:
    """Runs one sampler and judges its lines: how many, how many calls, what is wrong."""
    import jsonschema
    started = time.monotonic()
    judged = calls = 0
    seeds = set()
    problems = []
    validators = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as program:
        for line in program.stdout:
            row = json.loads(line)
            judged += 1
            seeds.add(row["seed"])
            try:
                made = read_python(row["text"]) if form == "python" else read_hermes(row["text"])
                assert made, "no call"
                for call in made:
                    calls += 1
                    schema = row["parameters"][call["name"]]
                    key = json.dumps(schema, sort_keys=True)
                    if key not in validators:
                        validators[key] = jsonschema.Draft202012Validator(schema)
                    validators[key].validate(call["arguments"])
            except Exception as error:  # every kind of failure is one to report
                problems.append(f"{form} seed {row['seed']}: {row['text'][:200]!r}: {error!r:.300}")
    if program.returncode != 0:
        problems.append(f"{form}: the program ended with {program.returncode}")
    print(f"{form}: {judged} generations, seeds {min(seeds, default=0)} to {max(seeds, default=0)}, "
          f"{calls} calls, {time.monotonic() - started:.1f} s", flush=True)
    return judged, calls, problems


def main() -> int:
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        skip("needs the Python package jsonschema")
    root = pathlib.Path(__file__).resolve().parent.parent
    shared = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", root / ".." / "shared" / "data"))
    rows = [shared / "bfcl" / name for name in ("simple_python.jsonl", "multiple.jsonl", "live_simple.jsonl")]
    vocabulary = shared / "vocab" / "gpt-2.json.gz"
    for path in (vocabulary, *rows):
        if not path.exists():
            skip(f"needs shared data {path.name}")
    started = time.monotonic()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    commands = [[sys.argv[1], "sample", "--vocabulary", str(vocabulary), "--format", form,
                 "--count", str(count // len(FORMATS)), *map(str, rows)] for form in FORMATS]
    with concurrent.futures.ProcessPoolExecutor(len(FORMATS)) as pool:
        results = list(pool.map(judge, FORMATS, commands))
    judged = sum(result[0] for result in results)
    calls = sum(result[1] for result in results)
    problems = [problem for result in results for problem in result[2]]
    for problem in problems[:10]:
        print(problem)
    print(f"{judged} generations, {calls} calls, {len(problems)} problems, "
          f"{time.monotonic() - started:.1f} s")
    return 1 if problems or judged < count // len(FORMATS) * len(FORMATS) else 0


if __name__ == "__main__":
    sys.exit(main())
