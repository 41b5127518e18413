"""The tool parser in vLLM's own parser classes, and the constraint it asks for in vLLM's manager of structured outputs."""
import json
import logging
import random
import subprocess
import sys

import pytest

vllm = pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
pytest.importorskip("vllm.v1.structured_output", reason="SKIPPED: what vLLM's structured outputs import is not installed")
jsonschema = pytest.importorskip("jsonschema", reason="SKIPPED: jsonschema, which judges arguments, is not installed")

from engine_scripts import PARAMETERS, tools_of  # noqa: E402
from test_vllm import Engine, make_config  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.parser.parser_manager import ParserManager  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402
from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402
from vllm.v1.request import Request  # noqa: E402

import tooldecode as td  # noqa: E402
from tooldecode._tools import ToolRequest  # noqa: E402

HERMES = """{%- for turn in messages %}<|{{ turn.role }}|>{%- if turn.tool_calls %}{%- for call in turn.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}{%- else %}{{ turn.content }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}<|assistant|>{%- endif %}"""


@pytest.fixture(scope="module", autouse=True)
def plugin():
    load_general_plugins()
    from tooldecode import vllm as backend

    backend.register()


@pytest.fixture(scope="module")
def engine(tiny):
    made = Engine(make_config(tiny))
    yield made
    made.manager.clear_backend()


@pytest.fixture(scope="module")
def tokenizer(engine):
    return engine.tokenizer


def parser_of(name, tokenizer):
    return ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True, tokenizer=tokenizer)


def verified(request, engine, backend=None):
    """The sampling parameters that the engine of a request makes, with this package's backend or another."""
    params = request.to_sampling_params(200, {})
    params.update_from_generation_config(engine.config.model_config.try_get_generation_config(), engine.ends[0])
    config = engine.config.structured_outputs_config if backend is None else StructuredOutputsConfig(backend=backend)
    params.verify(engine.config.model_config, None, config, engine.tokenizer)
    return params


