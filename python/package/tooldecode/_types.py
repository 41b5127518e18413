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


class Note(NamedTuple):
    """A place of a tool's document that is not read literally, contradicts itself or is not enforced.

    pointer: a JSON pointer into the document. reading: a stable name, such as "unknown_keyword" (a key that is nearly a
    keyword and says nothing), "unknown_format", "closed_object" (other names than those of `properties` are forbidden), or
    "widened_schema", "any_arguments" and "dropped_tool" for what `ToolCallFSM.not_enforced` lists. text: one sentence.
    """

    tool: str
    pointer: str
    reading: str
    text: str


class StreamEvent(NamedTuple):
    """An event of an answer.

    call: index of the call, from 0; for "answer_end" the number of calls.
    text: for "call_begin" the tool's name, for "arguments" more of their JSON text.
    """

    kind: Literal["text", "reasoning", "call_begin", "arguments", "call_end", "answer_end"]
    call: int
    text: str


class RefusedText(NamedTuple):
    """The first place of a text that a constraint refuses, and why. `str` gives the lines of `text`.

    at: the byte in UTF-8, the length if only the end is missing (too_short); line, column: from 1, in characters.
    excerpt, caret: the line around the place, and its columns before the place.
    value_at: the JSON pointer of the value being written, in the text or the arguments.
    rules: the JSON pointers of the keywords that forbid the place, each with its value as JSON, cut if long.
    """

    at: int
    too_short: bool
    line: int
    column: int
    excerpt: str
    caret: int
    reason: str
    expected: str
    value_at: str
    rules: list[tuple[str, str]]
    text: str

    def __str__(self) -> str:
        return self.text
