#!/usr/bin/env python3
"""Plants bugs in copies of the kernels' headers, one at a time, and requires that the kernel's own test fails.

Each test is built with its header as it is, and must pass, and then once per bug, and must not.
  planted_bugs.py --compiler g++ --main main.o --eigen /usr/include/eigen3
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Bug(typing.NamedTuple):
    name: str
    header: str  # of include/tooldecode/cuda
    before: str  # stands there once
    after: str


BUGS = [
    Bug("no barrier before a fold's result is read", "block",
        "storage.result = folded;\n    __syncthreads();\n", "storage.result = folded;\n"),
    Bug("half of a warp left out of a fold", "block", "int bit = warp_size / 2;", "int bit = warp_size / 4;"),
]


def build(options, folder, test, headers):
    program = folder / "test"
    command = [options.compiler, "-x", "c++", "-std=c++20", "-O1", "-w",
               f"-I{headers}", f"-I{ROOT}/tests/support/simt", f"-I{ROOT}/include", f"-I{ROOT}/tests",
               "-isystem", options.eigen, "-c", f"{ROOT}/tests/cuda/{test}.cu", "-o", f"{program}.o"]
    subprocess.run(command, check=True)
    subprocess.run([options.compiler, f"{program}.o", options.main, "-o", str(program)], check=True)
    return program


def run(program):
    """Nothing where all is well, else what was seen first."""
    try:
        done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.splitlines()]
    rules = [i for i, line in enumerate(lines) if re.fullmatch("-{20,}", line)]
    case = lines[rules[0] + 1] if rules else f"exit status {done.returncode}"
    return f'"{case}"'


def judge(options, test, bug):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if bug is not None:
            text = (ROOT / f"include/tooldecode/cuda/{bug.header}.cuh").read_text()
            if text.count(bug.before) != 1:
                return False, f"'{bug.before.strip()}' stands {text.count(bug.before)} times in {bug.header}.cuh"
            header = folder / f"include/tooldecode/cuda/{bug.header}.cuh"
            header.parent.mkdir(parents=True)
            header.write_text(text.replace(bug.before, bug.after))
        seen = run(build(options, folder, test, folder / "include"))
        if bug is None:
            return seen is None, "passes" if seen is None else f"fails without a bug: {seen}"
        return seen is not None, f"caught: {seen}" if seen else "NOT caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--main", required=True, help="object file of tests/support/main.cpp")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="folder of Eigen's headers")
    parser.add_argument("--only", default="", help="bugs whose name or header contains this")
    options = parser.parse_args()

    bugs = [bug for bug in BUGS if options.only in bug.name or options.only in bug.header]
    tasks = [(test, None) for test in sorted({bug.header for bug in bugs})] + [(bug.header, bug) for bug in bugs]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for (test, bug), (held, what) in zip(tasks, pool.map(lambda task: judge(options, *task), tasks)):
            failed += not held
            print(f"{test:16} {bug.name if bug else 'as it is':58} {what}", flush=True)
    print(f"{len(bugs)} planted bugs, {'all caught' if failed == 0 else f'{failed} FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
