"""The parsers of SGLang and vLLM read the calls that this package's formats write."""
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = {row["format"]: row["texts"] for row in
        map(json.loads, (ROOT / "tests/data/formats/written.jsonl").read_text(encoding="utf-8").splitlines())}
TEXT = "a \"b\" \\ 'c'\n<d> & é"
PLACE = {"x": 1.5, "on": True, "note": None}
CALLS = [[("get", {"city": "Bern", "days": 3})], [("now", {})],
         [("get", {"city": "Zürich 😀"}), ("now", {}), ("get", {"city": ""})],
         [("put", {"text": TEXT, "tags": ["x", "y, z"], "place": PLACE, "any": 7})]]
TOOLS = {"get": {"city": {"type": "string"}, "days": {"type": "integer"}}, "now": {},
         "put": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
                 "place": {"type": "object", "properties": {
                     "x": {"type": "number"}, "on": {"type": "boolean"}, "note": {"type": ["string", "null"]}}}, "any": {"type": "integer"}}}
# SGLang's parser of Step 3 reads no `<` in a value.
SGLANG = [("dots", "dots"), ("step-3", "step3"), ("k2-horizon", "k2_horizon"), ("iquest-q1", "iquest_q1"),
          ("deepseek-v4", "deepseekv4"), ("deepseek-v4.1", "deepseekv41"), ("gigachat-3.5", "gigachat35"),
          ("minimax-m2", "minimax-m2"), ("glm", "glm45"), ("glm", "poolside_v1"), ("glm-4.7", "glm47"), ("glm-4.7", "ling3"),
          ("glm-4.7", "spark25"), ("hermes", "hermes"), ("hermes", "trinity"), ("qwen3-coder", "qwen3_coder"),
          ("qwen3-coder", "step3p5"), ("kimi-k2", "kimi_k2"), ("mimo", "mimo"), ("qwen3-coder", "nanbeige"),
          ("deepseek-v3.1", "deepseekv31"), ("deepseek-v3", "deepseekv3"),
          ("deepseek-v3.2", "deepseekv32"), ("kimi-k3", "kimi_k3"), ("minicpm5", "minicpm5"),
          ("lfm2", "lfm2"), ("llama", "llama3"), ("mistral-args", "mistral"), ("apertus", "apertus2509"),
          ("command-r7b", "cohere_command4"), ("python", "pythonic"),
          ("hunyuan-3", "hunyuan"), ("hunyuan-4", "hunyuan"), ("minimax-m3", "minimax-m3")]
VLLM = {"longcat": "longcat", "plamo-3": "plamo3", "step-3": "step3", "k2-horizon": "k2_horizon", "dots": "dots",
        "minimax-m3": "minimax_m3", "hunyuan-3": "hy_v3", "hunyuan-4": "hy_v4"}


def schema_of(name):
    return {"type": "object", "properties": TOOLS[name]}


@pytest.mark.parametrize("form, name", SGLANG)
def test_sglang_reads_what_a_format_writes(form, name):
    pytest.importorskip("sglang", reason="SKIPPED: SGLang is not installed")
    from sglang.srt.entrypoints.openai.protocol import Function, Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    tools = [Tool(type="function", function=Function(name=tool, parameters=schema_of(tool))) for tool in TOOLS]
    for text, expected in zip(ROWS[form], CALLS):
        if form == "step-3" and TEXT in text:
            continue
        found = FunctionCallParser.ToolCallParserEnum[name]().detect_and_parse(text, tools)
        assert [(call.name, json.loads(call.parameters)) for call in found.calls] == expected, (form, text)


@pytest.mark.parametrize("form, name", VLLM.items())
def test_vllm_reads_what_a_format_writes(tiny, form, name):
    pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
    transformers = pytest.importorskip("transformers", reason="SKIPPED: transformers is not installed")
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    tools = [{"type": "function", "function": {"name": tool, "parameters": schema_of(tool)}} for tool in TOOLS]
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}], tools=tools)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens(sorted(set(re.findall(r"<[^<>\s]+>", "".join(ROWS[form])))))
    parser = ToolParserManager.get_tool_parser(name)
    for text, expected in zip(ROWS[form], CALLS):
        found = parser(tokenizer, request.tools).extract_tool_calls(text, request)
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in found.tool_calls]
        if form == "step-3":  # this parser leaves lists and objects as text
            calls = [(tool, {key: json.loads(value) if key in ("tags", "place") else value for key, value in given.items()})
                     for tool, given in calls]
        assert calls == expected, (form, text)