def chat(**more):
    return ChatCompletionRequest(**{"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools_of()} | more)


def stream(parser, tokenizer, tokens, request):
    """The deltas of each token, and behind the last of the end."""
    text, steps = "", []
    for i, token in enumerate(tokens):
        whole = tokenizer.decode(tokens[: i + 1], skip_special_tokens=False)
        delta = "" if whole.endswith("\ufffd") else whole[len(text):]
        text += delta
        steps.append(parser.parse_delta(delta, [token], request, prompt_token_ids=[7] if i == 0 else None, finished=i + 1 == len(tokens)))
    return steps


def joined(steps):
    content, calls = "", {}
    for message in steps:
        if message is None:
            continue
        content += message.content or ""
        for delta in message.tool_calls:
            if delta.id is not None:
                assert delta.index == len(calls) and delta.function.name
                calls[delta.index] = [delta.function.name, ""]
            calls[delta.index][1] += delta.function.arguments or ""
    return content, [(name, json.loads(arguments)) for name, arguments in calls.values()]


def test_names(tokenizer):
    known = ToolParserManager.list_registered()
    assert {"tooldecode", *(f"tooldecode-{name}" for name in td.formats())} <= set(known)
    assert ToolParserManager.get_tool_parser("tooldecode-glm-4.7").format == "glm-4.7"
    with pytest.raises(TypeError, match="tooldecode"):
        parser_of("tooldecode", tokenizer)  # the tiny model's template has no calls


def test_options(monkeypatch):
    """The command of docs/vllm.md, as vLLM's server reads and checks it."""
    import vllm.platforms
    from vllm.entrypoints.common.cli_args import make_arg_parser, validate_api_server_args
    from vllm.platforms.cpu import CpuPlatform
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    monkeypatch.setattr(vllm.platforms, "_current_platform", CpuPlatform())
    command = ["--model", "m", "--enable-auto-tool-choice", "--tool-call-parser", "tooldecode",
               "--structured-outputs-config.backend", "tooldecode", "--speculative-config",
               '{"method": "custom_class", "model": "tooldecode.vllm_proposer.ToolDecodeProposer", "num_speculative_tokens": 8}']
    options = make_arg_parser(FlexibleArgumentParser()).parse_args(command)
    validate_api_server_args(options)
    assert options.structured_outputs_config.backend == options.tool_call_parser == "tooldecode"
    options.tool_call_parser = "tooldecode-herms"
    with pytest.raises(KeyError, match="tooldecode-hermes"):
        validate_api_server_args(options)


OFFLINE = """
import sys

from tooldecode.vllm import register
from vllm import LLM
from vllm.entrypoints import llm


def made(**arguments):
    print("made with", arguments["structured_outputs_config"].backend)
    sys.exit()


llm.EngineArgs = made
register()
LLM("m", structured_outputs_config={"backend": "tooldecode"})
"""


def test_offline():
    """The lines of docs/vllm.md, in a new process, where LLM makes its configuration before it loads plugins."""
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True)
    assert done.stdout.endswith("made with tooldecode\n"), done.stderr


def test_format_of_the_template(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", HERMES, raising=False)
    from tooldecode import _tools

    monkeypatch.setattr(_tools, "_formats", {})
    parser = parser_of("tooldecode", tokenizer)(tokenizer, chat().tools)
    assert parser.tool_parser._format == "auto:hermes"
    _, content, calls = parser.parse('```json\n{"name": "add", "arguments": {"a": 1}}\n```', chat(), enable_auto_tools=True)
    assert [call.name for call in calls] == ["add"] and not content


def test_format_of_the_environment(tokenizer, monkeypatch):
    monkeypatch.setenv("TOOLDECODE_FORMAT", "hermes,json")
    assert parser_of("tooldecode", tokenizer)(tokenizer, []).tool_parser._format == "hermes,json"
    monkeypatch.setenv("TOOLDECODE_FORMAT", "herms")
    with pytest.raises(TypeError, match="herms"):
        parser_of("tooldecode", tokenizer)


@pytest.mark.parametrize("name", td.formats())
@pytest.mark.parametrize("choice", ["auto", "required", "named"])
def test_mask_stream_and_parser_agree(engine, tokenizer, name, choice):
    """Random answers under the mask that the adjusted request gets are read as the same calls by the stream and by the
    whole parser, as by the format's own parse; and their arguments conform by another validator."""
    dice = random.Random(f"{name} {choice}")
    tool_choice = {"type": "function", "function": {"name": "get_weather"}} if choice == "named" else choice
    parser_class = parser_of(f"tooldecode-{name}", tokenizer)
    calls_made = 0
    for seed in range(3):
        request = chat(tools=tools_of(strict=True), tool_choice=tool_choice, parallel_tool_calls=seed != 2)
        request = parser_class(tokenizer, request.tools).adjust_request(request)
        assert request.skip_special_tokens is False
        params = verified(request, engine)
        assert ToolRequest.is_text(params.structured_outputs.grammar)
        engine.requests["r"] = Request("r", [7, 8], params, None)
        engine.manager.grammar_init(engine.requests["r"])
        grammar = engine.ready(engine.requests["r"])
        if choice == "auto":  # or it would be text
            definition = ToolRequest.of_text(params.structured_outputs.grammar)
            text = definition.reader().write([("add", {"a": 7})])
            tokens = tokenizer.encode(text[: text.index("7")], add_special_tokens=False)
            assert grammar.accept_tokens("r", tokens)
            engine.requests["r"].append_output_token_ids(tokens)
        while not grammar.is_terminated():
            assert engine.requests["r"].num_output_tokens < 3000
            engine.step({"r": []}, dice)
        tokens = list(engine.requests["r"].output_token_ids)[:-1]
        text = engine.text("r")
        definition = ToolRequest.of_text(params.structured_outputs.grammar)
        expected = [(call.name, call.arguments) for call in definition.reader().parse(text)]
        assert expected
        calls_made += len(expected)
        for called, arguments in expected:
            jsonschema.validate(arguments, PARAMETERS[called])
        _, content, calls = parser_class(tokenizer, request.tools).parse(text, request, enable_auto_tools=True)
        assert [(call.name, json.loads(call.arguments)) for call in calls] == expected and not (content or "").strip()
        content, calls = joined(stream(parser_class(tokenizer, request.tools), tokenizer, tokens, request))
        assert calls == expected and not content.strip()
        assert choice != "named" or [called for called, _ in calls] == ["get_weather"]
        assert seed != 2 or len(calls) == 1
    assert calls_made >= 3


@pytest.mark.parametrize("name", td.formats())
@pytest.mark.parametrize("strict", [None, True])
def test_first_argument_comes_at_once(engine, tokenizer, name, strict):
    """In the step of the first argument's first token, by vLLM's own way from tokens to deltas."""
    parser_class = parser_of(f"tooldecode-{name}", tokenizer)
    request = chat(tools=tools_of(strict))
    request = parser_class(tokenizer, request.tools).adjust_request(request)
    verified(request, engine)
    arguments = {"city": "Oslo", "days": 3}
    text = ToolRequest(json.dumps(tools_of()), name).reader().write([("get_weather", arguments)])
    tokens = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(tokens, skip_special_tokens=False) == text
    first = next(i for i in range(len(tokens))
                 if len(tokenizer.decode(tokens[: i + 1], skip_special_tokens=False)) > text.index("Oslo"))
    steps = stream(parser_class(tokenizer, request.tools), tokenizer, tokens, request)
    given = ["".join(delta.function.arguments or "" for delta in step.tool_calls) if step else "" for step in steps]
    assert "".join(given[: first + 1]).replace(" ", "").startswith('{"city":'), given
    assert json.loads("".join(given)) == arguments


def test_what_is_constrained(tokenizer, monkeypatch):
    parser_class = parser_of("tooldecode-hermes", tokenizer)

    def grammar(**more):
        request = chat(**more)
        request = parser_class(tokenizer, request.tools).adjust_request(request)
        asked = request.extract_structured_outputs()
        return ToolRequest.of_text(asked.grammar) if asked is not None and ToolRequest.is_text(asked.grammar) else None

    assert grammar() is None and grammar(tool_choice="none") is None and grammar(tools=None, tool_choice=None) is None
    assert grammar(tool_choice="required").choice == "required" and grammar(parallel_tool_calls=False).parallel is False
    assert grammar(tools=tools_of(True)).enforcement == "strict" and grammar(tool_choice="required").enforcement == "relax"
    named = grammar(tool_choice={"type": "function", "function": {"name": "add"}})
    assert (named.choice, named.name) == ("named", "add")
    monkeypatch.setenv("TOOLDECODE_CONSTRAIN", "always")
    assert grammar().choice == "auto"
    monkeypatch.delenv("TOOLDECODE_CONSTRAIN")
    # Beside a response_format, answers without calls have its schema.
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    asked = grammar(tools=tools_of(True), response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    reader = asked.reader()
    for text, is_right in (('{"ok": true}', True), ('{"ok": 1}', False), ("Hello", False),
                           ('<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>', True)):
        state = reader.advance_bytes(reader.initial(), text.encode())
        assert (state is not None and reader.is_accepting(state)) == is_right, text
    # What is no JSON stays as it is.
    request = chat(tools=tools_of(True), structured_outputs={"regex": "a+"})
    assert parser_class(tokenizer, request.tools).adjust_request(request).structured_outputs.regex == "a+"
    # A strict tool that cannot be enforced is the client's error, with its place.
    bad = tools_of(True)
    bad[1]["function"]["parameters"] = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}}
    request = chat(tools=bad)
    with pytest.raises(VLLMValidationError, match="pattern"):
        parser_class(tokenizer, request.tools).adjust_request(request)


def test_responses_requests(engine, tokenizer):
    tools = [{"type": "function", "name": name, "parameters": parameters, "strict": True} for name, parameters in PARAMETERS.items()]
    request = ResponsesRequest(model="m", input="hi", tools=tools, tool_choice="required")
    parser = parser_of("tooldecode-qwen3-coder", tokenizer)(tokenizer, request.tools)
    request = parser.adjust_request(request)
    definition = ToolRequest.of_text(request.to_sampling_params(100, {}).structured_outputs.grammar)
    assert definition.choice == "required"
    text = definition.reader().write([("add", {"a": 3})])
    _, content, calls = parser.parse(text, request, enable_auto_tools=True)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("add", {"a": 3})]


