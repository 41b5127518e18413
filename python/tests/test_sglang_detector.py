"""The tool-call parser in SGLang's own FunctionCallParser, and the constraint it asks for in SGLang's grammar manager."""
import json
import random
import types
from unittest import mock

import pytest

pytest.importorskip("sglang", reason="SKIPPED: SGLang is not installed")
pytest.importorskip("sglang.srt.constrained.grammar_manager",
                    reason="SKIPPED: what SGLang's grammar manager imports is not installed")
jsonschema = pytest.importorskip("jsonschema", reason="SKIPPED: jsonschema, which judges arguments, is not installed")

import transformers  # noqa: E402
from engine_scripts import PARAMETERS, tools_of  # noqa: E402
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, ToolChoice  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402
from sglang.srt.runtime_context import get_context  # noqa: E402
from test_sglang import serving  # noqa: E402

import tooldecode as td  # noqa: E402
from tooldecode._tools import ToolRequest  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def plugin():
    load_plugins()
    from tooldecode import sglang as backend

    backend.register()


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return transformers.AutoTokenizer.from_pretrained(tiny)


@pytest.fixture
def server(tokenizer):
    with serving(tokenizer) as made:
        yield made


def chat(**more):
    return ChatCompletionRequest(**{"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools_of(),
                                    "max_tokens": 500} | more)


def joined(results):
    """Text and calls of what parse_stream_chunk and parse_stream_end give."""
    content, calls = "", []
    for text, items in results:
        content += text
        for item in items:
            if item.name:
                assert item.tool_index == len(calls)
                calls.append([item.name, ""])
            assert item.tool_index == len(calls) - 1
            calls[-1][1] += item.parameters
    return content, [(name, json.loads(arguments)) for name, arguments in calls]


def stream(parser, tokenizer, tokens):
    text, results = "", []
    for i in range(len(tokens)):
        whole = tokenizer.decode(tokens[: i + 1])
        if not whole.endswith("\ufffd"):
            results.append(parser.parse_stream_chunk(whole[len(text):]))
            text = whole
    return results + [parser.parse_stream_end()]


def test_names(tokenizer):
    from sglang.srt.server_args import _tool_call_parser_choices

    assert {"tooldecode", *(f"tooldecode-{name}" for name in td.formats())} <= set(_tool_call_parser_choices())
    with pytest.raises(td.Error, match="TOOLDECODE_FORMAT"):
        FunctionCallParser(chat().tools, "tooldecode", tokenizer=tokenizer)  # the tiny model's template has no calls


def test_options():
    """The command of docs/sglang.md, as SGLang's server reads it."""
    import argparse

    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    options = parser.parse_args("--model-path m --tool-call-parser tooldecode --grammar-backend tooldecode".split())
    assert options.tool_call_parser == options.grammar_backend == "tooldecode"
    with pytest.raises(SystemExit):
        parser.parse_args("--model-path m --tool-call-parser tooldecode-herms".split())


def test_format_of_the_environment(tokenizer, monkeypatch):
    monkeypatch.setenv("TOOLDECODE_FORMAT", "hermes,json-fence,json")
    parser = FunctionCallParser(chat().tools, "tooldecode", tokenizer=tokenizer)
    text = '```json\n{"name": "add", "arguments": {"a": 1}}\n```'
    assert parser.has_tool_call(text) and parser.has_tool_call('x <tool_call>') and not parser.has_tool_call("plain: text (yes)")
    content, calls = parser.parse_non_stream(text)
    assert [(one.name, one.parameters, one.tool_index) for one in calls] == [("add", '{"a": 1}', 1)] and not content


