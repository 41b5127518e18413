"""`tooldecode --made-by`: what files of results say about their making, held against what Python and git say.

python tests/made_by.py build/release/examples/tooldecode
"""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(sys.argv[1]).resolve()


def made_by(**environment):
    inherited = {name: value for name, value in os.environ.items() if name != "TOOLDECODE_COMMIT"}
    done = subprocess.run([PROGRAM, "--made-by"], capture_output=True, text=True, check=True, cwd="/",
                          env={**inherited, **environment})
    return json.loads(done.stdout)


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def main():
    record = made_by()
    head = git("rev-parse", "HEAD")
    if head:
        commit, _, changes = record["commit"].partition("+")
        assert len(commit) == 12 and head.startswith(commit), record
        changed = git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!*.md")
        assert (changes == "changes") == bool(changed), (record, changed)
    else:
        assert record["commit"] == "unknown", record
    # The commit is asked when the program runs, and never of whichever folder it runs in.
    assert made_by(TOOLDECODE_COMMIT="feedfacefeed")["commit"] == "feedfacefeed"
    assert made_by(PATH="/nowhere")["commit"] == "unknown"

    taken = datetime.datetime.fromisoformat(record["date"].replace("Z", "+00:00"))
    assert abs((datetime.datetime.now(datetime.timezone.utc) - taken).total_seconds()) < 60, record

    machine = record["machine"]
    assert machine["cores"] == os.cpu_count(), machine
    gibibytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    assert abs(machine["memory_gib"] - gibibytes) <= 0.1, machine
    system = platform.uname()
    for part in (system.system, system.release, system.machine):
        assert part in machine["system"], machine
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = re.findall(r"model name\s*:\s*(.+)", file.read()) or ["unknown"]
    assert machine["processor"] == names[0].strip(), machine

    assert re.match(r"(clang\+\+|g\+\+) \d+\.\d+", record["compiler"]), record
    assert record["flags"] not in ("", "unknown"), record
    version = re.search(r'version = "([\d.]+)"', (ROOT / "include/tooldecode/version.hpp").read_text(encoding="utf-8"))
    assert record["tooldecode"] == version[1], record
    assert record["command"].endswith("tooldecode --made-by") and str(ROOT) not in record["command"], record
    assert record["peers"] == {}, record
    print("one record")


if __name__ == "__main__":
    main()