def test_allowed_tools(tokenizer):
    """The mode and only these tools; and what is no function is the client's error."""
    def adjusted(tool_choice, strict=None):
        tools = [{"type": "function", "name": name, "parameters": parameters, "strict": strict} for name, parameters in PARAMETERS.items()]
        request = ResponsesRequest(model="m", input="hi", tools=tools, tool_choice=tool_choice)
        parser = parser_of("tooldecode-hermes", tokenizer)(tokenizer, request.tools)
        return parser, parser.adjust_request(request)

    def allowed(mode, *names):
        return {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name} for name in names]}

    texts = {name: ToolRequest(json.dumps(tools_of()), "hermes").reader().write([(name, arguments)])
             for name, arguments in (("add", {"a": 3}), ("get_weather", {"city": "Oslo"}))}
    for strict, mode in ((True, "auto"), (None, "auto"), (None, "required")):
        parser, request = adjusted(allowed(mode, "add"), strict)
        definition = ToolRequest.of_text(request.to_sampling_params(100, {}).structured_outputs.grammar)
        assert definition.choice == mode
        reader = definition.reader()
        for name, text in texts.items():
            state = reader.advance_bytes(reader.initial(), text.encode())
            assert (state is not None and reader.is_accepting(state)) == (name == "add")
            _, content, calls = parser.parse(text, request, enable_auto_tools=True)
            assert [call.name for call in calls or []] == (["add"] if name == "add" else []) and (content or "") == ("" if calls else text)
    for wrong in ({"type": "web_search_preview"}, allowed("auto", "fly"), allowed("required"),
                  {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "image_generation"}]}):
        with pytest.raises(VLLMValidationError, match="tool_choice") as error:
            adjusted(wrong)
        assert error.value.parameter == "tool_choice"


