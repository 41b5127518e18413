"""Compares votes over orders with one order, paired by row, over several sets of rows.

    python3 benchmarks/real_models/pooled.py PROGRAM [--json OUT] ANSWERS.jsonl:METHOD...

PROGRAM is `tooldecode`, whose record goes into the results. ANSWERS.jsonl is the output of its `eval --answers`, and
METHOD the vote with the most orders in it. Each is compared with `tool-decoding-oc1` of the same file. `eval` counted
the value errors. The interval is a bootstrap over rows within each set; p is McNemar's exact test.
"""
import argparse
import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_record  # noqa: E402

BASE = "tool-decoding-oc1"
SAMPLES, SEED = 10_000, 1


def read(path: str, method: str) -> list[tuple[str, str]]:
    """The outcomes of the base's and the method's answers, by row."""
    rows: dict[str, dict[str, str]] = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if "method" in one:
            rows.setdefault(one["id"], {})[one["method"]] = one["class"]
    missing = [name for name in (BASE, method) if not all(name in row for row in rows.values())]
    if missing or not rows:
        sys.exit(f"pooled.py: {path}: some rows have no answer by {' and '.join(missing) or BASE}")
    return [(row[BASE], row[method]) for row in rows.values()]


def compared(sets: list[list[tuple[str, str]]]) -> dict:
    pairs = [pair for one in sets for pair in one]

    def share(drawn):
        before = sum(was == "value" for was, _ in drawn)
        return 1 - sum(now == "value" for _, now in drawn) / before if before else 0.0

    draw = random.Random(SEED)
    shares = sorted(share([pair for one in sets for pair in draw.choices(one, k=len(one))]) for _ in range(SAMPLES))
    mended = sum(was == "value" != now for was, now in pairs)
    added = sum(now == "value" != was for was, now in pairs)
    tail = sum(math.comb(mended + added, i) for i in range(min(mended, added) + 1)) / 2 ** (mended + added)
    return {"samples": len(pairs), "value_errors": [sum(pair[i] == "value" for pair in pairs) for i in (0, 1)],
            "correct": [sum(pair[i] == "correct" for pair in pairs) for i in (0, 1)], "reduction": share(pairs),
            "ci95": [shares[int(0.025 * SAMPLES)], shares[int(0.975 * SAMPLES) - 1]], "mended": mended, "added": added,
            "p": min(1.0, 2 * tail)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("answers", nargs="+", metavar="ANSWERS.jsonl:METHOD")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    sets = {}
    for given in options.answers:
        path, _, method = given.rpartition(":")
        sets[f"{pathlib.Path(path).stem}: {method}"] = read(path, method)
    found = {name: compared([pairs]) for name, pairs in sets.items()} | {"all": compared(list(sets.values()))}
    for name, one in found.items():
        print(f"{name}: {one['samples']} rows, value errors {one['value_errors'][0]} -> {one['value_errors'][1]}, "
              f"reduction {100 * one['reduction']:.1f} % ({100 * one['ci95'][0]:.1f} to {100 * one['ci95'][1]:.1f}), "
              f"{one['mended']} mended, {one['added']} added, p = {one['p']:.3f}")
    if options.json:
        record = {"made_by": run_record.run_record([options.program, "--made-by"], [], ["python3", *sys.argv]), "seed": SEED,
                  "base": BASE, "sets": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
