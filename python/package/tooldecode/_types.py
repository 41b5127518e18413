"""The types of the package that are plain Python."""
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
    """What an answer has brought.

    call: which call of the answer, from 0; of the answer's end, how many there were.
    text: of a call's beginning the tool's name, of arguments more of their JSON text.
    """

    kind: Literal["text", "reasoning", "call_begin", "arguments", "call_end", "answer_end"]
    call: int
    text: str
