"""What `tooldecode serve` holds the text of an answer to, asked as clients of vLLM, SGLang and llama.cpp ask.

    python tests/structured_outputs.py PROGRAM [--only NAME]
"""
import http.client
import json
import re
import signal
import time

import serve
from serve import GOODBYE, TOOLS, WEATHER, Server, joined, request

REPORT = {"type": "object", "properties": {"sky": {"enum": ["clear", "grey"]}, "degrees": {"type": "integer",
          "minimum": -30, "maximum": 40}}, "required": ["sky", "degrees"], "additionalProperties": False}
PATTERN = r"(rain|snow) in \d{2}:\d{2} o'clock"
LABELS = ["clear sky", "grey", "grey and wet", "\u00e9t\u00e9"]
NEWLINE = 206  # a token of the embedded model
GBNF = 'root ::= city (", " city){0,2} "."\ncity ::= "Oslo" | "Rome" | "Lima"'
LARK = 'start: city (", " city)~0..2 "."\ncity: "Oslo" | "Rome" | "Lima"'
CITIES = r"(Oslo|Rome|Lima)(, (Oslo|Rome|Lima)){0,2}\."
TAG = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
    {"type": "const_string", "value": "<answer>"}, {"type": "json_schema", "json_schema": REPORT},
    {"type": "or", "elements": [{"type": "const_string", "value": "</answer>"}, {"type": "regex", "pattern": "[!?]{3}"}]}]}}


def is_report(text):
    value = json.loads(text)
    return set(value) == {"sky", "degrees"} and value["sky"] in ("clear", "grey") and -30 <= value["degrees"] <= 40


def is_tagged(text):
    match = re.fullmatch(r"<answer>(.*?)(</answer>|[!?]{3})", text)
    return match is not None and is_report(match[1])


# Each rule in the spellings of several clients, which mean the same, and what a text of it is.
RULES = {
    "json": ([{"structured_outputs": {"json": REPORT}}, {"structured_outputs": {"json": json.dumps(REPORT)}},
              {"guided_json": REPORT}, {"guided_json": json.dumps(REPORT)}, {"json_schema": REPORT},
              {"response_format": {"type": "json_schema", "json_schema": {"name": "report", "schema": REPORT}}}], is_report),
    "regex": ([{"structured_outputs": {"regex": PATTERN}}, {"guided_regex": PATTERN}, {"regex": PATTERN},
               {"structured_outputs": {"regex": PATTERN, "choice": None, "disable_fallback": True}}],
              lambda text: re.fullmatch(PATTERN, text)),
    "choice": ([{"structured_outputs": {"choice": LABELS}}, {"guided_choice": LABELS}], lambda text: text in LABELS),
    "grammar": ([{"structured_outputs": {"grammar": GBNF}}, {"guided_grammar": GBNF}, {"grammar": GBNF}, {"ebnf": GBNF},
                 {"guided_grammar": LARK}, {"grammar": LARK}], lambda text: re.fullmatch(CITIES, text)),
    "tag": ([{"structured_outputs": {"structural_tag": TAG}}, {"structured_outputs": {"structural_tag": json.dumps(TAG)}},
             {"structural_tag": TAG}, {"response_format": TAG}], is_tagged),
}


def content(choice):
    assert choice["finish_reason"] == "stop" and "tool_calls" not in choice["message"], choice
    return choice["message"]["content"]


def test_rules():
    """All texts conform, and the spellings of a rule give one text; in a stream too, and with drafts."""
    for arguments in (("--format", "python"), ("--format", "qwen3-coder", "--speculation", "forced+suffix")):
        with Server(*arguments) as server:
            for name, (spellings, conforms) in RULES.items():
                seen = set()
                for seed in range(4):
                    body = request(WEATHER, None, temperature=1.5, seed=seed, max_tokens=200)
                    texts = {content(server.chat(body, **spelling)["choices"][0]) for spelling in spellings}
                    text, = texts
                    assert conforms(text), (name, text)
                    seen.add(text)
                assert len(seen) > 1, (name, seen)
                message, finish, *_ = joined(server.events(body, **spellings[0]))
                assert (message["content"], finish) == (text, "stop"), (message, text)
                for one in server.chat(body, **spellings[0], n=3)["choices"]:
                    assert conforms(content(one)), one
    print("texts conform by Python's re and json")


