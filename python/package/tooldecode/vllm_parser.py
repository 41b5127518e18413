"""For vLLM 0.33: the tool parser `tooldecode`, of every call format.

    vllm serve MODEL --enable-auto-tool-choice --tool-call-parser tooldecode --structured-outputs-config.backend tooldecode

The format is the one of the model's chat template and what such models fall back to. `--tool-call-parser tooldecode-hermes`
names one, and the environment variable TOOLDECODE_FORMAT names several, `hermes,json`, or a .json file with a description.
Where a tool is strict, or a call is required or named, the request gets a constraint of the same format. With
TOOLDECODE_CONSTRAIN=always every request with tools gets one.
"""
from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.exceptions import VLLMValidationError
from vllm.parser.utils import count_history_tool_calls
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from . import Error, StreamEvent, openings
from ._tools import AnswerReader, ToolRequest, calls_in, documents_of, format_for, read_tool_answer
from .vllm import NAME

__all__ = ["ToolDecodeToolParser"]

logger = logging.getLogger("vllm.tooldecode")

_KIMI = {"<|tool_calls_section_begin|>", "<|open|>tools<|sep|>"}  # open the calls of Kimi K2 and K3


def _choice_of(request: Any) -> tuple[str, str]:
    choice = request.tool_choice
    if choice is None or isinstance(choice, str):
        return choice or "auto", ""
    if choice.type == "allowed_tools":
        return choice.mode, ""
    if choice.type == "function":
        return "named", getattr(choice, "function", choice).name
    raise VLLMValidationError(f"tool_choice: {choice.type} is no function, which alone this tool parser calls", parameter="tool_choice")


def _allowed(tools: Sequence[Any], request: Any) -> list[dict[str, Any]]:
    """The documents of the tools that the request may call."""
    documents = documents_of(tools)
    choice = request.tool_choice
    if getattr(choice, "type", "") != "allowed_tools":
        return documents
    names = [one.get("name") or (one.get("function") or {}).get("name") for one in choice.tools if one.get("type") == "function"]
    known = [document["function"].get("name") for document in documents]
    for name in names:
        if name not in known:
            raise VLLMValidationError(f"tool_choice: {name} is none of the tools", parameter="tool_choice")
    if not names:
        raise VLLMValidationError("tool_choice: allows no function, which alone this tool parser calls", parameter="tool_choice")
    return [document for document in documents if document["function"].get("name") in names]


