"""`tooldecode serve` by OpenAI's older completions, which continue a text.

    python tests/completions.py PROGRAM [--only NAME]
"""
import json
import math
import pathlib
import re
import shutil
import tempfile

import serve
from serve import GOODBYE, WEATHER, Server, request

PATH = "/v1/completions"
REPORT = {"type": "object", "properties": {"sky": {"enum": ["clear", "grey"]}}, "required": ["sky"]}


def prompt_of(*turns):
    """What the prompt of a chat without tools is as a text."""
    text = "<|begin|><|tools|>format: python\n"
    for i, turn in enumerate(turns):
        text += f"<|user|>{turn}<|assistant|>" if i % 2 == 0 else f"{turn}<|end|>"
    return text


def asking(prompt, **more):
    return {"model": "tiny", "prompt": prompt, "temperature": 0, "max_tokens": 60, **more}


def complete(server, body):
    status, answer = server.ask("POST", PATH, body)
    assert status == 200, answer
    assert answer["object"] == "text_completion" and answer["id"].startswith("cmpl-"), answer
    return answer


def token_of(byte):
    """The token of a byte: byte-level vocabularies name those that cannot be seen by characters from U+0100 on."""
    seen = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    unseen = [other for other in range(256) if other not in seen]
    name = chr(byte) if byte in seen else chr(0x100 + unseen.index(byte))
    return json.loads((serve.DATA / "tiny/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"][name]


def newline():
    return token_of(0x0a)


def streamed(server, body):
    """What a stream says in all of each choice, and the usage."""
    with server.open("POST", PATH, {**body, "stream": True}) as response:
        assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream", response.read()
        text = response.read().decode()
    *blocks, last, rest = text.split("\n\n")
    assert last == "data: [DONE]" and rest == "", text
    choices, usage = {}, None
    for block in blocks:
        chunk = json.loads(block.removeprefix("data: "))
        assert chunk["object"] == "text_completion", chunk
        usage = chunk.get("usage") or usage
        for part in chunk["choices"]:
            whole = choices.setdefault(part["index"], {"index": part["index"], "text": "", "logprobs": None,
                                                       "finish_reason": None})
            assert whole["finish_reason"] is None, part
            whole["text"] += part["text"]
            for key, value in (part["logprobs"] or {}).items():
                whole["logprobs"] = whole["logprobs"] or {key: [] for key in part["logprobs"]}
                whole["logprobs"][key] += value
            whole.update({key: value for key, value in part.items() if key in ("finish_reason", "stop_reason")})
    return [choices[index] for index in sorted(choices)], usage, len(blocks)


def test_prompts(server):
    """The text of a chat's prompt is continued as the chat is, and so are its tokens."""
    for turns in ((GOODBYE,), (GOODBYE, "You are welcome!", GOODBYE), (WEATHER,)):
        messages = [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]
        chat = server.chat(request(messages, None, max_tokens=60))
        for prompt in (prompt_of(*turns), [prompt_of(*turns)]):
            answer = complete(server, asking(prompt))
            choice, = answer["choices"]
            # A text that a chat's answer does not begin with, since it would be a call, may be written here.
            if not choice["text"].startswith("["):
                assert choice["text"] == chat["choices"][0]["message"]["content"], (choice, chat)
                assert choice["finish_reason"] == chat["choices"][0]["finish_reason"], (choice, chat)
            assert answer["usage"]["prompt_tokens"] == chat["usage"]["prompt_tokens"], (answer, chat)
    # Every digit is a token.
    vocabulary = json.loads((serve.DATA / "tiny/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    tokens = [vocabulary[digit] for digit in "12345"]
    text = complete(server, asking("12345", max_tokens=5))
    for prompt in (tokens, [tokens]):
        same = complete(server, asking(prompt, max_tokens=5))
        assert same["choices"] == text["choices"], (same, text)
        assert serve.tokens_of(same["usage"]) == serve.tokens_of(text["usage"]), (same, text)
    assert text["usage"]["prompt_tokens"] == 5, text
    assert complete(server, {"model": "tiny", "prompt": "1", "temperature": 2, "seed": 1, "logit_bias": {
        str(token): -100 for token in range(8)}})["usage"]["completion_tokens"] == 16  # the default


def test_begin_tokens():
    """The begin token comes first as tokenizer_config.json says, and alone where nothing is said."""
    tiny = serve.DATA / "tiny"
    config = json.loads((tiny / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["add_bos_token"] is False, config
    unsaid = {key: value for key, value in config.items() if key != "add_bos_token"}
    for said, begin in ((config, 0), ({**config, "add_bos_token": True}, 1), (unsaid, 1)):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "tiny"
            shutil.copytree(tiny, place)
            (place / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
            with Server("--model", str(place)) as server:
                for prompt, count in (("12345", begin + 5), ("<|begin|>12345", 6), ("", 1), ([1, 2], 2)):
                    usage = complete(server, asking(prompt, max_tokens=1))["usage"]
                    assert usage["prompt_tokens"] == count, (said, prompt, usage)


def test_without_control_tokens():
    """A tokenizer without the control tokens of chats continues texts, and the server says at its start what it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        place, said = pathlib.Path(folder) / "tiny", pathlib.Path(folder) / "stderr"
        shutil.copytree(serve.DATA / "tiny", place)
        tokenizer = (place / "tokenizer.json").read_text(encoding="utf-8")
        (place / "tokenizer.json").write_text(tokenizer.replace("<|user|>", "<|you|>").replace("<|tools|>", "<|them|>"),
                                              encoding="utf-8")
        with said.open("w", encoding="utf-8") as errors, Server("--model", str(place), errors=errors) as server:
            line, = said.read_text(encoding="utf-8").splitlines()
            assert "/v1/completions is answered" in line and "tokens <|tools|>, <|user|>: chats" in line and "GGUF" in line, line
            assert complete(server, asking("12345", max_tokens=1))["usage"]["prompt_tokens"] == 5
            status, answer = server.ask("POST", "/v1/chat/completions", request(WEATHER))
            assert status == 400 and "<|tools|>" in answer["error"]["message"], answer
        with said.open("w", encoding="utf-8") as errors, Server(errors=errors):
            assert said.read_text(encoding="utf-8") == ""


def test_texts():
    """A text that looks like a call is a text, whatever the format."""
    prompt = prompt_of(WEATHER).replace("python\n", "python\nget_weather(city: string, days?: integer): Weather forecast.\n")
    texts = set()
    for form in ("python", "harmony"):
        with Server("--format", form) as server:
            texts.add(complete(server, asking(prompt))["choices"][0]["text"])
    text, = texts
    assert text.startswith("[get_weather("), text


def test_streams(server):
    for more in ({}, {"n": 3, "temperature": 1.5, "seed": 4, "max_tokens": 20}, {"stop": ["w"]}, {"max_tokens": 3},
                 {"logprobs": 2}, {"logprobs": 0, "n": 2, "temperature": 1, "seed": 1}):
        body = asking(prompt_of(GOODBYE), **more)
        whole = complete(server, body)
        choices, usage, count = streamed(server, {**body, "stream_options": {"include_usage": True}})
        assert choices == whole["choices"], (choices, whole)
        assert serve.tokens_of(usage) == serve.tokens_of(whole["usage"]), (usage, whole)
        assert count > len(choices) + 1 or "stop" in more, count
    assert streamed(server, asking("1"))[1] is None, "usage that was not asked for"
    stopped = complete(server, asking(prompt_of(GOODBYE), stop=["w"]))["choices"][0]
    assert "w" not in stopped["text"] and stopped["finish_reason"] == "stop" and stopped["stop_reason"] == "w", stopped
    assert complete(server, asking(prompt_of(GOODBYE), max_tokens=3))["choices"][0]["finish_reason"] == "length"
    # A stop text of white space alone also ends an answer that begins with it.
    for body in ({"stop": ["\n"]}, {"stop": ["\n\n\n"]}):
        body = asking("1", **body, logit_bias={str(newline()): 100})
        answer = complete(server, body)
        assert answer["choices"][0]["text"] == "" and answer["choices"][0]["stop_reason"] == body["stop"][0], answer
        assert answer["usage"]["completion_tokens"] == len(body["stop"][0]), answer
        usage = streamed(server, {**body, "stream_options": {"include_usage": True}})[1]
        assert serve.tokens_of(usage) == serve.tokens_of(answer["usage"]), answer


def test_log_probabilities(server):
    answer = complete(server, asking(prompt_of(GOODBYE), logprobs=3))["choices"][0]
    listed = answer["logprobs"]
    assert "".join(listed["tokens"]) == answer["text"], answer
    assert set(map(len, listed.values())) == {len(listed["tokens"])} and len(listed["tokens"]) > 2, listed
    for i, (token, value, top, offset) in enumerate(zip(listed["tokens"], listed["token_logprobs"], listed["top_logprobs"],
                                                        listed["text_offset"])):
        assert offset == len("".join(listed["tokens"][:i])) and answer["text"][offset:].startswith(token), (i, listed)
        assert value <= 0 and 1 <= len(top) <= 3 and math.isclose(top[token], value, abs_tol=1e-6), (value, top)
    chat = server.chat(request(GOODBYE, None, max_tokens=60, logprobs=True))["choices"][0]["logprobs"]["content"]
    for one, other in zip(listed["token_logprobs"], chat):
        assert math.isclose(one, other["logprob"], abs_tol=1e-3), (one, other)
    # Parts of characters are told apart.
    parts = {str(token_of(0xc3)): 100, str(token_of(0xe2)): 99, str(token_of(0xf0)): 98}
    listed = complete(server, asking("1", logprobs=3, max_tokens=1, logit_bias=parts))["choices"][0]["logprobs"]
    assert listed["tokens"] == ["bytes:\\xc3"], listed
    top, = listed["top_logprobs"]
    assert list(top) == ["bytes:\\xc3", "bytes:\\xe2", "bytes:\\xf0"], top
    assert top["bytes:\\xc3"] == listed["token_logprobs"][0] and sorted(top.values(), reverse=True) == list(top.values()), top
    assert complete(server, asking("1", logprobs=0))["choices"][0]["logprobs"]["top_logprobs"][0] is None
    assert complete(server, asking("1"))["choices"][0]["logprobs"] is None


def test_rules():
    """Texts under a rule, in any format: no messages are around them here."""
    for form in ("python", "harmony"):
        with Server("--format", form) as server:
            for more in ({"guided_regex": "[ab]{3}-[0-9]{2}"}, {"grammar": 'root ::= [ab]{3} "-" [0-9]{2}'}):
                text = complete(server, asking("So: ", **more, temperature=2, seed=3))["choices"][0]["text"]
                assert re.fullmatch("[ab]{3}-[0-9]{2}", text), text
            for schema in ({"enum": [[1, 2], [3]]}, {"enum": ["get_weather()"]}):
                for more in ({"json_schema": schema}, {"structured_outputs": {"json": schema}}, {"response_format": {
                        "type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}):
                    text = complete(server, asking("", **more))["choices"][0]["text"]
                    assert json.loads(text) in schema["enum"], text
            error = server.refused(400, "invalid_schema", "json_schema", asking("", json_schema={"type": "int"}), path=PATH)
            assert error["message"].startswith("json_schema: #"), error
            server.refused(400, "invalid_value", "max_tokens", asking("", json_schema=REPORT, max_tokens=2), path=PATH)


def test_refusals(server):
    for code, param, change in (
            ("missing_required_parameter", "prompt", {"prompt": None}), ("invalid_type", "prompt", {"prompt": 3}),
            ("invalid_value", "prompt", {"prompt": []}), ("unsupported_value", "prompt", {"prompt": ["a", "b"]}),
            ("unsupported_value", "prompt", {"prompt": [[1], [2]]}), ("invalid_value", "prompt[1]", {"prompt": [1, 8192]}),
            ("invalid_value", "prompt[0]", {"prompt": [[]]}), ("invalid_type", "prompt[0][1]", {"prompt": [[1, "a"]]}),
            ("invalid_value", "prompt[0][1]", {"prompt": [[1, 8192]]}), ("unsupported_value", "prompt", {"prompt": [1, [2]]}),
            ("invalid_value", "prompt[0]", {"prompt": [-1]}), ("invalid_type", "prompt[0]", {"prompt": [1.5]}),
            ("unsupported_value", "echo", {"echo": True}), ("unsupported_value", "best_of", {"best_of": 2}),
            ("unsupported_value", "best_of", {"best_of": 1, "n": 2}),
            ("unsupported_value", "suffix", {"suffix": "."}), ("invalid_value", "logprobs", {"logprobs": 21}),
            ("invalid_type", "logprobs", {"logprobs": True}), ("invalid_value", "n", {"n": 17}),
            ("unsupported_parameter", "messages", {"messages": []}), ("unsupported_parameter", "tools", {"tools": []}),
            ("unknown_parameter", "promt", {"promt": "a"}), ("invalid_value", "max_tokens", {"max_tokens": 0}),
            ("invalid_grammar", "regex", {"regex": "a("}),
            ("context_length_exceeded", "prompt", {"prompt": "1" * 1025})):
        server.refused(400, code, param, {**asking("Hello"), **change}, path=PATH)
    server.refused(404, "model_not_found", "model", {**asking("Hello"), "model": "gpt-9"}, path=PATH)
    server.refused(400, "invalid_value", "response_id", request(GOODBYE, response_id="cmpl-mine"))
    plain = asking("Hello", echo=False, best_of=1, suffix=None, user="Ann", seed=1)
    with server.open("POST", PATH, plain) as response:
        assert response.status == 200 and response.headers["X-Tooldecode-Ignored"] == "user", response.headers.items()


def main():
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals(), "--timeout", "600")


if __name__ == "__main__":
    main()
