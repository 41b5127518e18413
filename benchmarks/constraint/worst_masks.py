"""Finds the slowest masks over many schemas and five vocabularies: the highest cost of one token.

    python benchmarks/constraint/worst_masks.py PROGRAM [--vocabularies NAME ...] [--json OUT]

PROGRAM is `tooldecode`. Schemas come from the directory in TOOLDECODE_SHARED_DATA (../shared/data): JSONSchemaBench,
the JSON Schema test suite (draft 2020-12) and public bug reports. Schemas of tests/mask/mask_builder.cpp and
benchmarks/constraint/hostile.py that once had slow masks are added. `check --format json-schema --timing` makes a
mask before each token of each text of a schema; masks are cold if no earlier text has reached the state. Times are
microseconds of one thread. "refused" counts specifications that are refused, "over budget" masks that `mask_limits`
ended. A busy machine shows larger tails.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import run_record  # noqa: E402

DATA = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", HERE.parents[1] / "../shared/data"))
VOCABULARIES = ["gpt-2", "mistral-v3", "cl100k_base", "qwen2", "o200k_harmony"]

# A mask of each once took seconds: keys that two patterns tell apart, with a minimum number, and lexemes of thousands
# of states.
SLOW_ONCE = {
    "two patterns and a least number of keys": (
        {"minProperties": 2, "patternProperties": {"a": True, "^[à-ÿ]": {"const": 1}}},
        ['{"a": 1, "à": 1}', '{"banana": null, "x": 2}']),
    "the standard's ^S_ and ^I_": (
        {"type": "object", "minProperties": 2,
         "patternProperties": {"^S_": {"type": "string"}, "^I_": {"type": "integer"}}},
        ['{"S_25": "a string", "I_0": 42}', '{"keyword": "value", "S_": ""}']),
    "up to 9,800 letters": (
        {"type": "string", "pattern": "^\\p{L}{1,9800}$"}, ['"Straßenbahnhaltestelle"', '"' + "letter" * 40 + '"']),
    "a word of a length": (
        {"type": "string", "pattern": "^(\\w+ ?){1,60}$", "maxLength": 300}, ['"the quick brown fox jumps"']),
}


def rows():
    """Yields (set, row) for every schema, in the form that `check --format json-schema` reads."""
    for name, (schema, texts) in SLOW_ONCE.items():
        for i, text in enumerate(texts):
            yield "slow once", {"id": f"{name}#{i}", "schema": schema, "text": text}
    path = DATA / "jsonschema/jsonschemabench.jsonl.gz"
    if path.exists():
        for line in gzip.open(path, "rt", encoding="utf-8"):
            row = json.loads(line)
            yield "JSONSchemaBench", {key: row[key] for key in ("id", "schema", "tests")}
    for path in sorted((DATA / "jsonschema/test-suite/draft2020-12").rglob("*.json")):
        for i, case in enumerate(json.load(open(path, encoding="utf-8"))):
            yield "test suite", {"id": f"{path.stem}/{i}", "schema": case["schema"], "tests": case["tests"]}
    path = DATA / "bugreports/cases.jsonl"
    if path.exists():
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            if row["kind"] == "json-schema":
                yield "bug reports", {"id": row["id"], "schema": row["spec"], "text": row["text"]}


def measure(program, vocabulary, by_set, folder):
    found = []
    for name, lines in by_set.items():
        path = pathlib.Path(folder) / "rows.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
        run = subprocess.run([program, "check", "--vocabulary", vocabulary, "--format", "json-schema", "--timing", path],
                             capture_output=True, text=True)
        line = re.search(r"^mask +(.+)$", run.stderr, re.M)
        if line is None:
            sys.exit(f"check ended with {run.returncode}, without times:\n{run.stderr[-2000:]}")
        mean, p50, p99, p999, worst = map(float, line[1].split())
        verdicts = [json.loads(verdict) for verdict in run.stdout.splitlines()]
        reasons = [verdict.get("reason") or verdict.get("refused") or "" for verdict in verdicts
                   if not verdict.get("accepted")]
        found.append({
            "set": name, "texts": len(verdicts), "tokens": sum(verdict.get("tokens", 0) for verdict in verdicts),
            "refused": sum(reason.startswith(("unsupported", "malformed", "limit_exceeded", "unsatisfiable"))
                           and "mask_limits" not in reason for reason in reasons),
            "over_budget": sum("mask_limits" in reason for reason in reasons),
            "mean_us": mean, "p50_us": p50, "p99_us": p99, "p999_us": p999, "worst_us": worst})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--vocabularies", nargs="+", default=VOCABULARIES)
    parser.add_argument("--json")
    options = parser.parse_args()
    by_set = {}
    for name, row in rows():
        by_set.setdefault(name, []).append(json.dumps(row, ensure_ascii=False) + "\n")
    for name in ("JSONSchemaBench", "test suite", "bug reports"):
        if name not in by_set:
            print(f"SKIPPED: {name} is not in {DATA}", file=sys.stderr)
    result = {}
    print("| vocabulary | schemas | texts | tokens | refused | over budget | mean | p99 | p99.9 | worst (ms) |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for vocabulary in options.vocabularies:
            packed = DATA / f"vocab/{vocabulary}.json.gz"
            if not packed.exists():
                print(f"SKIPPED: {packed} is not there", file=sys.stderr)
                continue
            result[vocabulary] = measure(options.program, packed, by_set, folder)
            for row in result[vocabulary]:
                print(f"| {vocabulary} | {row['set']} | {row['texts']:,} | {row['tokens']:,} | {row['refused']} | "
                      f"{row['over_budget']} | " + " | ".join(f"{row[key] / 1000:.3f}" for key in
                                                             ("mean_us", "p99_us", "p999_us", "worst_us")) + " |",
                      flush=True)
    if options.json:
        record = {"made_by": run_record.run_record([options.program, "--made-by"], [], ["python", *sys.argv]),
                  "masks": result}
        pathlib.Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
