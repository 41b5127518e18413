#!/usr/bin/env python3
"""Rehearses benchmarks/cuda/run.sh from end to end, with stubs for nvcc, the driver, the sanitizer and what they
make: what fails, hangs or is missing on the machine that it is for must be said, bounded, and stop nothing else.
  rehearsal.py
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the stubs do beside their work is up to the word in SCENARIO. Each call is written down with the number of
# steps that were on record when it was made.
STUB = r"""#!/usr/bin/env bash
name=$(basename "$0")
steps=$(grep -c '"step":' "$OUT/benchmarks/results/cuda_steps.json" 2> /dev/null)
echo "$name ${steps:-0} $$ $*" >> "$CALLS"
hang() { [[ $SCENARIO == *stubborn* ]] && trap '' TERM; while :; do sleep 0.2; done; }
"""
STUBS = {
    "nvidia-smi": r"""
case $SCENARIO in
  *no-device*) exit 9 ;;
  *device-hangs*) hang ;;
esac
echo "9.0, 580.1.2, NVIDIA Imaginary, 1000 MiB"
""",
    "nvcc": r"""
case "$*" in
  --version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit ;;
  *" -E "*) [[ $SCENARIO == *no-catch* ]] && { echo "catch.hpp: not found" >&2; exit 1; }; echo '# 1 "catch.hpp"'; exit ;;
esac
[[ $SCENARIO == *build-hangs* && $* == *library.cu* ]] && hang
[[ $SCENARIO == *spoilt* && $* == *tests/cuda/warp.cu* ]] && { echo "warp.cu(3): error: no" >&2; exit 1; }
[[ $SCENARIO == *warnings* && $* == *tests/cuda/warp.cu* ]] && echo "warp.cu(3): warning #177-D: never used" >&2
while [ $# -gt 0 ]; do [ "$1" = -o ] && made=$2; shift; done
case $made in
  *.o) : > "$made" ;;
  *) cp "$STUBS/made" "$made"; chmod +x "$made" ;;
esac
""",
    "python3": r"""
[[ $1 == *peers.py ]] && echo "IN ALL: as fast"
exit 0
""",
    "ncu": r"""
while ! [ -e "$1" ]; do shift; done
"$@"
""",
    "compute-sanitizer": r"""
export UNDER_SANITIZER=yes
[[ $SCENARIO == *races* && $* == *racecheck* ]] && { echo "========= Error: Race reported"; exit 9; }
while ! [ -e "$1" ]; do shift; done
"$@"
""",
    "made": r"""
json=""
[[ $* == *--json* ]] && json=$(sed 's/.*--json \([^ ]*\).*/\1/' <<< "$*")
case $name in
  cublas) [[ $SCENARIO == *cublas-breaks* ]] && exit 127; exit 0 ;;
  test_cuda)
    echo "0.010 s: one test"
    echo "0.020 s: another"
    [[ $SCENARIO == *tests-hang* && -z ${UNDER_SANITIZER:-} ]] && hang
    [[ $SCENARIO == *tests-fail* ]] && exit 42
    echo "All tests passed" ;;
  benchmark_cuda)
    [[ $SCENARIO == *no-device* ]] && { echo "no CUDA device: nothing was measured" >&2; exit 3; }
    [ -z "$json" ] || echo '{"results": []}' > "$json"
    [[ $SCENARIO == *benchmark-hangs* && -n $json ]] && hang
    echo "HOLDS: an aim" ;;
