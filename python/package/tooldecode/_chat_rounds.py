"""Chat completions that are answered in several rounds: what is asked in each, and how their answers become one."""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["SseReader", "StreamRound", "add_usage", "call_entry", "cached_entries", "expand_cached", "following", "join_choices",
           "sse_event", "tools_of"]

_TEXTS = ("content", "reasoning", "reasoning_content")  # of a message


def tools_of(request: dict[str, Any]) -> dict[str, Any]:
    """The schema of each tool's arguments, by name. Malformed documents are left to the server that gets the request."""
    messages = request.get("messages")
    places = [request, *filter(lambda one: isinstance(one, dict), messages if isinstance(messages, list) else ())]
    lists = [place["tools"] for place in places if isinstance(place.get("tools"), list)]  # SGLang takes them in messages too
    functions = [tool.get("function") for tools in lists for tool in tools if isinstance(tool, dict)]
    return {one["name"]: one.get("parameters") for one in functions if isinstance(one, dict) and isinstance(one.get("name"), str)}


def call_entry(call: dict[str, Any]) -> dict[str, Any]:
    """A call as messages have it."""
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return {"id": call.get("id"), "type": "function",
            "function": {"name": function.get("name"), "arguments": function.get("arguments")}}


def _said(message: dict[str, Any]) -> dict[str, str]:
    return {name: message[name] for name in _TEXTS if isinstance(message.get(name), str) and message[name]}