def test_malformed_tools_are_refused_before_generation(tokenizer):
    parser_class = parser_of("tooldecode-hermes", tokenizer)
    request = chat(tools=tools_of() + tools_of())
    with pytest.raises(VLLMValidationError) as error:
        parser_class(tokenizer, request.tools).adjust_request(request)
    assert error.value.parameter == "tools"
    tools = tools_of()
    tools[0]["function"]["parameters"] = {"type": "object", "properties": {"city": {"type": ["string", {"x": 1}]}}}
    request = chat(tools=tools)
    request = parser_class(tokenizer, request.tools).adjust_request(request)
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    _, _, calls = parser_class(tokenizer, request.tools).parse(text, request, enable_auto_tools=True)
    assert [json.loads(call.arguments) for call in calls] == [{"city": "Oslo"}]


def test_another_backend(engine, tokenizer, caplog):
    """Where the engine has none of this package, strict tools are read only, and required calls are refused."""
    parser_class = parser_of("tooldecode-hermes", tokenizer)

    def verify(**more):
        request = chat(**more)
        request = parser_class(tokenizer, request.tools).adjust_request(request)
        return verified(request, engine, "xgrammar"), request

    params, request = verify(tools=tools_of(True))
    assert params.structured_outputs is None
    _, _, calls = parser_class(tokenizer, request.tools).parse(
        '<tool_call>\n{"name": "add", "arguments": {"b": []}}\n</tool_call>', request, enable_auto_tools=True)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("add", {"b": []})]  # not masked, so not judged
    params, request = verify(parallel_tool_calls=False)
    assert params.structured_outputs is None
    text = '<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>'
    _, _, calls = parser_class(tokenizer, request.tools).parse(text, request, enable_auto_tools=True)
    assert [json.loads(call.arguments) for call in calls] == [{"a": 1}]
    content, calls = joined(stream(parser_class(tokenizer, request.tools), tokenizer, tokenizer.encode(text, add_special_tokens=False), request))
    assert calls == [("add", {"a": 1})] and not content.strip()
    with pytest.raises(VLLMValidationError, match="structured-outputs-config.backend tooldecode"):
        verify(tool_choice="required")


def test_two_engines_of_a_process(engine, tokenizer):
    """Each answer is read by what its own engine enforces, whichever request was verified last."""
    parser_class = parser_of("tooldecode-hermes", tokenizer)

    def adjusted():
        request = chat(tools=tools_of(True))
        return parser_class(tokenizer, request.tools).adjust_request(request)

    # Such arguments cannot come from a mask, so they are text where there was one, and a call where there was none.
    text = '<tool_call>\n{"name": "add", "arguments": {"b": []}}\n</tool_call>'
    ours, other = adjusted(), adjusted()
    for order in ((ours, other), (other, ours)):
        for request in order:
            verified(request, engine, None if request is ours else "xgrammar")
        read = [parser_class(tokenizer, request.tools).parse(text, request, enable_auto_tools=True) for request in (ours, other)]
        assert not read[0][2] and read[0][1] == text
        assert [json.loads(call.arguments) for call in read[1][2]] == [{"b": []}]


