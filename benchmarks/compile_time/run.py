"""Measures the compiler's processor time and peak memory for a translation unit that includes the library.

python3 benchmarks/compile_time/run.py [--rounds N] [--include DIR]... [--json FILE] [UNIT...]

A unit is a file beside this script. `X, compiled` is X in a project that links tooldecode::tooldecode; X alone is X
in a project that links tooldecode::header_only. --include names the directories with XGrammar's and EnTT's headers,
as in `pip download --no-deps --no-binary xgrammar xgrammar` or a clone (for XGrammar DIR/include and
DIR/3rdparty/dlpack/include). Units whose headers are not found are listed as such. Rounds alternate between the
units, and the minimum of each counts, because other work on the machine only adds time. Times are also relative to
nlohmann's, so that you can compare machines.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from run_record import plain  # noqa: E402

FLAGS = ["-std=c++20", "-O2"]
UNITS = ["nlohmann", "regex", "json_schema", "constrain", "constrain, compiled", "decode", "decode, compiled",
         "own_model, compiled", "xgrammar", "entt"]
AIMS = {"constrain": (45, 900), "constrain, compiled": (3, 250), "decode, compiled": (6, 400),
        "own_model, compiled": (6, 400)}  # seconds, MB


def command(compiler, unit, includes, output, flags=()):
    system = [f"-I{folder}" for folder in ("/usr/include/eigen3", "/usr/local/include/eigen3") if os.path.isdir(folder)]
    return [compiler, *FLAGS, f"-I{ROOT}/include", *(f"-I{folder}" for folder in includes), *system, *flags,
            *(["-DTOOLDECODE_COMPILED"] if unit.endswith(", compiled") else []),
            "-c", str(HERE / f"{unit.split(',')[0]}.cpp"), "-o", output]


def cost(arguments):
    """Processor seconds and peak MB of a command and its children; None if it fails."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None, next((line for line in message.splitlines() if "error" in line), "failed")
    return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), ""


def answer(*arguments):
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    return result.stdout.strip() if result.returncode == 0 else ""


def first_line(path, name):
    try:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return line[len(name):].strip(' \t:="')
    except OSError:
        pass
    return "unknown"


def version(compiler, includes, unit):
    """The version from a peer's headers, or from the name of their directory."""
    if unit == "xgrammar":
        return next((found[1] for folder in includes if (found := re.search(r"xgrammar-(\d[\w.]*)", folder))), None)
    macros = {"nlohmann": ("nlohmann/json.hpp", "NLOHMANN_JSON_VERSION_{}", ("MAJOR", "MINOR", "PATCH")),
              "entt": ("entt/entt.hpp", "ENTT_VERSION_{}", ("MAJOR", "MINOR", "PATCH"))}
    header, pattern, parts = macros[unit]
    text = subprocess.run([compiler, *FLAGS, *(f"-I{folder}" for folder in includes), "-dM", "-E", "-include", header, "-x", "c++",
                           "/dev/null"], capture_output=True, text=True).stdout
    found = [re.search(rf"#define {pattern.format(part)} (\d+)", text) for part in parts]
    return ".".join(match[1] for match in found) if all(found) else None


def made_by(compiler, peers, folders):
    """The record of other results, with only the names of the directories of peers' headers."""
    head = answer("git", "rev-parse", "--short=12", "HEAD")
    changes = answer("git", "status", "--porcelain", "--", ".", ":!benchmarks/results", ":!*.md")
    name = "clang++" if "clang" in answer(compiler, "--version") else "g++"
    system = platform.uname()
    number = re.search(r'"(\d+\.\d+\.\d+)"', (ROOT / "include/tooldecode/version.hpp").read_text(encoding="utf-8"))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"commit": os.environ.get("TOOLDECODE_COMMIT") or (head + ("+changes" if changes else "") if head else "unknown"),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "machine": {"processor": first_line("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
                        "memory_gib": int(memory / (1 << 30) * 10) / 10,
                        "system": f"{system.system} {system.release} {system.machine}, {first_line('/etc/os-release', 'PRETTY_NAME')}"},
            "compiler": f"{name} {answer(compiler, '-dumpfullversion') or answer(compiler, '-dumpversion')}",
            "flags": " ".join(FLAGS), "tooldecode": number[1] if number else "unknown", "peers": peers,
            "command": shlex.join(pathlib.Path(word).name if word in folders else plain(word) for word in ["python3", *sys.argv])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", metavar="UNIT", default=UNITS, help=" ".join(UNITS))
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="where headers of XGrammar or EnTT are")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    includes = [part for folder in options.include
                for part in (folder, f"{folder}/include", f"{folder}/single_include", f"{folder}/3rdparty/dlpack/include")
                if os.path.isdir(part)]
    results, failed = {}, False
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/unit.o"
        for unit in options.units:
            missing = unit in ("xgrammar", "entt") and cost(
                command(options.compiler, unit, includes, output, ["-fsyntax-only"]))[0] is None
            if missing:
                print(f"{unit}: its headers are not found, see --include", file=sys.stderr)
            else:
                results[unit] = {"user_s": [], "frontend_s": [], "peak_mb": [], "object_kb": 0}
        for turn in range(options.rounds):
            for unit, result in results.items():
                for field, flags in (("user_s", []), ("frontend_s", ["-fsyntax-only"])):
                    print(f"round {turn + 1} of {options.rounds}: {unit} {' '.join(flags)}", file=sys.stderr)
                    taken, message = cost(command(options.compiler, unit, includes, output, flags))
                    if taken is None:
                        print(f"{unit}: {message}", file=sys.stderr)
                        failed = True
                        continue
                    result[field].append(taken[0])
                    if not flags:
                        result["peak_mb"].append(taken[1])
                        result["object_kb"] = os.path.getsize(output) // 1024
    rows = {unit: {"processor_s": round(min(result["user_s"]), 2), "frontend_s": round(min(result["frontend_s"]), 2),
                   "peak_mb": round(min(result["peak_mb"])), "object_kb": result["object_kb"]}
            for unit, result in results.items() if result["user_s"] and result["frontend_s"]}
    unit_time = rows.get("nlohmann", {}).get("processor_s")
    print("| unit | processor time | its front end | peak memory | object | times nlohmann's | aim |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for unit, row in rows.items():
        if unit_time:
            row["times_nlohmann"] = round(row["processor_s"] / unit_time, 2)
        if unit in AIMS:
            row["aim_s"], row["aim_mb"] = AIMS[unit]
        aim = f"{row['aim_s']} s, {row['aim_mb']} MB" if "aim_s" in row else ""
        print(f"| {unit} | {row['processor_s']:.1f} s | {row['frontend_s']:.1f} s | {row['peak_mb']} MB | "
              f"{row['object_kb']} KB | {row.get('times_nlohmann', '')} | {aim} |")
    if options.json:
        peers = {unit: found for unit in ("nlohmann", "xgrammar", "entt")
                 if unit in rows and (found := version(options.compiler, includes, unit))}
        record = {"made_by": made_by(options.compiler, peers, options.include), "rounds": options.rounds, "units": rows}
        pathlib.Path(options.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