def test_responses(server):
    """The Responses API has them as well."""
    for name, (spellings, conforms) in RULES.items():
        body = {"model": "tiny", "input": WEATHER, "temperature": 1, "seed": 1, "max_output_tokens": 200}
        if "response_format" in spellings[-1]:
            spellings = spellings[:-1]
        texts = set()
        for spelling in spellings:
            status, answer = server.ask("POST", "/v1/responses", {**body, **spelling})
            assert status == 200 and answer["status"] == "completed", answer
            texts.add(answer["output"][0]["content"][0]["text"])
        text, = texts
        assert conforms(text), (name, text)
    form = {"format": {"type": "json_object"}}
    server.refused(400, "invalid_value", "regex", {**body, "text": form, "regex": "a"}, path="/v1/responses")


def test_tools(server):
    """A schema goes beside calls; other rules need that nothing is called."""
    tools = {"tools": TOOLS, "max_tokens": 200}
    answer = server.chat(request(WEATHER, structured_outputs={"json": REPORT}, max_tokens=200))["choices"][0]
    same = server.chat(request(WEATHER, response_format=RULES["json"][0][-1]["response_format"], max_tokens=200))
    assert answer["finish_reason"] == same["choices"][0]["finish_reason"], (answer, same)
    for name, (spellings, conforms) in RULES.items():
        if name == "json":
            continue
        for spelling in spellings:
            place, value = next(iter(spelling.items()))
            place += f".{next(iter(value))}" if place == "structured_outputs" else ""
            error = server.refused(400, "invalid_value", place, request(WEATHER, **spelling))
            assert "tool_choice none" in error["message"], error
        for more in ({}, {"tool_enforcement": "relax"}):
            text = content(server.chat({**request(WEATHER), **tools, **spellings[0], **more, "tool_choice": "none"})[
                "choices"][0])
            assert conforms(text), (name, text)


def test_ends(server):
    """A text that must be whole is never cut, and stop texts end one."""
    for spellings, _ in RULES.values():
        error = server.refused(400, "invalid_value", "max_tokens", request(WEATHER, None, max_tokens=1, **spellings[0]))
        assert "max_tokens" in error["message"], error
    body = request(GOODBYE, None, regex="[ab]{2}-[ab]{8}", temperature=2, seed=1, max_tokens=30, stop=["-"])
    choice = server.chat(body)["choices"][0]
    assert re.fullmatch("[ab]{2}", choice["message"]["content"]) and choice["stop_reason"] == "-", choice
    # White space is held back where calls could follow it, but not where there are no tools.
    newline = {"stop": ["\n"], "logit_bias": {str(NEWLINE): 100}, "max_tokens": 16}
    answer = server.chat(request(GOODBYE, None, **newline))
    assert answer["choices"][0]["stop_reason"] == "\n" and answer["usage"]["completion_tokens"] == 1, answer
    endless = server.chat(request(GOODBYE, None, regex="(ab)+!", temperature=2, seed=1, max_tokens=20,
                                  logit_bias={str(token): -100 for token in range(8)}))["choices"][0]["message"]["content"]
    assert re.fullmatch("(ab)+!", endless), endless  # the end is reached in time
    listed = server.chat(request(GOODBYE, None, regex="[ab]{4}", logprobs=True, top_logprobs=20))["choices"][0]
    for token in listed["logprobs"]["content"]:
        assert all(set(one["token"]) <= set("ab") or one["token"] == "<|end|>" for one in token["top_logprobs"]), token


