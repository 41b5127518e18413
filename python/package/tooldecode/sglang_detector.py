"""For SGLang 0.5: the tool-call parser `tooldecode`, of every call format.

    python -m sglang.launch_server --model-path MODEL --tool-call-parser tooldecode --grammar-backend tooldecode

The format is the one of the model's chat template and what such models fall back to. `--tool-call-parser tooldecode-hermes`
names one, and the environment variable TOOLDECODE_FORMAT names several, `hermes,json`, or a .json file with a description.
Where SGLang constrains calls (strict tools, required and named ones), the constraint is of the same format. With
TOOLDECODE_CONSTRAIN=always every request with tools gets one.
"""
from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from typing import Any

from sglang.srt.entrypoints.openai.protocol import Tool, ToolChoice
from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser

from . import Error, StreamEvent, formats, openings
from ._tools import AnswerReader, ToolRequest, calls_in, documents_of, format_for, read_tool_answer

__all__ = ["ToolDecodeDetector", "register_detectors"]

logger = logging.getLogger("sglang.tooldecode")

NAME = "tooldecode"


class _Tag:
    """What SGLang sends to the grammar backend as a structural tag."""

    def __init__(self, request: ToolRequest) -> None:
        self._request = request

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return json.loads(self._request.text())


def _is_backend() -> bool:
    """Whether the server's grammar backend is this package's."""
    from sglang.srt.runtime_context import get_context

    return get_context().config_leaf("grammar_backend") == NAME


class ToolDecodeDetector(BaseFormatDetector):
    """Reads calls in a call format, and says what constrains them."""

    format = ""  # empty: the chat template's

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._format = format_for(tokenizer, self.format)
        self._reader: AnswerReader | None = None
        # SGLang stops an answer of Kimi K3 at this text: an empty one would stop it at its first token, None stops nothing.
        self.eot_token = "<|close|>tools<|sep|>" if "<|open|>tools<|sep|>" in openings(self._format) else None

    def _request(self, tools: Sequence[Tool], **more: Any) -> ToolRequest:
        # SGLang's Responses and Messages APIs say false for a client that says nothing.
        documents = documents_of(tools, may_be_lax=False)
        return ToolRequest(json.dumps(documents, ensure_ascii=False), self._format, **more)

    def has_tool_call(self, text: str) -> bool:
        return any(opening in text for opening in openings(self._format))

    def detect_and_parse(self, text: str, tools: list[Tool]) -> StreamingParseResult:
        content, calls = read_tool_answer(self._request(tools), False, text)
        places = self._get_tool_indices(tools)
        return StreamingParseResult(normal_text=content, calls=[
            ToolCallItem(tool_index=places[call.name], name=call.name, parameters=call.arguments) for call in calls])

    def parse_streaming_increment(self, new_text: str, tools: list[Tool]) -> StreamingParseResult:
        if self._reader is None:
            self._reader = AnswerReader(self._request(tools), False)
        return self._result(self._reader.push(new_text))

    def finish(self, tools: list[Tool]) -> StreamingParseResult:
        return self._result(self._reader.finish()) if self._reader is not None else StreamingParseResult()

    def _result(self, events: Sequence[StreamEvent]) -> StreamingParseResult:
        text, calls = calls_in(self, events)
        return StreamingParseResult(normal_text=text, calls=[
            ToolCallItem(tool_index=index, name=name, parameters=arguments) for index, name, arguments in calls])

    def supports_structural_tag(self) -> bool:
        """Whether required calls come in this format. With another backend they are SGLang's JSON lists."""
        return _is_backend()

    def get_structural_tag(self, tools: list[Tool] | None = None, tool_choice: Any = "auto", thinking_mode: bool = False,
                           parallel_tool_calls: bool = True) -> _Tag | None:
        if not tools:
            return None
        if not _is_backend():
            if tool_choice == "auto":
                logger.warning("Strict tools are read and not enforced: that needs --grammar-backend %s", NAME)
            return None
        is_named = isinstance(tool_choice, ToolChoice)
        is_strict = any(tool.function.strict for tool in tools)
        request = self._request(tools, choice="named" if is_named else tool_choice,
                                name=tool_choice.function.name if is_named else "", parallel=parallel_tool_calls,
                                enforcement="strict" if is_strict else "relax")
        return _Tag(request)

    def get_auto_tool_call_structural_tag(self, tools: list[Tool] | None = None, thinking_mode: bool = False,
                                          parallel_tool_calls: bool = True) -> _Tag | None:
        is_asked = os.environ.get("TOOLDECODE_CONSTRAIN") == "always" or not parallel_tool_calls
        return self.get_structural_tag(tools, "auto", thinking_mode, parallel_tool_calls) if is_asked and _is_backend() else None

    def structure_info(self) -> Any:
        raise Error("invalid_option", "structure_info", "a constraint of all tools comes from get_structural_tag")


def register_detectors() -> None:
    """`tooldecode`, and one for each format."""
    known = FunctionCallParser.ToolCallParserEnum
    known.setdefault(NAME, ToolDecodeDetector)
    for name in formats():
        if f"{NAME}-{name}" not in known:
            known[f"{NAME}-{name}"] = type("ToolDecodeDetector", (ToolDecodeDetector,), {"format": name})
