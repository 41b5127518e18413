"""`python -m tooldecode.check`: verdicts, what it prints, and exit statuses."""
import json
import subprocess
import sys

import pytest

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]


def check(*arguments, text=None):
    run = subprocess.run([sys.executable, "-m", "tooldecode.check", *map(str, arguments)], input=text, capture_output=True,
                         text=True, encoding="utf-8", timeout=60)
    assert "Traceback" not in run.stderr, run.stderr
    return run.returncode, run.stdout, run.stderr


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())
        return path
    return write


def lines_of(output):
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("text, accepted, rules", [('{"a": 12}', True, []), ('{"a": 2}', False, ["#/properties/a/minimum"]),
                                                   ("{}", False, ["#/required"]), ('{"a": 12', False, [])])
def test_a_schema_judges_texts_and_names_the_keyword(write, text, accepted, rules):
    status, output, _ = check("--schema", write("schema.json", SCHEMA), "--json", "-", text=text)
    built, verdict = lines_of(output)
    assert built["not_enforced"] == [] and verdict["accepted"] is accepted and status == (0 if accepted else 1)
    if rules:
        assert rules == [where for where, _ in verdict["refusal"]["rules"]], verdict


def test_tools_give_the_calls_of_an_answer(write, tiny):
    answer = '<tool_call>\n{"name": "add", "arguments": {"a": 5}}\n</tool_call>'
    arguments = ["--tools", write("tools.json", TOOLS), "--vocabulary", tiny, write("answer.txt", answer)]
    status, output, _ = check(*arguments, "--json")
    _, verdict = lines_of(output)
    assert status == 0 and verdict["calls"] == [{"name": "add", "arguments": {"a": 5}}]
    assert verdict["tokens"] > 5 and verdict["first_mask_us"] > 0 and verdict["next_masks_us"]["max"] > 0
    status, output, _ = check(*arguments)
    assert status == 0 and "accepted" in output and 'calls add with {"a": 5}' in output
    status, output, _ = check(*arguments[:-1], write("wrong.txt", answer.replace("5", '"5"')))
    assert status == 1 and "wrong.txt: refused" in output and "/0/function/parameters/properties/a/type" in output


def test_what_is_given_up_is_said_and_is_no_success(write):
    tools = [*TOOLS, {"type": "function", "function": {"name": "odd", "parameters": {
        "type": "object", "properties": {"x": {"type": "string", "pattern": "("}}}}}]
    path = write("tools.json", tools)
    assert check("--tools", path)[0] == 2
    status, output, _ = check("--tools", path, "--enforcement", "drop")
    assert status == 1 and "not enforced: odd" in output


def test_readings_are_said_and_are_a_success(write):
    properties = {"x": {"type": "string", "minLenght": 3, "format": "foo"}}
    tools = [*TOOLS, {"type": "function", "function": {"name": "odd", "parameters": {
        "type": "object", "properties": properties, "requierd": ["x"]}}}]
    path, at = write("tools.json", tools), "/1/function/parameters"
    status, output, _ = check("--tools", path)
    assert status == 0 and "  not enforced: " not in output
    said = [line for line in output.splitlines() if line.startswith("  check: odd ")]
    assert len(said) == 3 and any(f"{at}/requierd: " in line and '"required" is one' in line for line in said)
    status, output, _ = check("--tools", path, "--json")
    (built,) = lines_of(output)
    assert status == 0 and {(one["reading"], one["where"].lstrip("#")) for one in built["readings"]} == {
        ("unknown_keyword", f"{at}/properties/x/minLenght"), ("unknown_format", f"{at}/properties/x/format"),
        ("unknown_keyword", f"{at}/requierd")}
    nothing = {"name": "now", "parameters": {"type": "object", "properties": {}}}
    assert "  check: " not in check("--tools", write("good.json", [*TOOLS, nothing]))[1]


@pytest.mark.parametrize("kind, specification, good, bad", [
    ("--regex", "[ab]{2}", "ab", "abc"), ("--ebnf", 'root ::= "yes" | "no"', "no", "maybe"),
    ("--lark", 'start: "x" /[0-9]+/', "x12", "xy"),
    ("--structural-tag", {"type": "structural_tag", "format": {"type": "const_string", "value": "hi"}}, "hi", "ho")])
def test_other_specifications_judge_texts(write, kind, specification, good, bad):
    given = specification if kind == "--regex" else write("specification", specification)
    status, output, _ = check(kind, given, write("good", good), write("bad", bad), "--json")
    assert status == 1 and [verdict["accepted"] for verdict in lines_of(output)[1:]] == [True, False]
    assert check(kind, given, write("good", good))[0] == 0


@pytest.mark.parametrize("arguments, said", [
    (["--regex", "("], "malformed_pattern: byte 0"), (["--schema", "nowhere.json"], "file_unreadable: nowhere.json"),
    (["--regex", "a", "--whitespace", "1"], "invalid_option: --whitespace"),
    (["--schema", "x", "--whitespace", "-1"], "must be from 0"),
    (["--regex", "a", "--vocabulary", "nowhere"], "nowhere"), ([], "required"), (["--regex", "a", "--ebnf", "b"], "not allowed")])
def test_bad_input_is_an_error_with_its_place(arguments, said):
    status, output, error = check(*arguments)
    assert status == 2 and said in error and not output, (status, output, error)