@pytest.mark.parametrize("name", td.formats())
@pytest.mark.parametrize("choice", ["auto", "required", "named"])
def test_mask_stream_and_parser_agree(server, name, choice):
    """As for vLLM: random answers under the mask, read by the stream, the whole parser, and the format's own parse."""
    dice, tokenizer = random.Random(f"{name} {choice}"), server.tokenizer
    tool_choice = {"type": "function", "function": {"name": "get_weather"}} if choice == "named" else choice
    calls_made = 0
    for seed in range(2):
        request = chat(tools=tools_of(strict=True), tool_choice=tool_choice, parallel_tool_calls=seed == 0)

        def new():
            return FunctionCallParser(request.tools, f"tooldecode-{name}", tokenizer=tokenizer, tool_choice=request.tool_choice)

        assert new().owns_tool_format()
        constraint = new().get_structure_constraint(request.tool_choice, parallel_tool_calls=request.parallel_tool_calls)
        params = request.to_sampling_params([], {}, constraint)
        definition = ToolRequest.of_text(params["structural_tag"])
        server.add("r", {"structural_tag": params["structural_tag"]})
        server.wait()
        grammar, tokens = server.requests["r"].grammar, []
        if choice == "auto":  # or it would be text
            text = definition.reader().write([("add", {"a": 7})])
            tokens = tokenizer.encode(text[: text.index("7")], add_special_tokens=False)
            for token in tokens:
                grammar.accept_token(token)
        while not grammar.is_terminated():
            assert len(tokens) < 3000
            from engine_scripts import draw

            tokens.append(draw(server.masks(["r"])[0], dice, server.ends))
            grammar.accept_token(tokens[-1])
        text = tokenizer.decode(tokens[:-1])
        expected = [(call.name, call.arguments) for call in definition.reader().parse(text)]
        assert expected and (seed == 0 or len(expected) == 1)
        calls_made += len(expected)
        for called, arguments in expected:
            jsonschema.validate(arguments, PARAMETERS[called])
        assert new().has_tool_call(text)
        content, calls = new().parse_non_stream(text)
        assert [(call.name, json.loads(call.parameters)) for call in calls] == expected and not content.strip()
        parser = new()
        content, calls = joined(stream(parser, tokenizer, tokens[:-1]))
        assert calls == expected and not content.strip()
        assert parser.detector.streamed_args_for_tool == [one["arguments"] for one in parser.detector.prev_tool_call_arr]
    assert calls_made >= 2


def test_what_is_constrained(server, monkeypatch):
    def constraint(**more):
        request = chat(**more)
        parser = FunctionCallParser(request.tools, "tooldecode-hermes", tokenizer=server.tokenizer)
        found = parser.get_structure_constraint(request.tool_choice, parallel_tool_calls=request.parallel_tool_calls)
        return None if found is None else ToolRequest.of_text(json.dumps(found[1].model_dump()))

    assert constraint() is None
    assert constraint(tools=tools_of(True)).enforcement == "strict"
    assert constraint(tool_choice="required").enforcement == "relax"
    assert constraint(parallel_tool_calls=False).parallel is False
    monkeypatch.setenv("TOOLDECODE_CONSTRAIN", "always")
    assert constraint().choice == "auto"
    monkeypatch.delenv("TOOLDECODE_CONSTRAIN")
    # With another backend required calls are SGLang's lists, and strict tools are read.
    with get_context().override_server_args(grammar_backend="xgrammar"):
        request = chat(tool_choice="required")
        parser = FunctionCallParser(request.tools, "tooldecode-hermes", tokenizer=server.tokenizer)
        assert not parser.owns_tool_format() and parser.get_structure_constraint("required")[0] == "json_schema"
        assert FunctionCallParser(chat(tools=tools_of(True)).tools, "tooldecode-hermes",
                                  tokenizer=server.tokenizer).get_structure_constraint("auto") is None


def test_bad_tools_fail_alone(server):
    bad = tools_of(True)
    bad[1]["function"]["parameters"] = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}}
    request = chat(tools=bad)
    found = FunctionCallParser(request.tools, "tooldecode-hermes", tokenizer=server.tokenizer).get_structure_constraint("auto")
    server.add("bad", {"structural_tag": json.dumps(found[1].model_dump())})
    server.wait()
    assert "pattern" in server.requests["bad"].to_finish.message


def test_free_answers(tokenizer):
    tools = chat().tools
    for text, expected in (('So: <tool_call>\n{"name":"add","arguments":{"b":[1]}}\n</tool_call>', ("So: ", [("add", {"b": [1]})])),
                           ("So: <tool_call> is text", ("So: <tool_call> is text", [])), ("plain", ("plain", []))):
        parser = FunctionCallParser(tools, "tooldecode-hermes", tokenizer=tokenizer)
        assert joined(stream(parser, tokenizer, tokenizer.encode(text, add_special_tokens=False))) == expected
        content, calls = FunctionCallParser(tools, "tooldecode-hermes", tokenizer=tokenizer).parse_non_stream(text)
        assert (content, [(call.name, json.loads(call.parameters)) for call in calls]) == expected


@pytest.mark.parametrize("name", td.formats())
def test_sglang_stops_kimi_k3_where_its_own_parser_does_and_no_other_format(tokenizer, name):
    """An empty text would stop an answer at its first token."""
    from sglang.srt.function_call.kimik3_detector import KimiK3Detector

    detector = FunctionCallParser(chat().tools, f"tooldecode-{name}", tokenizer=tokenizer).detector
    assert detector.eot_token == (KimiK3Detector().eot_token if name == "kimi-k3" else None)


