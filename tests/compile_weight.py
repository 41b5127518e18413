"""What a call site includes, and what memory the compiler takes for it, stay within their bounds.

python3 tests/compile_weight.py [PROGRAM]

For the loop over masks of examples/01_mask.cpp, README's call site, and a user's Model with a Decoder, each compiled as a
user of tooldecode::tooldecode compiles it: no file of nlohmann-json, none of Eigen, so many lines of the
library's code at most, and so many MB with g++ 12 (other compilers have other figures). Lines and memory do not depend on
what else a machine does; benchmarks/compile_time has the times.
"""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# File, most lines of the library's code, most MB with g++ 12 -O2.
BOUNDS = [("examples/01_mask.cpp", 3800, 260),
          ("tests/package/call_site.cpp", 7500, 380),
          ("benchmarks/compile_time/own_model.cpp", 7500, 400)]


def flags():
    eigen = [f"-I{folder}" for folder in ("/usr/include/eigen3", "/usr/local/include/eigen3") if os.path.isdir(folder)]
    return ["-std=c++20", "-DTOOLDECODE_COMPILED", f"-I{ROOT}/include", *eigen]


def lines_of_code(file):
    """Lines that are neither empty nor a comment alone, which cost a compiler next to nothing."""
    text = pathlib.Path(file).read_text(encoding="utf-8")
    return sum(1 for line in map(str.strip, text.splitlines()) if line and not line.startswith("//"))


def peak_mb(command):
    """Of a command alone: a child of a child, so that no earlier one counts."""
    script = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024); sys.exit(code)")
    return float(subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True).stdout)


def main():
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        print("SKIPPED: there is no g++")
        return 77
    version = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True).stdout.strip()
    failures = []
    for source, most_lines, most_mb in BOUNDS:
        path = str(ROOT / source)
        rule = subprocess.run([compiler, *flags(), "-M", path], check=True, capture_output=True, text=True).stdout
        files = re.sub(r"\\\n", " ", rule).split()[1:]
        lines = sum(lines_of_code(file) for file in files if f"{ROOT}/include/tooldecode/" in file)
        heavy = [file for file in files if file.endswith(".ipp") or "Eigen/" in file or "nlohmann/" in file]
        with tempfile.TemporaryDirectory() as folder:
            mb = peak_mb([compiler, *flags(), "-O2", "-c", path, "-o", f"{folder}/unit.o"])
        print(f"{source}: {lines} lines of the library's code (bound {most_lines}), {mb:.0f} MB (bound {most_mb})")
        if heavy:
            failures.append(f"{source} includes {', '.join(heavy[:3])}")
        if lines > most_lines:
            failures.append(f"{source} includes {lines} lines of the library's code: must be at most {most_lines}")
        if version.split(".")[0] == "12" and "clang" not in compiler and mb > most_mb:
            failures.append(f"{source} takes {mb:.0f} MB: must be at most {most_mb}")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