def cached_entries(calls: list[dict[str, Any]], outputs: list[str], turn: int, message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a turn as the client gets them, with their outputs. The first has the text of the turn's message, so that it
    stands before them when the client sends it back."""
    entries = [{**call_entry(call), "output": output, "turn": turn} for call, output in zip(calls, outputs)]
    if entries:
        entries[0].update(_said(message))
    return entries


def following(message: dict[str, Any], calls: list[dict[str, Any]], outputs: list[str]) -> list[dict[str, Any]]:
    """The messages of a turn whose calls have outputs: the answer as the model wrote it, reasoning included, and the outputs."""
    answer = {"role": "assistant", "content": None, **_said(message), "tool_calls": [call_entry(call) for call in calls]}
    return [answer] + [{"role": "tool", "tool_call_id": call.get("id"), "content": output} for call, output in zip(calls, outputs)]


def _cut(message: dict[str, Any], name: str, before: str) -> None:
    """Takes the text of earlier turns off the beginning of a message's text, which is that of all turns."""
    text = message.get(name)
    if not before or not isinstance(text, str) or not text.startswith(before):
        return
    message[name] = text[len(before) :]
    if not message[name] and message.get("tool_calls"):
        message[name] = None


def expand_cached(messages: Any) -> Any:
    """Messages that a client sends back: each with `cached_tool_calls` becomes the turns that it describes."""
    if not isinstance(messages, list):
        return messages
    expanded = []
    for message in messages:
        cached = message.get("cached_tool_calls") if isinstance(message, dict) else None
        if not isinstance(cached, list) or not all(
                isinstance(entry, dict) and isinstance(entry.get("function"), dict) for entry in cached):
            expanded.append(message)
            continue
        turns: dict[Any, list[dict[str, Any]]] = {}
        for entry in cached:
            turns.setdefault(json.dumps(entry.get("turn")), []).append(entry)
        last = {key: value for key, value in message.items() if key != "cached_tool_calls"}
        for calls in turns.values():
            expanded += following(calls[0], calls, [entry.get("output") for entry in calls])
        for name in _TEXTS:
            _cut(last, name, "".join(_said(calls[0]).get(name, "") for calls in turns.values()))
        expanded.append(last)
    return expanded


def add_usage(total: dict[str, Any], usage: Any) -> dict[str, Any]:
    """The sum of two usages, member by member."""
    summed = dict(total)
    for name, value in (usage or {}).items():
        if isinstance(value, dict):
            summed[name] = add_usage(summed.get(name) or {}, value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            summed[name] = (summed.get(name) or 0) + value
        else:
            summed.setdefault(name, value)
    return summed


def join_choices(rounds: list[dict[str, Any]], cached: list[dict[str, Any]]) -> dict[str, Any]:
    """The choice of an answer that took these rounds: all text, the last round's calls, and what was answered from the cache."""
    choice = dict(rounds[-1])
    message = choice["message"] = dict(choice["message"])
    for name in _TEXTS:
        texts = [one["message"][name] for one in rounds if one["message"].get(name)]
        if texts:
            message[name] = "".join(texts)
    if cached:
        message["cached_tool_calls"] = cached
    logprobs = [one["logprobs"] for one in rounds if one.get("logprobs")]
    if len(logprobs) > 1:
        choice["logprobs"] = {**logprobs[-1], "content": [token for one in logprobs for token in one.get("content") or ()]}
    return choice


# ------------------------------------------------------------------------------------------------------------- streams


def sse_event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


class SseReader:
    """Cuts the bytes of a stream into events, each without its empty line."""

    def __init__(self) -> None:
        self._held = b""

    def push(self, data: bytes) -> Iterator[bytes]:
        self._held = (self._held + data).replace(b"\r\n", b"\n")
        while b"\n\n" in self._held:
            event, self._held = self._held.split(b"\n\n", 1)
            yield event


class StreamRound:
    """One round of a stream. Text goes to the client at once; calls, the end and what comes behind it are held until it is known
    whether another round follows."""

    def __init__(self, response_id: str, turn: int, usage: dict[str, Any]) -> None:
        self._id, self.turn, self._before = response_id, turn, usage
        self.message: dict[str, Any] = {}
        self.calls: list[dict[str, Any]] = []
        self.last: dict[str, Any] | None = None  # the chunk with the reason for the end
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self._usage_chunk: dict[str, Any] | None = None
        self._behind = b""  # what comes behind the last chunk, without the usage

    def push(self, event: bytes) -> bytes:
        """What the client gets of an event."""
        data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        if data == b"[DONE]":
            return b""
        try:
            chunk = json.loads(data) if data else None
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict) or not isinstance(chunk.get("choices"), list):
            return event + b"\n\n"
        chunk["id"] = self._id
        if not chunk["choices"] and chunk.get("usage"):
            self.usage, self._usage_chunk = chunk["usage"], chunk
            return b""
        if not chunk["choices"] or self.last is not None:
            named = b"".join(line + b"\n" for line in event.split(b"\n") if not line.startswith(b"data:"))
            self._behind += named + sse_event(chunk)
            return b""
        if chunk.get("usage"):
            self.usage = chunk["usage"]
            chunk["usage"] = add_usage(self._before, chunk["usage"])
        choice = chunk["choices"][0]
        delta = choice.setdefault("delta", {})
        for call in delta.pop("tool_calls", None) or ():
            self._add_call(call)
        for name in _TEXTS:
            if delta.get(name):
                self.message[name] = self.message.get(name, "") + delta[name]
        if self.turn > 0:
            delta.pop("role", None)
        if choice.get("finish_reason") is not None:
            self.last, self.finish = chunk, choice["finish_reason"]
            return b""
        tells = any(value not in (None, "") for value in delta.values()) or choice.get("logprobs") or choice.get("token_ids")
        return sse_event(chunk) if tells else b""

    def _add_call(self, delta: dict[str, Any]) -> None:
        index = delta.get("index", len(self.calls))
        while len(self.calls) <= index:
            self.calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = self.calls[index], delta.get("function") or {}
        call["id"] = delta.get("id") or call["id"]
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += function.get("arguments") or ""

    def chunk(self, delta: dict[str, Any]) -> bytes:
        """A chunk of this round with another delta, before its end."""
        assert self.last is not None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        members = ("id", "object", "created", "model", "system_fingerprint")
        return sse_event({**{name: self.last[name] for name in members if name in self.last}, "choices": [choice]})

    def rest(self) -> bytes:
        """The text in the last chunk, where another round follows."""
        choice = self.last["choices"][0]
        delta = {name: choice["delta"][name] for name in _TEXTS if choice["delta"].get(name)}
        if not delta and not choice.get("logprobs"):
            return b""
        return sse_event({**self.last, "choices": [{**choice, "delta": delta, "finish_reason": None}]})

    def end(self, with_usage: bool) -> bytes:
        """What ends the stream: the calls, each whole, the last chunk, what comes behind it, and the usage of all rounds."""
        events = b""
        if self.last is not None:
            for index, call in enumerate(self.calls):
                events += self.chunk({"tool_calls": [{"index": index, **call}]})
            events += sse_event(self.last)
        events += self._behind
        if with_usage and self._usage_chunk is not None:
            events += sse_event({**self._usage_chunk, "usage": add_usage(self._before, self.usage)})
        return events + b"data: [DONE]\n\n"
