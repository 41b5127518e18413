"""Lists what tests left out, from ctest's --output-junit: a line for each test that was skipped, wholly or in part.

    python3 tests/support/skipped.py RESULTS.xml...

Tests say what they leave out by a line with "SKIPPED: WHAT", and test cases by "SKIPPED: NAME needs WHAT".
"""
import collections
import re
import sys
import xml.etree.ElementTree


def reasons_of(output):
    """Of each reason, how many test cases have it, or 0 if it is none of test cases."""
    cases, data, others = collections.Counter(), {}, {}
    for text in re.findall(r"SKIPPED(?: in part)?:[ ]*(.+)", output):
        case = re.fullmatch(r"(.+) needs (shared data )?(.+)", text.strip())
        if case is None or case[1].endswith(".py"):  # which a script says of itself
            others[text.strip()] = None
        elif case[2]:
            cases["shared data"] += 1
            data[case[3].split("/")[0]] = None
        else:
            cases[case[3]] += 1
    for what, count in cases.items():
        names = ": " + ", ".join(data) if what == "shared data" else ""
        yield f"{count} {'needs' if count == 1 else 'need'} {what}{names}"
    yield from others


def lines_of(path):
    for test in xml.etree.ElementTree.parse(path).iter("testcase"):
        reasons = list(reasons_of(test.findtext("system-out") or ""))
        if test.find("skipped") is not None:
            yield f"{test.get('name')}: {'; '.join(reasons) or 'says no reason'}"
        elif reasons:
            yield f"{test.get('name')}, in part: {'; '.join(reasons)}"


def main():
    for path in sys.argv[1:]:
        for line in lines_of(path):
            print(line)


if __name__ == "__main__":
    main()