def test_answer_of_kimi_k3_that_sglang_stopped_is_read_whole(server):
    tools = chat(tools=tools_of(strict=True)).tools

    def new():
        return FunctionCallParser(tools, "tooldecode-kimi-k3", tokenizer=server.tokenizer)

    definition = ToolRequest.of_text(json.dumps(new().get_structure_constraint("required")[1].model_dump()))
    calls = [("add", {"a": 7}), ("add", {"a": 8})]
    text = definition.reader().write(calls)
    text = text[: text.index(new().detector.eot_token)]  # SGLang cuts the stop off
    content, read = new().parse_non_stream(text)
    assert not content and [(call.name, json.loads(call.parameters)) for call in read] == calls
    assert joined(stream(new(), server.tokenizer, server.tokenizer.encode(text, add_special_tokens=False))) == ("", calls)


def tools_of_responses(tool):
    from sglang.srt.entrypoints.openai.protocol import ResponsesRequest
    from sglang.srt.entrypoints.openai.serving_responses import OpenAIServingResponses

    request = ResponsesRequest(model="m", input="hi", tools=[{"type": "function"} | tool])
    return OpenAIServingResponses._response_tools_to_chat_tools(types.SimpleNamespace(tool_call_parser="tooldecode"), request)


def tools_of_messages(tool):
    from sglang.srt.entrypoints.anthropic.protocol import AnthropicMessagesRequest
    from sglang.srt.entrypoints.anthropic.serving import AnthropicServing

    tool = {"input_schema" if key == "parameters" else key: value for key, value in tool.items()}
    request = AnthropicMessagesRequest(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], tools=[tool])
    return AnthropicServing(mock.MagicMock())._convert_to_chat_completion_request(request).tools


def tools_of_chat(tool):
    return chat(tools=[{"type": "function", "function": tool | {"strict": False}}]).tools


@pytest.mark.parametrize("given", [tools_of_responses, tools_of_messages, tools_of_chat])
@pytest.mark.parametrize("choice", ["required", "named"])
def test_required_calls_conform_where_strict_is_false(server, given, choice):
    """SGLang makes false of what a client leaves out of a response's or a message's tools."""
    tools = given(tools_of()[1]["function"])
    assert [tool.function.strict for tool in tools] == [False]
    asked = ToolChoice(function={"name": "add"}) if choice == "named" else choice
    tag = FunctionCallParser(tools, "tooldecode-hermes", tokenizer=server.tokenizer).get_structure_constraint(asked)[1]
    reader = ToolRequest.of_text(json.dumps(tag.model_dump())).reader()
    text = '<tool_call>\n{"name": "add", "arguments": {"a": '
    assert reader.advance_bytes(reader.initial(), (text + "7").encode()) is not None
    assert reader.advance_bytes(reader.initial(), (text + '"').encode()) is None


@pytest.mark.parametrize("model", ["dsv4", "dsv41"])
def test_reasoning_parser_of_docs_for_deepseek_v4(model, monkeypatch):
    """The options of docs/sglang.md. SGLang's own names for these models go together alone."""
    from sglang.srt.entrypoints.openai import serving_deepseek_recipe
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    monkeypatch.setattr(serving_deepseek_recipe, "DeepSeekRecipe", mock.MagicMock())
    name = {"dsv4": "deepseek-v4", "dsv41": "deepseek-v41"}[model]
    tool_call_parser = {"dsv4": "tooldecode-deepseek-v4", "dsv41": "tooldecode-deepseek-v4.1"}[model]

    def adapter(reasoning_parser):
        return serving_deepseek_recipe.DeepSeekRecipeChatEncodingAdapter(
            chat_encoding_spec=model, tokenizer=None, reasoning_parser=reasoning_parser, tool_call_parser=tool_call_parser,
            chat_hooks=None, default_chat_template_kwargs=None)

    with pytest.raises(ValueError, match="cannot be mixed"):
        adapter(name)
    assert adapter("deepseek-v3").output is None  # the text goes to the parsers of the options
    (documented,) = {ReasoningParser.DetectorMap[one]().reasoning_default for one in (name, "deepseek-v3")}
    assert documented == "explicit_thinking"
    for text in ("hm</think>So", "<think>hm</think>So"):
        assert ReasoningParser("deepseek-v3", force_reasoning=True).parse_non_stream(text) == ("hm", "So")