class ToolDecodeToolParser(ToolParser):
    """Reads calls in a call format, and constrains answers to it."""

    # Calls that are required are written in the model's own format too.
    supports_required_and_named = False
    # Nothing but the new piece is read, and the end of a stream is told.
    engine_based_streaming = True

    format = ""  # empty: the chat template's

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._format = format_for(tokenizer, self.format)
        self._reader: AnswerReader | None = None
        # Kimi's chat templates write the id of a call, and models know ids of the name and a number alone.
        self._id_type = "kimi_k2" if _KIMI.intersection(openings(self._format)) else "random"
        self._calls_before = 0  # in the request's messages

    def _count_calls(self, request: Any) -> None:
        if self._id_type != "random":
            self._calls_before = count_history_tool_calls(request)

    def _make_id(self, name: str, index: int) -> str:
        return make_tool_call_id(self._id_type, name, self._calls_before + index)

    def _tool_request(self, request: Any) -> ToolRequest:
        """What a request that was not constrained asks for."""
        return ToolRequest(json.dumps(documents_of(self.tools), ensure_ascii=False), self._format)

    def _definition(self, request: Any) -> tuple[ToolRequest, bool]:
        """How the answer is read, and whether that was enforced: by the constraint that the request carries, if it has one
        of this parser."""
        asked = getattr(request, "_parser_structured_outputs", None) or getattr(request, "structured_outputs", None)
        grammar = getattr(asked, "grammar", None)
        if ToolRequest.is_text(grammar):
            # vLLM verifies a request by these parameters, and its backend marks them then.
            return ToolRequest.of_text(grammar), asked._backend == NAME
        return self._tool_request(request), False

    def adjust_request(self, request: Any) -> Any:
        if not self.tools or request.tool_choice == "none":
            return request
        # Delimiters of many formats are special tokens.
        request.skip_special_tokens = False
        choice, name = _choice_of(request)
        documents = _allowed(self.tools, request)
        is_limited = getattr(request.tool_choice, "type", "") == "allowed_tools"
        if is_limited:
            request.tool_choice = choice  # with another one vLLM does not ask for the calls of a whole answer
        is_strict = any(document["function"].get("strict") for document in documents)
        is_single = request.parallel_tool_calls is False
        if choice == "auto" and not (is_strict or is_single or is_limited) and os.environ.get("TOOLDECODE_CONSTRAIN") != "always":
            return self._checked(self._tool_request(request).without_schemas(), request)
        try:
            text_schema = self._text_schema(request) if choice == "auto" else ""
        except LookupError:
            logger.warning("Tool calls are not constrained beside the structured outputs of the request, which are no JSON")
            return self._checked(self._tool_request(request).without_schemas(), request)
        asked = ToolRequest(json.dumps(documents, ensure_ascii=False), self._format, choice, name, not is_single, text_schema,
                            "strict" if is_strict else "relax")
        self._checked(asked, request)
        params = StructuredOutputsParams(grammar=asked.text())
        if isinstance(request, ResponsesRequest):
            request._parser_structured_outputs = params
        else:
            request.structured_outputs = params
            request.response_format = None
        return request

    @staticmethod
    def _checked(asked: ToolRequest, request: Any) -> Any:
        """The request, if its answer can be read; otherwise it is the client's error, before anything is generated."""
        try:
            asked.reader()
        except Error as error:
            raise VLLMValidationError(f"tools: {error}", parameter="tools") from error
        return request

    @staticmethod
    def _text_schema(request: Any) -> str:
        """The schema of answers without calls, or empty; LookupError for a constraint that has none."""
        asked = request.extract_structured_outputs()
        if asked is None:
            return ""
        if asked.json_object:
            return '{"type": "object"}'
        if asked.json is None:
            raise LookupError
        return asked.json if isinstance(asked.json, str) else json.dumps(asked.json, ensure_ascii=False)

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        if not self.tools or request.tool_choice == "none":
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)
        content, calls = read_tool_answer(*self._definition(request), model_output)
        self._count_calls(request)
        return ExtractedToolCallInformation(
            tools_called=bool(calls), content=content or None,
            tool_calls=[ToolCall(id=self._make_id(call.name, index), function=FunctionCall(name=call.name, arguments=call.arguments))
                        for index, call in enumerate(calls)])

    def extract_tool_calls_streaming(
        self, previous_text: str, current_text: str, delta_text: str, previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int], delta_token_ids: Sequence[int], request: Any,
    ) -> DeltaMessage | None:
        if not self.tools or request.tool_choice == "none":
            return DeltaMessage(content=delta_text) if delta_text else None
        if self._reader is None:
            self._reader = AnswerReader(*self._definition(request))
            self._count_calls(request)
        return self._message(self._reader.push(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Called by vLLM behind the last piece of a stream."""
        return self._message(self._reader.finish()) if self._reader is not None else None

    def get_remaining_unstreamed_args(self) -> str:
        return ""

    def _message(self, events: Sequence[StreamEvent]) -> DeltaMessage | None:
        content, calls = calls_in(self, events)
        # vLLM sends the fields that are set.
        deltas = [DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments)) if name is None else
                  DeltaToolCall(index=index, type="function", id=self._make_id(name, index),
                                function=DeltaFunctionCall(name=name, arguments=arguments))
                  for index, name, arguments in calls]
        return DeltaMessage(content=content or None, tool_calls=deltas) if content or deltas else None


def __getattr__(name: str) -> type[ToolDecodeToolParser]:
    """The parser of one format, `tooldecode-NAME`, as vLLM's registry asks for it."""
    if name.startswith("tooldecode-"):
        return type("ToolDecodeToolParser", (ToolDecodeToolParser,), {"format": name[len("tooldecode-"):]})
    raise AttributeError(name)
