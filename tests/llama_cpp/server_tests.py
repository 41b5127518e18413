"""llama.cpp's tests of its server without and with the library, and what differs, see ../llama_cpp.sh.

    python server_tests.py SERVER SOURCES LIBRARY SMALL_MODEL CODER_MODEL [--files NAME...] [--select EXPRESSION] [--slow]
"""
import argparse
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILES = ["test_chat_completion", "test_completion", "test_speculative", "test_tool_call", "test_template", "test_compat_anthropic",
         "test_compat_oai_responses", "test_ignore_eos"]
NEEDS_NETWORK = "no local model"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(options, name, library):
    """What each test of a file came to."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "report.json")
        environment = os.environ | {
            "LLAMA_SERVER_BIN_PATH": options.server, "LLAMA_CPP_PRELOAD": library, "LLAMA_CPP_REPORT": str(out),
            "LLAMA_CPP_SMALL_MODEL": options.small_model, "LLAMA_CPP_CODER_MODEL": options.coder_model,
            "LLAMA_CACHE": folder, "PORT": str(free_port()), "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp",
                   *(["-k", options.select] if options.select else []), *([] if options.slow else ["-m", "not slow"]),
                   f"unit/{name}.py"]
        done = subprocess.run(command, cwd=pathlib.Path(options.sources, "tools/server/tests"), env=environment,
                              capture_output=True, text=True, errors="replace")
        if not out.exists() or done.returncode not in (0, 1, 5):
            raise SystemExit(f"{name}: pytest ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return json.loads(out.read_text(encoding="utf-8"))


def counts(tests):
    found = collections.Counter(test["outcome"] for test in tests.values())
    return " / ".join(str(found[outcome]) for outcome in ("passed", "failed", "skipped"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("server", "sources", "library", "small_model", "coder_model"):
        parser.add_argument(name)
    parser.add_argument("--files", nargs="+", default=FILES)
    parser.add_argument("--select", help="as pytest's -k")
    parser.add_argument("--slow", action="store_true", help="those too that llama.cpp marks slow")
    options = parser.parse_args()
    print("| tests of llama.cpp's server | passed / failed / skipped | with the library | with grammars of the library | differ | "
          "answer otherwise |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    faults, otherwise, network, refused, enforced = [], [], [], collections.Counter(), 0
    for name in options.files:
        plain, ours = run(options, name, ""), run(options, name, options.library)
        assert plain.keys() == ours.keys()
        differ = [test for test in plain if plain[test]["outcome"] != ours[test]["outcome"]]
        texts = [test for test in plain if plain[test]["answers"] != ours[test]["answers"]]
        by_us = sum(1 for test in ours.values() if test["enforced"])
        assert not any(test["enforced"] or test["refused"] for test in plain.values())
        print(f"| {name} | {counts(plain)} | {counts(ours)} | {by_us} | {len(differ)} | {len(texts)} |", flush=True)
        enforced += by_us
        faults += [(test, plain[test], ours[test]) for test in differ]
        otherwise += [(test, plain[test], ours[test]) for test in texts if test not in differ]
        network += [(test, one["why"]) for test, one in plain.items() if NEEDS_NETWORK in one["why"]]
        refused.update(reason for one in ours.values() for reason in one["refused"])
    for test, before, after in faults:
        print(f"DIFFERS {test}: {before['outcome']}, with the library {after['outcome']}\n  {before['why']}\n  {after['why']}")
    for test, before, after in otherwise:
        at = next((i for i, pair in enumerate(zip(before["answers"], after["answers"])) if pair[0] != pair[1]), None)
        print(f"answers otherwise {test}" + (f"\n  {before['answers'][at]}\n  {after['answers'][at]}" if at is not None else ""))
    for test, why in network:
        print(f"left out {test}: {why}")
    for reason, count in refused.items():
        print(f"llama.cpp's to enforce, {count} times: {reason}")
    if not enforced:
        print("no test had its grammar enforced by the library")
    sys.exit(1 if any(after["outcome"] == "failed" for _, _, after in faults) or not enforced else 0)


if __name__ == "__main__":
    main()
