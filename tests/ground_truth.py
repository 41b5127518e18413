"""Every call that BFCL and API-Bank give as an answer, and that conforms to its own document, is accepted: in
both of the common formats and on three vocabularies.

    python tests/ground_truth.py PROGRAM
"""
import concurrent.futures
import gzip
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VOCABULARIES = ["gpt-2", "qwen2", "phi-3"]
FORMATS = ["hermes", "python"]


def conforming_rows(data: pathlib.Path) -> list[dict]:
    """Rows whose canonical call validates against its schema, as the data's own judge has it."""
    rows = []
    for path in sorted([*(data / "bfcl").glob("*.jsonl*"), *(data / "apibank").glob("*.jsonl*")]):
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            rows += [row for row in map(json.loads, lines) if row.get("call_valid") and row.get("call_json") is not None]
    return rows


def check(program: str, data: pathlib.Path, file: pathlib.Path, vocabulary: str, form: str) -> list[dict]:
    done = subprocess.run([program, "check", "--vocabulary", str(data / f"vocab/{vocabulary}.json.gz"), "--format", form,
                           str(file)], capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    data = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", root / ".." / "shared" / "data"))
    if not (data / "bfcl").is_dir():
        print(f"SKIPPED: {data / 'bfcl'} is absent (set TOOLDECODE_SHARED_DATA)")
        return 77
    rows = conforming_rows(data)
    assert len(rows) > 1000, len(rows)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        file = pathlib.Path(folder) / "rows.jsonl"
        kept = [{"id": row["id"], "functions": row.get("functions") or row["apis"],
                 "call_json": row["call_json"]} for row in rows]
        file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        ways = list(itertools.product(VOCABULARIES, FORMATS))
        for (vocabulary, form), verdicts in zip(
                ways, pool.map(lambda way: check(sys.argv[1], data, file, *way), ways)):
            assert len(verdicts) == len(kept), (len(verdicts), len(kept))
            refused = [verdict for verdict in verdicts if not verdict.get("accepted")]
            wrong += len(refused)
            print(f"{vocabulary}, {form}: {len(kept) - len(refused):,} of {len(kept):,} accepted")
            for verdict in refused[:3]:
                print("   ", verdict)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
