"""What a tool cache keeps: outputs of guessed calls, by response and call.

The rules are those of `tooldecode serve`: ids, keys, limits in bytes and time.
"""
from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ._api_fields import ApiError, CachedOutput
from ._core import call_key
from ._types import Error

__all__ = ["Response", "ToolCacheOptions", "ToolOutputs", "call_key", "is_response_id", "is_server_id"]


def is_response_id(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._-]{1,128}", text) is not None


def is_server_id(text: str) -> bool:
    """Whether an id begins as those that servers choose."""
    return text.startswith(("chatcmpl-", "resp_", "cmpl-"))


def _key_of(output: CachedOutput, tools: dict[str, Any] | None = None) -> str:
    """ApiError invalid_json for arguments that have no key: nested too deep, or not in JSON."""
    try:
        arguments = None if output.arguments is None else json.loads(output.arguments)
        return call_key(output.name, arguments, (tools or {}).get(output.name))
    except (RecursionError, ValueError, Error) as error:
        place = f"{output.place}/params"
        what = str(error) if isinstance(error, Error) else "is nested too deep"
        raise ApiError(400, "invalid_json", place, f"{place}: {what}") from None



def _keys_of(name: str, arguments: dict[str, Any], schema: Any) -> tuple[str | None, str | None]:
    """The keys of outputs that answer a call: that of its arguments, and that of any; None where it has none."""
    keys: list[str | None] = [None, None]
    for i, one in enumerate((arguments, None)):
        with contextlib.suppress(Error):
            keys[i] = call_key(name, one, schema)
    return keys[0], keys[1]


# -------------------------------------------------------------------------------------------------------------- what is kept


@dataclass
class ToolCacheOptions:
    """How much is kept and for how long; defaults of `tooldecode serve`."""

    keep_alive: float = 300  # seconds, of entries that do not say
    cache_bytes: int = 64 << 20
    early_outputs: int = 1024  # for ids that no request has used yet
    early_bytes: int = 8 << 20
    early_seconds: float = 60
    max_body: int = 1 << 20  # bytes
    max_rounds: int = 8  # answers of the model to one request, the last one included

    @classmethod
    def of_environment(cls) -> ToolCacheOptions:
        """From TOOLDECODE_TOOL_CACHE; ValueError that names it."""
        try:
            return cls.of_text(os.environ.get("TOOLDECODE_TOOL_CACHE", ""))
        except ValueError as error:
            raise ValueError(f"TOOLDECODE_TOOL_CACHE: {error}") from None

    @classmethod
    def of_text(cls, text: str) -> ToolCacheOptions:
        """From a JSON object; ValueError that names an unknown or wrong member."""
        value = json.loads(text or "{}")
        if not isinstance(value, dict):
            raise ValueError("must be a JSON object")
        for name, number in value.items():
            if name not in cls.__dataclass_fields__:
                raise ValueError(f"{name}: unknown; the options are {', '.join(cls.__dataclass_fields__)}")
            least = 1 if name == "max_rounds" else 0
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= least:
                raise ValueError(f"{name}: must be a number of at least {least}")
        return cls(**value)


class _Entry(NamedTuple):
    output: CachedOutput
    begin: float
    bytes: int
    end: tuple[float, int]  # when, and the entry's serial number


class _Store:
    """Entries by response and call key, at most so many and so large; the one that was not used for longest goes first."""

    entry_bytes = 1024  # about the size of an entry without its texts

    def __init__(self, max_bytes: float, max_entries: float, now: Callable[[], float]) -> None:
        self._max_bytes, self._max_entries, self._now = max_bytes, max_entries, now
        self._entries: dict[tuple, _Entry] = {}  # the newest last
        self._responses: dict[Any, dict[Any, None]] = {}
        self._ends: list[tuple[float, int]] = []  # a heap, with ends of entries that are gone
        self._places: dict[int, tuple] = {}  # of entries, by serial number
        self._serial = 0
        self.bytes = 0

    def __len__(self) -> int:
        self._expire()
        return len(self._entries)

    def keep(self, response: tuple[str, str], key: str, output: CachedOutput, seconds: float) -> bool:
        """Whether it was kept: not if it does not fit or would expire at once. An older entry of the key is removed."""
        self._expire()
        place = response, key
        self._remove(place)
        size = self.entry_bytes + sum(map(sys.getsizeof, (*response, key, output.name, output.arguments, output.output)))
        if size > self._max_bytes or self._max_entries < 1 or seconds <= 0:
            return False
        self._serial += 1
        now = self._now()
        entry = _Entry(output, now, size, (now + seconds, self._serial))
        self._entries[place] = entry
        self._places[self._serial] = place
        self._responses.setdefault(response, {})[key] = None
        heapq.heappush(self._ends, entry.end)
        self.bytes += size
        while self.bytes > self._max_bytes or len(self._entries) > self._max_entries:
            self._remove(next(iter(self._entries)))
        if len(self._ends) > 2 * len(self._entries) + 64:
            self._ends = [one.end for one in self._entries.values()]
            heapq.heapify(self._ends)
        return True

    def find(self, response: tuple[str, str], key: str) -> CachedOutput | None:
        self._expire()
        entry = self._entries.pop((response, key), None)
        if entry is None:
            return None
        self._entries[response, key] = entry  # used last
        return entry.output

    def latest(self, response: tuple[str, str]) -> Iterator[tuple[str, CachedOutput]]:
        """Keys and outputs, the last that came first."""
        self._expire()
        return ((key, self._entries[response, key].output) for key in reversed(self._responses.get(response, {})))

    def take(self, response: tuple[str, str]) -> list[_Entry]:
        """Removes the entries of a response, and gives them in the order of their arrival."""
        self._expire()
        keys = list(self._responses.get(response, ()))
        taken = [self._entries[response, key] for key in keys]
        for key in keys:
            self._remove((response, key))
        return taken

    def _expire(self) -> None:
        now = self._now()
        while self._ends and self._ends[0][0] <= now:
            self._remove(self._places.get(heapq.heappop(self._ends)[1]))

    def _remove(self, place: tuple | None) -> None:
        entry = self._entries.pop(place, None)
        if entry is None:
            return
        self.bytes -= entry.bytes
        del self._places[entry.end[1]]
        keys = self._responses[place[0]]
        del keys[place[1]]
        if not keys:
            del self._responses[place[0]]