esac
exit 0
""",
}


class Run:
    """One run of the script under a scenario."""

    def __init__(self, scenario, limit=None, break_off_at=None):
        self.scenario = scenario
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            stubs, tree, out = folder / "stubs", folder / "tree", folder / "out"
            for path in (stubs, tree, out):
                path.mkdir()
            for part in ("benchmarks", "include", "python", "tests"):
                (tree / part).symlink_to(ROOT / part)
            for stub, body in STUBS.items():
                (stubs / stub).write_text(STUB + body)
                (stubs / stub).chmod(0o755)
            packed = tree / "build/cuda_headers"
            packed.mkdir(parents=True)
            (packed / "commit").write_text("abc1234-dirty\n")
            environment = dict(os.environ, PATH=f"{stubs}:{os.environ['PATH']}", SCENARIO=scenario, OUT=str(out),
                               CALLS=str(folder / "calls"), STUBS=str(stubs))
            command = ["bash", "benchmarks/cuda/run.sh", *(["--limit", str(limit)] if limit else [])]
            began = time.monotonic()
            with subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True) as process:
                if break_off_at:
                    self.wait_for(process, folder / "calls", break_off_at)
                    process.send_signal(signal.SIGTERM)
                self.text = process.communicate(timeout=60)[0]
            self.seconds = time.monotonic() - began
            self.code = process.returncode
            self.files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
            self.record = json.loads((out / "benchmarks/results/cuda_steps.json").read_text())
            self.calls = [line.split(" ", 3) for line in (folder / "calls").read_text().splitlines()]
        left = [call for call in self.calls if self.is_running(call[2])]
        self.steps = {step["step"]: step["outcome"] for step in self.record["steps"]}
        self.expect(not left, f"still running: {left}")

    @staticmethod
    def is_running(number):
        try:
            return pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    @staticmethod
    def wait_for(process, calls, pattern):
        for _ in range(300):
            if process.poll() is not None or (calls.exists() and re.search(pattern, calls.read_text())):
                return
            time.sleep(0.1)

    def expect(self, holds, what):
        if not holds:
            print(f"FAILED, scenario '{self.scenario}': {what}\n{json.dumps(self.record, indent=1)}\n{self.text}")
            sys.exit(1)

    def expect_outcomes(self, code, **but):
        """All steps passed, but for those whose names match a pattern, which ended as said."""
        self.expect(self.code == code, f"exit status {self.code}, not {code}")
        for step, outcome in self.steps.items():
            wanted = next((end for word, end in but.items() if re.search(word.replace("_", " "), step)), "passed")
            self.expect(re.match(wanted, outcome), f"'{step}' ended as '{outcome}', not '{wanted}'")
        for word in but:
            self.expect(any(re.search(word.replace("_", " "), step) for step in self.steps), f"no step is of '{word}'")

    def of(self, program, part=""):
        return [call for call in self.calls if call[0] == program and part in call[3]]


# Scenarios, their limits in seconds, and the call at which the run is broken off.
SCENARIOS = [("good",), ("device-hangs", 40), ("tests-hang stubborn", 40), ("benchmark-hangs", 20), ("build-hangs", 20),
             ("no-catch",), ("tests-fail",), ("races",), ("spoilt",), ("warnings",), ("cublas-breaks",), ("no-device",), ("no-device spoilt",),
             ("benchmark-hangs", None, "benchmark_cuda .*--json")]


def main():
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        runs = list(pool.map(lambda scenario: Run(*scenario), SCENARIOS))
    good, device, tests, benchmark, build, no_catch, failing, races, spoilt, warnings, cublas, no_device, nothing, broken = runs
    names = ["the device", "cuBLAS", "headers of Catch2, Eigen and nlohmann-json", "build for sm_90",
             "benchmark, small", "tests", "benchmark", "comparison with PyTorch", "PyTorch operators",
             "model", "profile",
             "memcheck of the tests", "racecheck of the tests", "synccheck of the tests", "memcheck of the benchmark"]
    good.expect_outcomes(0)
    good.expect(list(good.steps) == names, "other steps")
    record = good.record
    good.expect(record["commit"] == "abc1234-dirty" and record["machine"].startswith("NVIDIA Imaginary") and
                record["driver"] == "580.1.2" and "13.0.88" in record["toolkit"] and "g++" in record["compiler"] and
                re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+Z", record["date"]) and record["is_complete"],
                "a record that does not say whence it is")
    made_by = record["made_by"]
    good.expect(made_by["commit"] == "abc1234+changes" and made_by["tooldecode"] and made_by["machine"]["gpu"] ==
                record["machine"] and made_by["machine"]["memory_gib"] > 0, f"made by {made_by}")
    good.expect(good.files == [f"benchmarks/results/cuda{end}" for end in (".json", ".log", "_model.json", "_profile.csv", "_steps.json")],
                f"results in {good.files}")
    good.expect(len(good.of("nvcc", "tests/cuda/")) == len(list((ROOT / "tests/cuda").glob("*.cu"))) - 1,
                "not every test was compiled")
    good.expect(not good.of("nvcc", "-Werror") and not good.of("nvcc", "as-error"), "warnings are errors")
    good.expect(len(good.of("test_cuda")) == 4, "the tests are not one process per step")
    good.expect(good.of("nvcc", "-DTOOLDECODE_HAS_CUBLAS"), "cuBLAS was left out")
    for call in good.of("compute-sanitizer"):
        good.expect("--report-api-errors no" in call[3], "refused launches count as errors of memory")
    # Each step's outcome is on record before the next begins.
    measured = good.of("benchmark_cuda", "--json")[0]
    good.expect(int(measured[1]) == names.index("benchmark"), "steps are not written as they end")
    for part in ("--commit abc1234-dirty", "--driver 580.1.2", f"--date {record['date']}", "--made-by {"):
        good.expect(part in measured[3], f"the benchmark is not told {part}")

    device.expect_outcomes(1, the_device="NOT FINISHED in 2 s")
    tests.expect_outcomes(1, **{"^tests": "NOT FINISHED in 5 s, after 2 tests"})
    benchmark.expect_outcomes(1, **{"^benchmark$": "NOT FINISHED"})
    benchmark.expect("benchmarks/results/cuda.json" in benchmark.files, "what it had measured is lost")
    build.expect_outcomes(1, build="NOT FINISHED", **{"benchmark": "NOT RUN", "tests": "NOT RUN", "PyTorch": "NOT RUN",
                                                   "model": "NOT RUN"})
    for run in (device, tests, benchmark, build):
        run.expect(run.seconds < 50, f"{run.seconds:.0f} s")

    no_catch.expect_outcomes(1, Catch2="FAILED", tests="NOT RUN, they are not built", model="NOT RUN")
    failing.expect_outcomes(1, tests=r"FAILED \(42\)")
    races.expect_outcomes(1, racecheck=r"FAILED \(9\)")
    spoilt.expect_outcomes(1, build="FAILED")
    warnings.expect_outcomes(0, build="passed, 1 warnings")
    cublas.expect_outcomes(1, cuBLAS="FAILED")
    cublas.expect(not cublas.of("nvcc", "-DTOOLDECODE_HAS_CUBLAS"), "a cuBLAS that does not run was built in")
    no_device.expect(no_device.code == 3 and no_device.steps["build for sm_90"] == "passed", "no device, no build")
    nothing.expect(nothing.code == 1 and "everything is built" not in nothing.text, "what is not built is said to be")
    broken.expect(broken.code == 1 and not broken.record["is_complete"] and broken.steps["tests"] == "passed" and
                  broken.steps["the run"] == "BROKEN OFF", "a run that was broken off left no record")
    print(f"{len(runs)} scenarios rehearsed")


if __name__ == "__main__":
    main()
