"""Writes rows for `tooldecode eval`: GSM8K's questions, and BFCL's calls with many parameters.

python3 benchmarks/real_models/rows.py --shared DATA --out FOLDER

BFCL: the rows of simple_python, multiple, live_simple and live_multiple whose called function requires three or more parameters
(bfcl_three.jsonl) or two (bfcl_two.jsonl), unchanged.
"""

import argparse
import gzip
import json
import pathlib


def gsm8k(shared):
    """GSM8K's test questions, which no tool answers."""
    lines = (shared / "gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()
    return [{"id": row["id"], "format": "json", "choice": "none", "seen": True, "tools": [], "calls": [],
             "messages": [{"role": "user", "content": row["question"]}]} for row in map(json.loads, lines)]


def bfcl(shared):
    """Calls to a function that requires three or more parameters, and to one that requires two."""
    three, two = [], []
    for name in ("simple_python.jsonl", "multiple.jsonl", "live_simple.jsonl", "live_multiple.jsonl.gz"):
        path = shared / "bfcl" / name
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                required = {function["name"]: function["parameters"].get("required", []) for function in line["functions"]}
                if len(line["answers"]) == 1:
                    count = len(required[next(iter(line["answers"][0]))])
                    if count >= 2:
                        (three if count >= 3 else two).append(line)
    return three, two


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="directory with bfcl and gsm8k")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory for the files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    three, two = bfcl(options.shared)
    for name, rows in (("gsm8k", gsm8k(options.shared)), ("bfcl_three", three), ("bfcl_two", two)):
        path = options.out / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")
        print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main()
