"""Shared by the tool parsers of engines: which calls a request may make, and how its answer is read.

A `ToolRequest` is one definition for everything: the engine builds the mask from its text, and the front end reads the
answer by the same constraint.
"""
from __future__ import annotations

import collections
import functools
import itertools
import json
import logging
import os
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import CallStream, Error, Note, StreamEvent, ToolCall, ToolCallFSM, Vocabulary, formats, openings, tool_calls
from ._known import KnownConstraints

__all__ = ["AnswerReader", "ReadCall", "ToolRequest", "calls_in", "documents_of", "find_format", "format_for", "format_of",
           "log_readings", "read_tool_answer", "unexpected_notes"]

logger = logging.getLogger("tooldecode")

_KEY = "tooldecode_tools"
_MOST_KNOWN = 256  # constraints of front ends; requests often repeat their tools


@dataclass(frozen=True)
class ToolRequest:
    """What one request says of its tools.

    tools: documents as JSON text. format: as `format=` of `tool_calls`, names or a description's text. choice: auto, required or
    named, with the tool's `name`. text_schema: a JSON Schema, as text, of answers without calls; empty: any text.
    """

    tools: str
    format: str
    choice: str = "auto"
    name: str = ""
    parallel: bool = True
    text_schema: str = ""
    enforcement: str = "strict"
    whitespace: int = 0

    def text(self) -> str:
        """As one line that an engine takes for the text of a grammar."""
        return json.dumps({_KEY: 1} | self.__dict__, ensure_ascii=False)

    @staticmethod
    def is_text(text: Any) -> bool:
        """Whether a grammar's text is one of `text`. No grammar of another language begins with a brace."""
        return isinstance(text, str) and text.startswith('{"' + _KEY + '":')

    @classmethod
    def of_text(cls, text: str) -> ToolRequest:
        """Error malformed_json or invalid_option for what `text` does not write."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Error("malformed_json", "", f"a request's tools: {error}") from None
        version = fields.pop(_KEY, None)
        known = cls.__dataclass_fields__
        for name, value in fields.items():
            expected = {"parallel": bool, "whitespace": int}.get(name, str)
            if name not in known or not isinstance(value, expected):
                raise Error("invalid_option", f"/{name}", f"{name}: is no field of a request's tools, or of another type")
        if version != 1 or not {"tools", "format"} <= fields.keys():
            raise Error("invalid_option", f"/{_KEY}", f"{version}: must be 1, with the fields tools and format")
        if not 0 <= fields.get("whitespace", 0) < 2**32:
            raise Error("invalid_option", "/whitespace", f"whitespace: {fields['whitespace']}: must be from 0 to 4294967295")
        return cls(**fields)

    def constraint(self, vocabulary: Vocabulary) -> ToolCallFSM:
        """Error with the JSON pointer of what a tool's document gets wrong."""
        return tool_calls(vocabulary, self.tools, self.format, choice=self.choice, name=self.name, parallel=self.parallel,
                          text_schema=self.text_schema or None, enforcement=self.enforcement, whitespace=self.whitespace)

    def reader(self) -> ToolCallFSM:
        """The same constraint over bytes, which reads text; made once for equal requests."""
        return _readers.get(self)

    def without_schemas(self) -> ToolRequest:
        """The request that reads what a model writes where nothing constrains it: calls to the same tools with any
        arguments, in free text. Strings stay strings in formats that write them without quotes."""
        needs_types, needs_structure = _needs_types(self.format), _needs_structure(self.format)
        documents = []
        for tool in json.loads(self.tools):
            name, parameters = _of_document(tool)
            properties = parameters.get("properties")
            properties = properties if isinstance(properties, dict) else {}
            types = _Types(parameters)

            def read_as(schema: Any, types: _Types = types) -> dict[str, Any]:
                if needs_structure:
                    return types.shape(schema)
                return _only_strings(types.of(schema)) if needs_types else {}

            documents.append({"name": name, "parameters": {
                "type": "object", "properties": {key: read_as(value) for key, value in properties.items()},
                "additionalProperties": True}})
        return ToolRequest(json.dumps(documents), self.format, enforcement="drop", whitespace=16)