@dataclass
class Response:
    """A response that a request has named. key: its owner and id. tools: schemas of arguments by the tool's name.

    made: keys of the calls that its answer has made. arrived: called when an output was kept."""

    key: tuple[str, str]
    tools: dict[str, Any]
    bytes: int = 0
    is_active: bool = True
    made: set[str] = field(default_factory=set)
    arrived: Callable[[], None] = lambda: None


class ToolOutputs:
    """The outputs that clients have sent, by response. An owner sees its own responses only. One thread at a time."""

    max_responses = 1024  # that have ended and are still known
    max_bytes = 16 << 20  # of their tools

    def __init__(self, options: ToolCacheOptions, now: Callable[[], float] = time.monotonic) -> None:
        self._options, self._now = options, now
        self._cache = _Store(options.cache_bytes, math.inf, now)
        self._early = _Store(options.early_bytes, options.early_outputs, now)
        self._responses: dict[tuple[str, str], Response] = {}  # those that ended, in the order in which they ended
        self._bytes = 0

    def add(self, owner: str, response_id: str, outputs: Sequence[CachedOutput]) -> int:
        """How many outputs were taken, those that later ones replaced included; none where one is wrong. ApiError 404 for a
        server's id that was not given out, 400 for an unknown tool and for arguments that are nested too deep."""
        response = self._responses.get((owner, response_id))
        if response is None:
            if is_server_id(response_id):
                raise ApiError(404, "unknown_response", "response_id", "there is no such response: outputs that come before "
                               "their request are kept for ids that a client has chosen")
            keys = [_key_of(output) for output in outputs]
            return sum(self._early.keep((owner, response_id), key, output, min(self._life(output), self._options.early_seconds))
                       for key, output in zip(keys, outputs))
        for output in outputs:
            if output.name not in response.tools:
                place = f"{output.place}/name"
                raise ApiError(400, "unknown_tool", place, f"{place}: the response has no tool of the name {output.name}")
        keys = [_key_of(output, response.tools) for output in outputs]
        kept = sum(self._cache.keep(response.key, key, output, self._life(output)) for key, output in zip(keys, outputs))
        if kept:
            response.arrived()
        return kept

    def open(self, owner: str, response_id: str, tools: dict[str, Any]) -> Response:
        """Begins a response; outputs that came before it are its. ApiError 409 if one of this id has not ended."""
        key = owner, response_id
        known = self._responses.get(key)
        if known is not None and known.is_active:
            raise ApiError(409, "response_id_in_use", "response_id", "a response of this id is under way")
        if known is not None:
            self._forget(known)
        response = self._responses[key] = Response(key, tools, len(json.dumps(tools)))
        self._bytes += response.bytes
        now = self._now()
        for entry in self._early.take(key):
            if entry.output.name in tools:
                with contextlib.suppress(ApiError):  # nested too deep for the stack that is left here
                    key = _key_of(entry.output, tools)
                    self._cache.keep(response.key, key, entry.output, entry.begin + self._life(entry.output) - now)
        return response

    def close(self, response: Response) -> None:
        """Ends a response. Its outputs stay, for a request of the same id."""
        response.is_active, response.arrived = False, lambda: None
        self._responses[response.key] = self._responses.pop(response.key)
        ended = [one for one in self._responses.values() if not one.is_active]
        for oldest in ended:
            if len(ended) <= self.max_responses and self._bytes <= self.max_bytes:
                break
            self._forget(oldest)
            ended = ended[1:]

    def find(self, response: Response, calls: Sequence[tuple[str, dict[str, Any]]],
             found: Sequence[str | None] = ()) -> list[str | None]:
        """The output of each call, if it is there: that of its arguments, else that of any. If all are, the calls are made.
        found: what was found before, which stays."""
        keys = [_keys_of(name, arguments, response.tools.get(name)) for name, arguments in calls]
        outputs = list(found) or [None] * len(keys)
        for i, of_call in enumerate(keys):
            if outputs[i] is None:
                kept = (self._cache.find(response.key, key) for key in of_call if key is not None)
                one = next(filter(None, kept), None)
                outputs[i] = None if one is None else one.output
        if None not in outputs:
            response.made.update(own for own, _ in keys if own is not None)
        return outputs

    def expected(self, response: Response, most: int) -> list[tuple[str, dict[str, Any]]]:
        """The calls whose outputs are there, the latest first, without those that were made; at most so many."""
        calls = (one for key, one in self._cache.latest(response.key) if one.arguments is not None and key not in response.made)
        return [(one.name, json.loads(one.arguments)) for one in itertools.islice(calls, most)]

    def _life(self, output: CachedOutput) -> float:
        return self._options.keep_alive if output.keep_alive is None else output.keep_alive

    def _forget(self, response: Response) -> None:
        self._bytes -= response.bytes
        del self._responses[response.key]
