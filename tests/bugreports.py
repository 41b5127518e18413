"""Cases after public bug reports, each with the answer that its standard has.

    python tests/bugreports.py PROGRAM [ANSWERS]

Asks `tooldecode check` about every case of bugreports/cases.jsonl: texts of schemas, expressions, grammars, tags and
calls, tools that must load in a format, errors that must name a place. A text that is judged wrongly fails the test; what
is refused or decided otherwise is printed with its reason, which must be one of REFUSED or DECIDED. Cases of a tokenizer
are asked of ANSWERS, which is tests/support/tokenizer_answers.cpp, compiled; cases of a server are left to its tests, as
those of a tokenizer without ANSWERS, and counted. Says why it is skipped, with exit code 77, where the shared data is absent.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "examples/data/tiny"
CASES = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", ROOT.parent / "shared/data")) / "bugreports/cases.jsonl"
SPECIFIED = {"json-schema": "schema", "regex": "spec", "ebnf": "spec", "lark": "spec", "structural-tag": "spec"}
# What the library refuses with an error that says so, by what its error names.
REFUSED = ("uniqueItems", "limit_exceeded", "malformed_grammar", "arguments cannot be written one by one",
           "flags within a pattern")
# Cases that are decided otherwise here: with tools in the request, what opens a call in a format opens one.
DECIDED = {"noonghunna_club-3090-72.1", "noonghunna_club-3090-72.2"}


def skip(reason: str):
    print(f"SKIPPED: bugreports.py {reason}", file=sys.stderr)
    sys.exit(77)


def check(folder: str, form: str, rows: list, *arguments: str) -> dict:
    """The verdicts by id."""
    path = pathlib.Path(folder) / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [sys.argv[1], "check", "--vocabulary", str(TINY), "--format", form, *arguments, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
    verdicts = {verdict["id"]: verdict for verdict in map(json.loads, done.stdout.splitlines())}
    # Rows that are refused end in a status of their own; a crash leaves rows without a verdict.
    assert len(verdicts) == len(rows), (command, done.returncode, done.stderr)
    return verdicts


def is_error(verdict: dict) -> bool:
    """Whether a row of calls was refused before its text was looked at."""
    return verdict["accepted"] is False and verdict["error_at"] is None


class Tally:
    def __init__(self):
        self.right, self.wrong, self.decided, self.refused = 0, [], [], []
        self.left = collections.Counter()

    def judge(self, case: dict, is_right: bool, said):
        if is_right:
            self.right += 1
        else:
            (self.decided if case["id"] in DECIDED else self.wrong).append((case["id"], case["want"], case["why"], said))


def judge_specified(folder: str, kind: str, cases: list, tally: Tally):
    rows = [{"id": case["id"], SPECIFIED[kind]: case["spec"], "text": case["text"]} for case in cases]
    verdicts = check(folder, kind, rows)
    for case in cases:
        verdict = verdicts[case["id"]]
        if "refused" in verdict and case["want"] != "refuse":
            tally.refused.append((case["id"], verdict["refused"], verdict["reason"]))
        else:
            said = "refuse" if "refused" in verdict else "accept" if verdict["accepted"] else "reject"
            tally.judge(case, said == case["want"], verdict)


def judge_calls(folder: str, form: str, cases: list, tally: Tally):
    by_reasoning = collections.defaultdict(list)
    for case in cases:
        by_reasoning[case["spec"].get("reasoning", "no")].append(case)
    for reasoning, some in by_reasoning.items():
        rows = [{"id": case["id"], "tools": case["spec"]["tools"], "text": case["text"],
                 "choice": case["spec"].get("choice", "auto")} for case in some]
        # Calls are read of texts without reasoning.
        more = ["--calls"] if reasoning == "no" else ["--reasoning", reasoning]
        verdicts = check(folder, form, rows, *more)
        for case in some:
            verdict = verdicts[case["id"]]
            if is_error(verdict):
                tally.refused.append((case["id"], verdict["reason"], case["why"]))
                continue
            said = "accept" if verdict["accepted"] else "reject"
            is_right = said == case["want"]
            if is_right and reasoning == "no" and case.get("calls") is not None:
                calls = [[call["name"], call["arguments"]] for call in verdict["calls"]]
                is_right = calls == case["calls"]
            tally.judge(case, is_right, verdict)


def judge_tools(folder: str, cases: list, tally: Tally):
    for case in cases:
        row = {"id": case["id"], "tools": case["spec"]["tools"], "text": "", "choice": "auto"}
        for form in case["spec"].get("formats", ["hermes"]):
            verdict = check(folder, form, [row])[case["id"]]
            if case["kind"] == "place":
                tally.judge(case, is_error(verdict) and case["want"] in verdict["reason"], verdict)
            elif is_error(verdict):
                tally.refused.append((f"{case['id']} {form}", verdict["reason"], case["why"]))
            else:
                tally.right += 1


def written_bytes(text: str) -> bytes:
    """The bytes that a case writes as a text, or one byte as \\xc3."""
    return bytes([int(text[2:], 16)]) if len(text) == 4 and text.startswith("\\x") else text.encode()


def judge_tokenizers(cases: list, tally: Tally):
    requests = [{"file": str(CASES.parent / "tokenizers" / case["spec"])} for case in cases]
    done = subprocess.run([sys.argv[2]], input="".join(json.dumps(request) + "\n" for request in requests),
                          capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    for case, answer in zip(cases, map(json.loads, done.stdout.splitlines()), strict=True):
        if "error" in answer:
            tally.wrong.append((case["id"], case["want"], case["why"], answer["error"]))
            continue
        said = {token: answer["tokens"][int(token)][0] for token in case["want"]}
        wanted = {token: written_bytes(text).hex() for token, text in case["want"].items()}
        tally.judge(case, said == wanted, said)


def main():
    if not CASES.exists():
        skip(f"needs {CASES.name} of the shared data (set TOOLDECODE_SHARED_DATA)")
    by_kind = collections.defaultdict(list)
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        by_kind[case["kind"]].append(case)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for kind, cases in sorted(by_kind.items()):
            if kind in SPECIFIED:
                judge_specified(folder, kind, cases, tally)
            elif kind.startswith("call:"):
                judge_calls(folder, kind.removeprefix("call:"), cases, tally)
            elif kind in ("load", "place"):
                judge_tools(folder, cases, tally)
            elif kind == "tokenizer" and len(sys.argv) > 2:
                judge_tokenizers(cases, tally)
            else:
                tally.left[kind] += len(cases)
    for name, place, reason in tally.refused:
        print(f"refused: {name}: {place} ({reason})")
    for name, want, why, _ in tally.decided:
        print(f"decided otherwise: {name}: {want}: {why}")
    for name, want, why, said in tally.wrong:
        print(f"WRONG: {name}: must {want}: {why}; {json.dumps(said, ensure_ascii=False)}")
    print(f"{tally.right} right, {len(tally.refused)} refused, {len(tally.decided)} decided otherwise, "
          f"{len(tally.wrong)} wrong; "
          + ", ".join(f"{count} of kind {kind} left out" for kind, count in tally.left.items()))
    assert tally.right > 100, "too few cases were judged"
    assert not tally.wrong, f"{len(tally.wrong)} wrong"
    unknown = [one for one in tally.refused if not any(word in f"{one[1]} {one[2]}" for word in REFUSED)]
    assert not unknown, f"refused for another reason than {REFUSED}: {unknown}"


if __name__ == "__main__":
    main()
