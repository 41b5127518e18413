"""Each file of results in benchmarks/results says how it was made: commit, date, machine, compiler, versions, command.

python tests/results.py [PROGRAM]
python tests/results.py --ages    # lists how many commits changed the library since each was made
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"
SHAPES = {"commit": r"[0-9a-f]{7,40}(\+changes)?", "date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
          "compiler": r"(g\+\+|clang\+\+) \d+\..*", "flags": r".*-O.*", "tooldecode": r"\d+\.\d+\.\d+", "command": r".+"}
PEERS = {"peers.json": ("xgrammar", "llguidance"), "engines.json": ("vllm", "sglang", "xgrammar", "llguidance"),
          "ranked_head.json": ("eigen",)}


def faults(path):
    """What the record of a file lacks."""
    results = json.loads(path.read_text(encoding="utf-8"))
    record = results.get("made_by") if isinstance(results, dict) else None
    if not isinstance(record, dict):
        return ["has no made_by"]
    found = [f"{field}: {record.get(field)!r}" for field, shape in SHAPES.items()
             if record.get(field) == "unknown" or not re.fullmatch(shape, str(record.get(field)))]
    if re.search(r"(^|[ =])/(root|home|work|tmp)/", str(record.get("command"))):
        found.append("command: a path of one machine")
    machine = record.get("machine")
    for field in ("processor", "cores", "memory_gib", "system"):
        if not isinstance(machine, dict) or machine.get(field) in (None, "", 0):
            found.append(f"machine/{field}")
    found += [f"peers/{peer}" for peer in PEERS.get(path.name, ()) if not record.get("peers", {}).get(peer)]
    return found


def print_ages(files):
    """A line for each file, those with most commits since first."""
    rows = []
    for path in files:
        record = json.loads(path.read_text(encoding="utf-8"))["made_by"]
        count = subprocess.run(["git", "rev-list", "--count", f"{record['commit'].removesuffix('+changes')}..HEAD", "--", "include"],
                               cwd=ROOT, capture_output=True, text=True)
        rows.append((int(count.stdout) if count.returncode == 0 else -1, record["commit"], record["date"][:10], path.name))
    for count, commit, date, name in sorted(rows, reverse=True):
        print(f"{count if count >= 0 else '?':>5} commits since {commit:20} of {date}  {name}")


def main():
    files = sorted(RESULTS.glob("*.json"))
    assert files, RESULTS
    if "--ages" in sys.argv:
        return print_ages(files)
    lacking = {path.name: found for path in files if (found := faults(path))}
    for name, found in lacking.items():
        print(f"benchmarks/results/{name}: {', '.join(found)}")
    print(f"{len(files) - len(lacking)} of {len(files)} files of results say how they were made")
    sys.exit(bool(lacking))


if __name__ == "__main__":
    main()