def test_free_answers(tokenizer):
    """Without a constraint: text, calls with arguments that the document does not know, and no tools."""
    parser_class = parser_of("tooldecode-hermes", tokenizer)
    request = chat()
    text = 'So: <tool_call>\n{"name":"add","arguments":{"b":[1]}}\n</tool_call>'
    for tokens in (tokenizer.encode(text, add_special_tokens=False), tokenizer.encode("So: <tool_call> is text", add_special_tokens=False)):
        whole = tokenizer.decode(tokens, skip_special_tokens=False)
        content, calls = joined(stream(parser_class(tokenizer, request.tools), tokenizer, tokens, request))
        _, parsed, made = parser_class(tokenizer, request.tools).parse(whole, request, enable_auto_tools=True)
        assert calls == [(call.name, json.loads(call.arguments)) for call in made or []]
        assert content == parsed
        assert (content, calls) == (("So: ", [("add", {"b": [1]})]) if whole == text else (whole, []))
    none = chat(tool_choice="none")
    content, calls = joined(stream(parser_class(tokenizer, none.tools), tokenizer, tokenizer.encode(text, add_special_tokens=False), none))
    assert (content, calls) == (text, [])


@pytest.mark.parametrize("name", ["kimi-k2", "kimi-k3", "hermes"])
def test_ids_of_calls(tokenizer, name):
    """Kimi's chat templates write ids, which count the calls of the dialogue."""
    parser_class = parser_of(f"tooldecode-{name}", tokenizer)
    before = [{"id": f"x{i}", "type": "function", "function": {"name": "add", "arguments": "{}"}} for i in range(3)]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": before[:1]},
                {"role": "assistant", "content": "", "tool_calls": before[1:]}]
    items = [{"type": "function_call", "call_id": one["id"], "name": "add", "arguments": "{}"} for one in before]
    text = ToolRequest(json.dumps(tools_of()), name).reader().write([("add", {"a": 1}), ("get_weather", {"city": "Oslo", "days": 2})])
    tokens = tokenizer.encode(text, add_special_tokens=False)
    response = ResponsesRequest(model="m", input=items, tools=[{"type": "function"} | one["function"] for one in tools_of()])
    for request in (chat(messages=messages), response):
        whole = parser_class(tokenizer, request.tools).parse(text, request, enable_auto_tools=True)[2]
        steps = stream(parser_class(tokenizer, request.tools), tokenizer, tokens, request)
        streamed = [delta.id for step in steps if step for delta in step.tool_calls if delta.id]
        if name == "hermes":
            ids = [call.id for call in whole] + streamed
            assert len({*ids}) == 4 and all(one.startswith("chatcmpl-tool-") for one in ids)
        else:
            assert [call.id for call in whole] == streamed == ["functions.add:3", "functions.get_weather:4"]


@pytest.mark.parametrize("name", ["hf", "beam"])
def test_reasoning_parsers_that_go_with_their_own_tool_parser_alone(tokenizer, name):
    """As docs/vllm.md says."""
    with pytest.raises(TypeError, match="cannot be combined"):
        ParserManager.get_parser(tool_parser_name="tooldecode-hermes", reasoning_parser_name=name, enable_auto_tools=True,
                                 tokenizer=tokenizer)


def test_reasoning_of_vllm(tokenizer, tmp_path, tiny):
    """vLLM's own reasoning parsers stand before the tool parser."""
    import transformers

    logging.disable(logging.NOTSET)
    own = transformers.AutoTokenizer.from_pretrained(tiny)
    own.add_tokens(["<think>", "</think>"])
    parser_class = ParserManager.get_parser(tool_parser_name="tooldecode-hermes", reasoning_parser_name="deepseek_r1",
                                            enable_auto_tools=True, tokenizer=own)
    request = chat()
    text = 'hm <tool_call>\n{"name": "add", "arguments": {"a": 1}}</think>\n\n<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
    tokens = own.encode(text, add_special_tokens=False)
    steps = stream(parser_class(own, request.tools), own, tokens, request)
    content, calls = joined(steps)
    assert calls == [("add", {"a": 2})] and not content.strip()
    assert "".join(step.reasoning or "" for step in steps if step).startswith("hm <tool_call>")
    reasoning, content, calls = parser_class(own, request.tools).parse(text, request, enable_auto_tools=True)
    assert [(call.name, call.arguments) for call in calls] == [("add", '{"a": 2}')] and reasoning.startswith("hm")
