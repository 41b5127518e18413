"""The pure Python types of the package."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Error(ValueError):
    """Bad input.

    code: a stable name, such as "malformed_schema"; where: a JSON pointer, a byte, an option, or empty.
    """

    code: str
    where: str

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(code, where, message)
        self.code = code
        self.where = where

    def __str__(self) -> str:
        return str(self.args[2])


class ToolCall(NamedTuple):
    """A call to a tool."""

    name: str
    arguments: dict[str, Any]


class StreamEvent(NamedTuple):
    """An event of an answer.

    call: index of the call, from 0; for "answer_end" the number of calls.
    text: for "call_begin" the tool's name, for "arguments" more of their JSON text.
    """

    kind: Literal["text", "reasoning", "call_begin", "arguments", "call_end", "answer_end"]
    call: int
    text: str
