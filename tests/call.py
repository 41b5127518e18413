"""`tooldecode call`: what it prints for people and for machines, and how it fails.

python tests/call.py build/release/examples/tooldecode
"""

import json
import pathlib
import subprocess
import sys

PROGRAM = sys.argv[1]
TINY = str(pathlib.Path(__file__).parent.parent / "examples" / "data" / "tiny")
RANKS = TINY + "/ranks.json"
QUESTION = "Please book a table at Luigi's for four people, outdoors."


def run(*arguments):
    return subprocess.run([PROGRAM, "call", QUESTION, *arguments], capture_output=True, text=True, check=False)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def main():
    passes = {}
    for drafter in ("none", "forced", "lookup", "forced+lookup", "suffix", "forced+suffix", "model", "suffix+model+forced",
                    "eagle", "medusa", "all"):
        draft = ("--draft-model", TINY) if "model" in drafter else ()
        rows = ("--k", "512", "--context") if drafter in ("eagle", "medusa", "all") else ()
        for extra in ((), ("--temperature", "1", "--seed", "5", *rows)):
            answer = run("--json", "--speculation", drafter, *draft, *extra)
            check(answer.returncode == 0, f"{drafter}: {answer.stderr}")
            report = json.loads(answer.stdout)
            if drafter == "none":
                check("speculative" not in report, "no speculation is no column")
                passes.setdefault(drafter, report["constrained"]["passes"])
                continue
            plain, drafted = report["constrained"], report["speculative"]
            check(drafted["text"] == plain["text"], f"{drafter} changes the text")
            check(drafted["passes"] <= plain["passes"], f"{drafter} takes more passes")
            check(drafted["tokens_per_pass"] > 0, f"{drafter}: tokens per pass")
            check(report["prompt_us"] > 0 and report["prompt_tokens"] > 0, f"{drafter}: {report}")
            for column in (plain, drafted):
                check(column["decoding_us_per_token"] > 0, f"{drafter}: {column}")
            for depth in drafted["acceptance_by_depth"]:
                check(0 <= depth["accepted"] <= depth["tried"], f"{drafter}: {depth}")
            if not extra:
                passes[drafter] = drafted["passes"]
                check(drafted["passes"] < plain["passes"], f"{drafter} spares no pass")
    # The model drafts for itself: all is accepted.
    check(3 * passes["model"] < passes["none"], f"passes {passes}")
    check(passes["all"] <= min(passes["forced"], passes["lookup"]), f"passes {passes}")

    whole = run("--speculation", "all", "--ranks", "none")
    check(whole.returncode == 0, whole.stderr)
    for words in ("Speculative decoding, all", "tokens per pass", "\n  prompt of ", "with draft layers once more", "\n  decoding, per token ", "Drafts accepted, by depth", "token for token"):
        check(words in whole.stdout, f"the report lacks {words!r}")
    check("NOT the constrained one" not in whole.stdout, "the answers differ")

    other = run("--json", "--no-repeated-calls")
    check(other.returncode == 0, other.stderr)
    calls = [json.dumps(call, sort_keys=True) for call in json.loads(other.stdout)["constrained"]["calls"]]
    check(calls and all(a != b for a, b in zip(calls, calls[1:])), f"calls without repeats: {calls}")

    for arguments, words in (
        (("--speculation", "lookup", "--no-repeated-calls"), "must be none"),
        (("--speculation", "magic"), "magic: no such drafter"),
        (("--speculation", "forced+magic"), "forced+magic: no such drafter"),
        (("--speculation", "forced+model"), "must come with --draft-model"),
        (("--draft-model", TINY), "must come with --speculation model"),
        (("--speculation", "model", "--draft-model", "/nowhere"), "/nowhere"),
        (("--draft-layers", TINY), "must come with --speculation eagle"),
        (("--speculation", "forced", "--draft-history", "10"), "--draft-history: must come with --speculation suffix"),
        (("--speculation", "forced", "--context"), "--context: must come with --speculation eagle"),
        (("--speculation", "eagle", "--draft-layers", "/nowhere"), "/nowhere/eagle.safetensors"),
        (("--speculation", "eagle3"), "eagle3.safetensors"),
        (("--speculation", "eagle", "--k", "9000"), "k = 9000"),
        (("--speculation", "eagle", "--ranks", "no-such-file"), "no-such-file"),
        (("--k", "2048"), "--k: must come with --speculation eagle, medusa, all or model"),
        (("--speculation", "suffix", "--ranks", RANKS), "--ranks: must come with --speculation eagle"),
        (("--speculation", "forced+lookup", "--k", "100"), "leave it out with --speculation forced+lookup"),
        (("--speculation", "eagle3", "--k", "100"), "leave it out with --speculation eagle3"),
        (("--speculation", "model", "--draft-model", TINY, "--k", "100"), "--k: must come with --ranks FILE"),
        (("--speculation", "all", "--ranks", "none", "--k", "100"), "--k: must come with --ranks FILE"),
        (("--gpu-layers", "1"), "--gpu-layers: must be 0"),
        (("--device", "cuda", "--gpu-layers", "-1"), "--gpu-layers: must be 0"),
        (("--device", "gpu"), '--device "gpu": must be cpu or cuda'),
    ):
        failed = run(*arguments)
        check(failed.returncode != 0, f"{arguments} must fail")
        check(words in failed.stderr and failed.stderr.count("\n") == 1, f"{arguments}: {failed.stderr!r}")

    on_device = run("--json", "--device", "cuda")
    if on_device.returncode == 0:
        check(json.loads(on_device.stdout)["constrained"]["calls"], f"no call: {on_device.stdout}")
    else:
        lacks = ("--device cuda: this program was built without CUDA", "--device cuda: there is no GPU")
        check(any(words in on_device.stderr for words in lacks), f"--device cuda: {on_device.stderr!r}")
        check(on_device.stderr.count("\n") == 1, f"--device cuda: {on_device.stderr!r}")
    print("every drafter leaves the text as it is")


if __name__ == "__main__":
    main()
