"""The prompt template and the two answer formats, as the model card specifies them."""

import ast
import json

BEGIN, TOOLS, USER, ASSISTANT, END, PAD = (
    "<|begin|>",
    "<|tools|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|pad|>",
)
CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
SPECIAL = (BEGIN, TOOLS, USER, ASSISTANT, END, PAD)


def compact(value) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def type_text(schema: dict) -> str:
    """The TYPE of a signature line."""
    if "enum" in schema:
        return "|".join(compact(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return "|".join(kind)
    if kind == "array":
        return f"array<{type_text(schema.get('items', {}))}>"
    return kind


def signature(tool: dict) -> str:
    """`name(param: TYPE, opt?: TYPE = DEFAULT): description` and a newline."""
    function = tool["function"]
    parameters = function.get("parameters", {})
    required = parameters.get("required", [])
    parts = []
    for name, schema in parameters.get("properties", {}).items():
        default = schema.get("default")
        parts.append(
            f"{name}{'' if name in required else '?'}: {type_text(schema)}"
            + ("" if default is None else f" = {compact(default)}")
        )
    return f"{function['name']}({', '.join(parts)}): {function.get('description', '')}\n"


def call_text(call: dict, style: str) -> str:
    """One call without the list's brackets, or as one `<tool_call>` block."""
    if style == "python":
        return f"{call['name']}({', '.join(f'{key}={value!r}' for key, value in call['arguments'].items())})"
    body = json.dumps({"name": call["name"], "arguments": call["arguments"]}, ensure_ascii=False)
    return f"{CALL_OPEN}\n{body}\n{CALL_CLOSE}"


def answer_text(calls: list[dict], style: str) -> str:
    """The assistant's turn for one call or several."""
    texts = [call_text(call, style) for call in calls]
    return f"[{', '.join(texts)}]" if style == "python" else "\n".join(texts)


def head(tools: list[dict], style: str) -> str:
    """Everything before the first user turn."""
    return f"{BEGIN}{TOOLS}format: {style}\n" + "".join(signature(tool) for tool in tools)


def render(tools: list[dict], messages: list[dict], style: str) -> str:
    """The exact text of a prompt, up to and including `<|assistant|>`."""
    text = head(tools, style)
    for message in messages:
        text += USER + message["content"] + ASSISTANT if message["role"] == "user" else message["content"] + END
    return text


def parse(text: str, style: str):
    """The calls of an answer: a list, empty for plain text, or None when it is malformed."""
    if style == "python":
        if not text.startswith("["):
            return []
        try:
            calls = ast.parse(text, mode="eval").body.elts
            return [
                {
                    "name": ast.unparse(call.func),
                    "arguments": {item.arg: ast.literal_eval(item.value) for item in call.keywords},
                }
                for call in calls
            ]
        except (SyntaxError, ValueError, AttributeError):
            return None
    if CALL_OPEN not in text:
        return []
    calls = []
    for block in text.split(CALL_OPEN)[1:]:
        body, closed, _ = block.partition(CALL_CLOSE)
        try:
            call = json.loads(body)
        except json.JSONDecodeError:
            return None
        if not closed or not isinstance(call, dict) or set(call) != {"name", "arguments"}:
            return None
        calls.append(call)
    return calls