def test_refusals(server):
    for code, param, change in (
            ("invalid_value", "structured_outputs.choice", {"structured_outputs": {"regex": "a", "choice": ["a"]}}),
            ("missing_required_parameter", "structured_outputs", {"structured_outputs": {}}),
            ("invalid_type", "structured_outputs", {"structured_outputs": "a"}),
            ("unsupported_parameter", "structured_outputs.whitespace_pattern",
             {"structured_outputs": {"json": {}, "whitespace_pattern": " "}}),
            ("unsupported_value", "structured_outputs.disable_additional_properties",
             {"structured_outputs": {"json": {}, "disable_additional_properties": True}}),
            ("invalid_type", "structured_outputs.disable_fallback", {"structured_outputs": {"regex": "a", "disable_fallback": 1}}),
            ("invalid_type", "structured_outputs.disable_any_whitespace",
             {"structured_outputs": {"json": {}, "disable_any_whitespace": "yes"}}),
            ("unsupported_parameter", "structured_outputs.jsn", {"structured_outputs": {"jsn": {}}}),
            ("unsupported_parameter", "guided_whitespace_pattern", {"guided_whitespace_pattern": " "}),
            ("invalid_value", "guided_regex", {"guided_regex": "a", "guided_json": {}}),
            ("invalid_value", "grammar", {"grammar": GBNF, "response_format": {"type": "json_object"}}),
            ("invalid_type", "guided_choice", {"guided_choice": []}), ("invalid_type", "guided_choice", {"guided_choice": "a"}),
            ("invalid_type", "guided_choice[1]", {"guided_choice": ["a", 1]}),
            ("invalid_type", "guided_regex", {"guided_regex": 3}), ("invalid_type", "guided_json", {"guided_json": 3}),
            ("invalid_value", "guided_json", {"guided_json": "{"}), ("invalid_type", "guided_json", {"guided_json": "[]"}),
            ("invalid_schema", "guided_json", {"guided_json": {"properties": {"a": {"type": "int"}}}}),
            ("invalid_grammar", "structured_outputs.regex", {"structured_outputs": {"regex": "a("}}),
            ("invalid_grammar", "guided_regex", {"guided_regex": "(a{1000}){1000}"}),
            ("invalid_grammar", "grammar", {"grammar": "root ::= nobody"}),
            ("invalid_grammar", "guided_grammar", {"guided_grammar": "start: nobody"}),
            ("invalid_grammar", "response_format",
             {"response_format": {"type": "structural_tag", "format": {"type": "king"}}}),
            ("unsupported_parameter", "response_format.king", {"response_format": {**TAG, "king": 1}})):
        error = server.refused(400, code, param, request(GOODBYE, None, **change))
        assert error["message"].startswith(param), error
    with Server("--format", "harmony") as other:
        error = other.refused(400, "invalid_value", "guided_regex", request(GOODBYE, None, guided_regex="a"))
        assert "harmony" in error["message"], error
    for more, ignored in (({"disable_any_whitespace": True}, "structured_outputs.disable_any_whitespace"),
                          ({"disable_any_whitespace": False, "disable_fallback": True}, None)):
        for path, body in (("/v1/chat/completions", request(GOODBYE, None, max_tokens=60)),
                           ("/v1/responses", {"model": "tiny", "input": GOODBYE}),
                           ("/v1/completions", {"model": "tiny", "prompt": GOODBYE, "max_tokens": 60})):
            with server.open("POST", path, {**body, "structured_outputs": {"json": REPORT, **more}}) as response:
                said = response.read()
                assert response.status == 200 and response.headers["X-Tooldecode-Ignored"] == ignored, (path, said)
    answer = server.chat(request(GOODBYE, None, guided_regex="a", guided_decoding_backend="xgrammar"))["choices"][0]
    assert content(answer) == "a", answer


def test_completions(server):
    """A completion's schema is read as a chat's: keys come in the order of the schema, and `nullable` admits null."""
    names = ["zz", "aa", "mm"]
    schema = {"type": "object", "properties": {name: {"const": name, "nullable": True} for name in names},
              "required": names, "additionalProperties": False}
    values = set()
    for seed in range(4):
        status, answer = server.ask("POST", "/v1/completions", {
            "model": "tiny", "prompt": GOODBYE, "max_tokens": 60, "n": 4, "seed": seed, "temperature": 2,
            "structured_outputs": {"json": schema}})
        assert status == 200, answer
        for choice in answer["choices"]:
            value = json.loads(choice["text"])
            assert list(value) == names, value
            values |= set(value.values())
    assert values == {None, *names}, values


def test_cancelled():
    """A build for a request ends when the server is stopped."""
    huge = {"oneOf": [{"properties": {f"a{i}": {"type": "string", "pattern": f"^(a|b|{i}){{1,50}}$"}}} for i in range(900)]}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": huge}}
    body = json.dumps(request(GOODBYE, None, structural_tag=tag)).encode()
    for pause in (0.2, 0.1, 0.05, 0.02):  # the whole build takes 1.2 s, or less on a fast machine
        with Server("--drain-seconds", "0") as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
            connection.request("POST", "/v1/chat/completions", headers={
                **serve.JSON_TYPE, "Content-Length": str(len(body)), "Expect": "100-continue"})
            assert connection.sock.recv(1000).startswith(b"HTTP/1.1 100 "), "it was not accepted"
            connection.sock.sendall(body)
            time.sleep(pause)
            start = time.monotonic()
            server.stop(signal.SIGTERM)
            assert time.monotonic() - start < 5, "it was not cancelled"
            with connection.getresponse() as response:
                status, error = response.status, json.loads(response.read())["error"]
            connection.close()
        if not (status == 400 and "limits.steps" in error["message"]):  # the build was over
            break
    assert status == 503 and error["code"] == "stopping", error


def main():
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals(), "--timeout", "600")


if __name__ == "__main__":
    main()