def _of_document(tool: Any) -> tuple[Any, dict[str, Any]]:
    """The name, which nothing has checked, and the parameters of a tool's document."""
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return None, {}
    parameters = function.get("parameters") or function.get("inputSchema") or function.get("input_schema") or {}
    return function.get("name"), parameters if isinstance(parameters, dict) else {}


def _needs_types(format: str) -> bool:
    """Whether a string that looks like a number is read as one, unless its parameter's type is known."""
    return _reads_otherwise(format, {"type": "string"}, "12")


def _needs_structure(format: str) -> bool:
    """Whether that holds inside lists and objects too."""
    return _reads_otherwise(format, {"type": "array", "items": {"type": "string"}}, ["12"])


@functools.lru_cache(maxsize=128)
def _reads_otherwise_json(format: str, schema_text: str, value_text: str) -> bool:
    def request(format: str, schema: dict[str, Any]) -> ToolRequest:
        return ToolRequest(json.dumps([{"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}]), format)

    schema = json.loads(schema_text)
    call = ToolCall("f", {"a": json.loads(value_text)})
    typed, free = (request(format, one).reader() for one in (schema, {}))
    # A set writes in its first format, and reads any of them.
    is_set = not format.startswith("{") and ("," in format or ":" in format)
    writers = [typed] + [request(name, schema).reader() for name in formats() if is_set]
    for text in (writer.write([call]) for writer in writers):
        try:
            if typed.parse(text) == [call] and free.parse(text) != [call]:
                return True
        except Error:  # none of this set's formats
            continue
    return False


def _reads_otherwise(format: str, schema: dict[str, Any], value: Any) -> bool:
    """Whether a format reads a value that it has written as another one where it does not know the schema."""
    return _reads_otherwise_json(format, json.dumps(schema), json.dumps(value))


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array", dict: "object"}


class _Types:
    """The types that the schemas of one document allow. Complexity of all together: O(size of the document)."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._targets: dict[str, set[str] | None] = {}  # of references
        self._shapes_left = 4096

    def of(self, schema: Any, depth: int = 0) -> set[str] | None:
        """The types that a schema's values may have; None for any."""
        if not isinstance(schema, dict) or depth > 16:
            return None
        named = schema.get("type")
        named = [named] if isinstance(named, str) else named
        known = {one for one in named if isinstance(one, str)} if isinstance(named, list) else None
        listed = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else None
        rules = [] if listed is None else [{_TYPES[type(value)] for value in listed}]
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                parts = [self.of(one, depth + 1) for one in schema[key]]
                rules.append(None if None in parts else set().union(*parts))
        if isinstance(schema.get("allOf"), list):
            rules += [self.of(one, depth + 1) for one in schema["allOf"]]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            rules.append(self._of_target(reference, depth))
        for rule in rules:
            if rule is not None:
                known = rule if known is None else (known & rule) or known
        if known is not None and schema.get("nullable") is True:
            known = known | {"null"}
        return known

    def _of_target(self, reference: str, depth: int) -> set[str] | None:
        if reference not in self._targets:
            self._targets[reference] = None  # inside itself it is anything
            self._targets[reference] = self.of(self._target(reference), depth + 1)
        return self._targets[reference]

    def _target(self, reference: str) -> Any:
        target: Any = self._root
        for step in reference[2:].split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        return target

    def _parts(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        """The schema and those that it combines and refers to."""
        parts = [schema]
        for part in parts:  # which grows
            for key in ("anyOf", "oneOf", "allOf"):
                if isinstance(part.get(key), list):
                    parts += part[key]
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/"):
                parts.append(self._target(reference))
            parts[1:] = [one for one in parts[1:64] if isinstance(one, dict)]
        return parts

    def shape(self, schema: Any, depth: int = 0) -> dict[str, Any]:
        """The types of a schema's values and of what they hold, and no more of it."""
        self._shapes_left -= 1
        if not isinstance(schema, dict) or depth > 8 or self._shapes_left < 0:
            return {}
        types = self.of(schema)
        shape: dict[str, Any] = {} if types is None else {"type": sorted(types)}
        members: dict[str, Any] = {}
        for part in self._parts(schema):
            if isinstance(part.get("properties"), dict):
                for key, value in part["properties"].items():
                    members.setdefault(key, value)
            if isinstance(part.get("items"), dict) and "items" not in shape:
                shape["items"] = self.shape(part["items"], depth + 1)
        if members:
            shape["properties"] = {key: self.shape(value, depth + 1) for key, value in members.items()}
        return shape


def _only_strings(types: set[str] | None) -> dict[str, Any]:
    """The schema of strings where only these and null are allowed; else that of anything."""
    return {"type": sorted(types)} if types in ({"string"}, {"string", "null"}) else {}


# Nearly every document has the first, every tool without arguments the second; the others are in `not_enforced`.
_EXPECTED = {"closed_object", "no_arguments", "widened_schema", "any_arguments", "dropped_tool"}


def unexpected_notes(constraint: ToolCallFSM) -> list[Note]:
    """Notes of what may be a fault of the tools' documents: not of closed objects, nor of tools without arguments."""
    return [note for note in constraint.notes if note.reading not in _EXPECTED]


_MOST_WARNINGS = 8  # of one set of tools, and of each kind
_MOST_LOGGED = 4096
_logged: dict[int, None] = {}  # hashes of the sets of tools that were logged, the oldest first


def log_readings(request: ToolRequest, constraint: ToolCallFSM) -> None:
    """Logs what is not enforced of a request's tools, and which places of their documents need a look: once for equal
    tools."""
    key = hash((request.tools, request.format, request.enforcement))
    if request.enforcement == "drop" or key in _logged:  # the former only reads
        return
    _logged[key] = None
    for old in list(_logged)[:-_MOST_LOGGED]:
        _logged.pop(old, None)
    for tool, where, why in constraint.not_enforced[:_MOST_WARNINGS]:
        logger.warning("Tool %r is not enforced at %r: %s", tool, where, why)
    for note in unexpected_notes(constraint)[:_MOST_WARNINGS]:
        # Neutral words: a note may also say that JSON Schema ignores a keyword.
        logger.warning("Tool %r, check %r: %s", note.tool, note.pointer, note.text)


class _Readers:
    """Constraints over single bytes: text needs no tokenizer of a model."""

    def __init__(self) -> None:
        self._known = KnownConstraints(_MOST_KNOWN)

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256])

    def get(self, request: ToolRequest) -> ToolCallFSM:
        known = self._known.get(request)
        if known is None:
            known = self._known.add(request, request.constraint(self.vocabulary))
            log_readings(request, known[0])
        return known[0]


_readers = _Readers()


class AnswerReader:
    """Reads an answer's text in pieces.

    With `is_constrained`, the engine has masked the answer by this request. Otherwise calls to the request's tools are
    read whatever their arguments are, and what breaks the format is text: it comes as it was written, and reading goes
    on behind its first character, or where a call has begun behind that. A call that breaks after its beginning was given
    stays cut; `broken` counts such places. With `is_whole`, for callers that drop such calls, their text comes too.
    """

    def __init__(self, request: ToolRequest, is_constrained: bool, is_whole: bool = False) -> None:
        self._request = request
        self._is_whole = is_whole
        self.calls = 0
        self.broken = 0
        self._again_left = 0  # how many characters may be read again, so that reading takes linear time
        self._begin(request.reader() if is_constrained else self._free)

    @functools.cached_property
    def _free(self) -> ToolCallFSM:
        return self._request.without_schemas().reader()

    def _begin(self, constraint: ToolCallFSM) -> None:
        self._constraint = constraint
        self._stream = CallStream(constraint)
        self._text = bytearray()  # what the stream has read
        self._given = 0  # how much of that was given as text, or is a whole call
        self._arguments_end = 0  # of what was given of the open call
        self._is_behind_call = False  # its closing delimiters come first
        self._open = False
        self._calls_before = self.calls

    def _held(self) -> str:
        """What has been read and not been given: a delimiter, or the text of a call that has not ended."""
        at = self._given
        if self._is_behind_call:  # the delimiters that close it end where the answer may end
            state = self._constraint.advance_bytes(self._constraint.initial(), bytes(self._text[:at]))
            for i in range(at, len(self._text)):
                if state is None:
                    break
                state = self._constraint.advance_bytes(state, bytes(self._text[i : i + 1]))
                if state is not None and self._constraint.is_accepting(state):
                    at = i + 1
        return self._text[at:].decode("utf-8", "replace")

    def push(self, text: str) -> list[StreamEvent]:
        """The events of the next piece; the end of the answer is `finish`. How an answer is cut into pieces changes nothing."""
        events: list[StreamEvent] = []
        for character in text:
            self._again_left += 4
            waiting = collections.deque(character)
            while waiting:
                one = waiting.popleft()
                is_first = not self._text
                found, is_read = self._step(one)
                events += found
                if not is_read and is_first and self._constraint is self._free:
                    self._begin(self._free)
                    # It begins nothing: it is text, so that reading goes on.
                    events.append(StreamEvent("text", 0, one))
                elif not is_read:
                    given, again = self._break()
                    events += given
                    # What breaks one call may begin another.
                    waiting.extendleft(reversed(again + one))
        return _joined(events)

    def _step(self, character: str) -> tuple[list[StreamEvent], bool]:
        """The events of a character, and whether it was read: otherwise it breaks the format."""
        events: list[StreamEvent] = []
        data = character.encode("utf-8", "replace")
        # Byte by byte, so that it is known where a call ends and where one breaks. A push that fails changes nothing.
        for i in range(len(data)):
            try:
                found = self._stream.push(data[i : i + 1])
            except Error as error:
                if error.code != "malformed_call":
                    raise
                del self._text[len(self._text) - i :]
                return events, False
            self._text += data[i : i + 1]
            if found:
                events += self._take(found)
        return events, True

    def finish(self) -> list[StreamEvent]:
        """The rest of the answer. Delimiters behind which no call came are text."""
        events = self._take([event for event in self._stream.finish() if event.kind != "answer_end"])
        if self._is_whole or not self._open:
            events += self._release()
        return _joined(events)

    def _take(self, events: list[StreamEvent]) -> list[StreamEvent]:
        given = []
        for event in events:
            if event.kind in ("text", "reasoning"):
                written = event.text.encode()
                at = self._text.find(written, self._given)
                if at >= 0:
                    self._given = at + len(written)
                    self._is_behind_call = False
                given.append(StreamEvent("text", 0, event.text))
                continue
            index = self._calls_before + event.call
            if event.kind == "call_begin":
                self._open, self.calls = True, index + 1
                self._arguments_end = 0
            elif event.kind == "arguments":
                self._arguments_end = len(self._text)
            elif event.kind == "call_end":
                self._open, self._is_behind_call = False, True
                # Some formats say so in the first byte of a delimiter, which may turn out to be none.
                self._given = max(self._arguments_end, self._text.rfind(b"}", self._arguments_end) + 1)
            given.append(event._replace(call=index))
        return given

    def _release(self) -> list[StreamEvent]:
        held = self._held()
        self._given, self._is_behind_call = len(self._text), False
        return [StreamEvent("text", 0, held)] if held else []

    def _break(self) -> tuple[list[StreamEvent], str]:
        """What is text then, and what is read again."""
        self.broken += 1
        if self._open and not self._is_whole:
            logger.warning("Call %d of an answer breaks its format; what follows is text", self.calls - 1)
            # What encloses the arguments is the call's; what was read of a value since is text.
            rest = self._text[self._arguments_end :] if self._arguments_end else b""
            held, again = rest.decode("utf-8", "replace"), ""
        else:
            held = self._held()
            # The delimiter of a call may begin inside what looked like one.
            again = "" if self._open or len(held) > self._again_left else held[1:]
            self._again_left -= len(again)
        self._begin(self._free)
        text = held[: len(held) - len(again)]
        return [StreamEvent("text", 0, text)] if text else [], again


def _joined(events: list[StreamEvent]) -> list[StreamEvent]:
    joined: list[StreamEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if last is not None and event.kind in ("text", "arguments") and (last.kind, last.call) == (event.kind, event.call):
            joined[-1] = last._replace(text=last.text + event.text)
        else:
            joined.append(event)
    return joined


def calls_in(parser: Any, events: Sequence[StreamEvent]) -> tuple[str, list[tuple[int, str | None, str]]]:
    """The text of a stream's events, and of each call its index, its name where it begins, and its new arguments. What the
    parsers of both engines keep of their calls is brought up to date."""
    text = ""
    calls: list[tuple[int, str | None, str]] = []
    for event in events:
        if event.kind == "text":
            text += event.text
        elif event.kind == "call_begin":
            parser.current_tool_id, parser.current_tool_name_sent = event.call, True
            parser.prev_tool_call_arr.append({"name": event.text, "arguments": ""})
            parser.streamed_args_for_tool.append("")
            calls.append((event.call, event.text, ""))
        elif event.kind == "arguments":
            parser.streamed_args_for_tool[event.call] += event.text
            parser.prev_tool_call_arr[event.call]["arguments"] = parser.streamed_args_for_tool[event.call]
            index, name, before = calls.pop() if calls and calls[-1][0] == event.call else (event.call, None, "")
            calls.append((index, name, before + event.text))
    return text, calls


@dataclass
class ReadCall:
    """A whole call. arguments: JSON text."""

    name: str
    arguments: str


def read_tool_answer(request: ToolRequest, is_constrained: bool, text: str) -> tuple[str, list[ReadCall]]:
    """The text and the whole calls of an answer. A call that is cut or broken is text, as it was written."""
    reader = AnswerReader(request, is_constrained, is_whole=True)
    content = ""
    begun: list[ReadCall] = []
    ends = set()
    for event in reader.push(text) + reader.finish():
        if event.kind == "text":
            content += event.text
        elif event.kind == "call_begin":
            begun.append(ReadCall(event.text, ""))
        elif event.kind == "arguments":
            begun[event.call].arguments += event.text
        elif event.kind == "call_end":
            ends.add(event.call)
    calls = [call for i, call in enumerate(begun) if i in ends]
    if reader.broken and not is_constrained:
        parsed = _parsed(request, text)
        if len(parsed[1]) > len(calls):
            return parsed
    # As it was written, delimiters of reasoning too.
    return (content, calls) if calls or not begun else (text, [])


def _parsed(request: ToolRequest, text: str) -> tuple[str, list[ReadCall]]:
    """The text and the calls of an answer by the format's own parser, which takes a text for a string where no JSON stands."""
    data = text.encode("utf-8", "replace")
    places = [place for place in (data.find(opening.encode()) for opening in openings(request.format)) if place >= 0]
    parser, size = request.without_schemas().reader(), len(data)
    try:
        calls = parser.parse(data.decode())
    except Error as error:
        # Text may follow the last call.
        place = re.fullmatch(r"byte (\d+)", error.where)
        if error.code != "malformed_call" or place is None:
            return text, []
        size = int(place[1])
        try:
            calls = parser.parse(data[:size].decode())
        except (Error, UnicodeDecodeError):
            return text, []
    names = [_of_document(tool)[0] for tool in json.loads(request.tools)]
    if not places or not all(call.name in names for call in calls):
        return text, []
    content = (data[: min(places)] + data[size:]).decode("utf-8", "replace")
    return content, [ReadCall(call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in calls]


def find_format(text: str) -> str:
    """The format that an option names: names as in `tool_calls`, a description's text, or the path of a .json file with
    one. Error unknown_format or file_unreadable for anything else."""
    if text.endswith(".json"):
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise Error("file_unreadable", text, f"{text}: {error.strerror}") from None
    ToolRequest("[]", text).reader()
    return text


_ASKED = [{"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


# Mistral's templates take an id of nine letters and digits. Kimi K2's writes the id in place of the name, so it is that of K2's
# own calls.
_IDS = ("call00001", "functions.get_weather:0")
# What some templates write beside the call; a model need not.
_WRITTEN_IDS = (f',"id":"{_IDS[0]}"', f"[CALL_ID]{_IDS[0]}")


def format_of(render: Callable[[Sequence[dict[str, Any]], list[dict[str, Any]]], str], source: str = "") -> str | None:
    """The formats of a model: the one in which its chat template writes calls, and what such models fall back to.

    render: the template, over messages and tools, without a prompt for an answer. source: its text. The format is the one whose
    text, as a message, makes the same prompt as the call itself, up to white space and the call's id. None if there is none.
    """
    arguments = {"city": "Oslo"}

    def rendered(answer: dict[str, Any]) -> str | None:
        try:
            text = render([{"role": "user", "content": "How is it?"}, {"role": "assistant", **answer}], _ASKED)
        except Exception:  # the template does not know such a message; what it raises is its own
            return None
        return "".join(text.split())

    # Some templates expect arguments as an object, others as text.
    for given, own_id in itertools.product((arguments, json.dumps(arguments)), _IDS):
        call = {"id": own_id, "type": "function", "function": {"name": "get_weather", "arguments": given}}
        own = rendered({"content": "", "tool_calls": [call]})
        if own is None or own == rendered({"content": ""}):
            continue
        for written_id in _WRITTEN_IDS:
            own = own.replace(written_id, "")
        # The tokens of Hunyuan's checkpoints have a suffix.
        suffixed = [family + suffix for suffix in dict.fromkeys(re.findall(r"<tool_calls(:[^\s<>,]+)>", own))
                    for family in ("hunyuan-3", "hunyuan-4")]
        for name in (*formats(), *suffixed):
            written = ToolRequest(json.dumps(_ASKED), name).reader().write([("get_weather", arguments)])
            if own == rendered({"content": written}):
                # This family writes the same calls in other ways too.
                return "auto:qwen-2.5" if name == "hermes" and "You are Qwen, created by Alibaba" in source else f"auto:{name}"
    return None


# Of the templates of tokenizers, with the template's text, which may be replaced.
_formats: weakref.WeakKeyDictionary[Any, tuple[str, str]] = weakref.WeakKeyDictionary()


_HINT = "--tool-call-parser tooldecode-NAME or TOOLDECODE_FORMAT names one"


def format_for(tokenizer: Any, named: str = "", hint: str = _HINT) -> str:
    """The format of a tool parser: the one that is named, else that of TOOLDECODE_FORMAT, else that of the tokenizer's chat
    template. Error unknown_format, with the hint, if there is none of them."""
    option = named or os.environ.get("TOOLDECODE_FORMAT", "")
    if option:
        return find_format(option)
    source = getattr(tokenizer, "chat_template", None)
    source = source if isinstance(source, str) else json.dumps(source) if source else ""
    known = _formats.get(tokenizer, ("", "")) if tokenizer is not None else ("", "")
    if known[1] and known[0] == source:
        return known[1]

    def render(messages: Sequence[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        return tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=False)

    found = format_of(render, source) if tokenizer is not None else None
    if found is None:
        raise Error("unknown_format", "chat_template", f"the chat template writes calls in no known format; {hint}")
    _formats[tokenizer] = source, found
    logger.info("Tool calls are read in the format %s of the chat template", found)
    return found


def documents_of(tools: Sequence[Any], *, may_be_lax: bool = True) -> list[dict[str, Any]]:
    """The documents of an engine's tools. may_be_lax: whether `strict` is false only where the client says so."""
    documents = []
    for tool in tools:
        function = getattr(tool, "function", tool)
        fields = {name: getattr(function, name, None) for name in ("name", "description", "parameters", "strict")}
        if not may_be_lax and not fields["strict"]:
            del fields["strict"]
        documents.append({"type": "function", "function": {name: value for name, value in fields.items() if value is not None}})
    return documents
