"""A chat completion that goes on inside the server as long as the outputs of its calls are in the tool cache."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import secrets
from typing import TYPE_CHECKING, Any

from ._asgi import ClientGone, Receive, Send, changed, header_of, other_headers, send_json
from ._chat_rounds import SseReader, StreamRound, add_usage, cached_entries, call_entry, following, join_choices
from ._tool_outputs import Response

if TYPE_CHECKING:
    from ._tool_cache import ToolCache

__all__ = ["CachedAnswer"]

logger = logging.getLogger("tooldecode.tool_cache")

_MOST_CALLS = 16  # of a request that are drafted, the latest


class CachedAnswer:
    """The rounds of one request."""

    def __init__(self, cache: ToolCache, scope: dict[str, Any], receive: Receive, send: Send, request: dict[str, Any],
                 response: Response, wait: float) -> None:
        self._cache, self._scope, self._receive, self._give = cache, scope, receive, send
        self._request, self._response, self._wait = request, response, wait
        # The X-Request-Id of the rounds. The client's own may be another request's too, and drafts are told by it.
        self._name = secrets.token_hex(16)
        self._gone, self._arrived = asyncio.Event(), asyncio.Event()
        self._announced = self._ended = False
        self._telling = asyncio.Lock()
        response.arrived = self._arrived.set

    async def run(self) -> None:
        watch = asyncio.ensure_future(self._watch())
        try:
            await self.announce()
            await (self._stream() if self._request.get("stream") is True else self._whole())
        except ClientGone:
            pass
        except Exception:
            if not self._gone.is_set():  # otherwise it is the application's reaction to the disconnect
                raise
        finally:
            watch.cancel()
            self._end()
            await self.announce()

    def _end(self) -> None:
        """Frees the id."""
        if not self._ended:
            self._ended = True
            self._cache.end(self, self._response)

    async def _send(self, message: dict[str, Any]) -> None:
        """Sends to the client. The id is free before the client can have read the last part."""
        if message["type"] == "http.response.start":
            asked = header_of(self._scope, b"x-request-id").encode("latin-1")
            headers = [(key, asked if asked and key.lower() == b"x-request-id" else value)
                       for key, value in message.get("headers", ())]
            message = {**message, "headers": headers}
        elif not message.get("more_body"):
            self._end()
        await self._give(message)

    async def announce(self) -> None:
        """Tells the proposer the calls that are expected now; none when the answer has ended."""
        drafts = self._cache.drafts
        if drafts is None or not drafts.is_on:
            return
        async with self._telling:
            calls = [] if self._ended else self._cache.outputs.expected(self._response, _MOST_CALLS)
            if calls or self._announced:
                self._announced = bool(calls)
                await drafts.tell(self._name, self._request, calls)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()

    def _asked(self, task: asyncio.Future) -> None:
        self._cache.asked.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:  # _ask raises it too, before the answer's end
            logger.debug("The application failed", exc_info=error)

    async def _ask(self, send: Send) -> None:
        """Asks the application until its answer is whole. What it does then, for SGLang two seconds after each stream, is not
        waited for. A client that is gone is gone for it too."""
        whole: asyncio.Future = asyncio.get_running_loop().create_future()

        async def gone() -> dict[str, Any]:
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def checked(message: dict[str, Any]) -> None:
            if self._gone.is_set():
                raise ClientGone("the client is gone")
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body") and not whole.done():
                whole.set_result(None)

        scope, receive = changed(self._scope, json.dumps(self._request).encode(), gone, self._name)
        asked = asyncio.ensure_future(self._cache.app(scope, receive, checked))
        self._cache.asked.add(asked)
        asked.add_done_callback(self._asked)
        try:
            await asyncio.wait([asked, whole], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not whole.done():
                asked.cancel()
        if not whole.done():
            await asked
        if self._gone.is_set():
            raise ClientGone("the client is gone")

    async def _outputs_of(self, calls: list[dict[str, Any]], finish: str | None, turn: int,
                          part: StreamRound | None = None) -> list[str] | None:
        """The outputs of the calls that end an answer, which may have to arrive; None where the answer is the last one.
        part: the round of a stream, which says before it waits which calls are pending."""
        if not calls or finish not in self._cache.whole_calls or turn + 1 >= self._cache.options.max_rounds:
            return None
        asked = [_asked(call) for call in calls]
        if any(one is None or one[0] not in self._response.tools for one in asked):
            return None
        found: list[str | None] = []
        deadline = asyncio.get_running_loop().time() + self._wait
        while True:
            self._arrived.clear()
            found = self._cache.outputs.find(self._response, asked, found)
            if None not in found:
                return found
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return None
            if part is not None:
                await self._write(part.chunk({"pending_tool_calls": [call_entry(call) for call in calls]}))
                part = None
            await self._wait_for_output(left)

    async def _wait_for_output(self, seconds: float) -> None:
        tasks = [asyncio.ensure_future(event.wait()) for event in (self._arrived, self._gone)]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._gone.is_set():
            raise ClientGone("the client is gone")

    async def _follow(self, message: dict[str, Any], calls: list[dict[str, Any]], outputs: list[str]) -> None:
        """Makes the request that of the next round."""
        kept = {name: value for name, value in self._request.items() if name not in self._cache.first_round}
        self._request = {**kept, "messages": [*kept["messages"], *following(message, calls, outputs)]}
        await self.announce()

    # -------------------------------------------------------------------------------------------------------- whole

    async def _whole(self) -> None:
        rounds: list[dict[str, Any]] = []
        headers: tuple = ()
        cached: list[dict[str, Any]] = []
        answer: dict[str, Any] = {}
        usage: dict[str, Any] = {}
        calls: list[dict[str, Any]] = []
        outputs: list[str] | None = []
        for turn in itertools.count():
            start, body = await self._ask_whole()
            value = _completion(start, body)
            if value is None and turn == 0:
                await self._send(start)
                return await self._send({"type": "http.response.body", "body": body})
            if value is None:  # refused: the rounds before stand, and their last calls are the client's
                break
            if rounds:
                cached += cached_entries(calls, outputs, turn - 1, rounds[-1]["message"])
            choice = value["choices"][0]
            rounds.append(choice)
            headers = other_headers(start)
            answer = {**value, "created": answer.get("created", value.get("created"))}
            usage = add_usage(usage, value.get("usage"))
            calls = choice["message"].get("tool_calls") or []
            outputs = await self._outputs_of(calls, choice.get("finish_reason"), turn)
            if outputs is None:
                break
            await self._follow(choice["message"], calls, outputs)
        answer.update(id=self._response.key[1], choices=[join_choices(rounds, cached)], usage=usage)
        await send_json(self._send, 200, answer, headers)

    async def _ask_whole(self) -> tuple[dict[str, Any], bytes]:
        """The beginning of the application's answer, and its body."""
        start: dict[str, Any] = {}
        parts: list[bytes] = []

        async def keep(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._ask(keep)
        return start, b"".join(parts)

    # ------------------------------------------------------------------------------------------------------- stream

    async def _stream(self) -> None:
        options = self._request.get("stream_options")
        with_usage = False
        if options is None or isinstance(options, dict):
            with_usage, in_chunks = self._cache.usages(self._scope.get("app"), options or {})
            options = {**(options or {}), "include_usage": True}
            if not in_chunks:
                options.pop("continuous_usage_stats", None)  # without effect in the client's own request
            self._request = {**self._request, "stream_options": options}
        usage: dict[str, Any] = {}
        before: StreamRound | None = None
        first = b""
        for turn in itertools.count():
            part = StreamRound(self._response.key[1], turn, usage)
            if not await self._ask_stream(part, first):
                if before is not None:  # refused: the last calls are the client's
                    await self._write(before.end(with_usage), more=False)
                return
            usage = add_usage(usage, part.usage)
            outputs = await self._outputs_of(part.calls, part.finish, turn, part)
            if outputs is None:
                return await self._write(part.end(with_usage), more=False)
            first = part.rest() + part.chunk({"cached_tool_calls": cached_entries(part.calls, outputs, turn, part.message)})
            await self._follow(part.message, part.calls, outputs)
            before = part

    async def _ask_stream(self, part: StreamRound, first: bytes) -> bool:
        """Asks for one round and streams it; False if the application refused it. first: what goes before it."""
        reader = SseReader()
        is_stream = False

        async def take(message: dict[str, Any]) -> None:
            nonlocal is_stream
            if message["type"] == "http.response.start":
                is_stream = message["status"] == 200 and header_of(message, b"content-type").startswith("text/event-stream")
                if is_stream and part.turn > 0:
                    await self._write(first)
                elif part.turn == 0:
                    await self._send(message)
            elif is_stream:
                await self._write(b"".join(part.push(event) for event in reader.push(message.get("body", b""))))
            elif part.turn == 0:
                await self._send(message)

        await self._ask(take)
        return is_stream

    async def _write(self, events: bytes, more: bool = True) -> None:
        if events or not more:
            await self._send({"type": "http.response.body", "body": events, "more_body": more})


def _asked(call: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The tool and the arguments of a call; None if they are no object."""
    function = call.get("function") or {}
    with contextlib.suppress(ValueError, RecursionError):
        arguments = json.loads(function.get("arguments") or "{}")
        if isinstance(arguments, dict):
            return function.get("name"), arguments
    return None


def _completion(start: dict[str, Any], body: bytes) -> dict[str, Any] | None:
    """The answer of a round; None if the application refused it."""
    if start.get("status") != 200:
        return None
    with contextlib.suppress(ValueError):
        value = json.loads(body)
        if isinstance(value, dict) and isinstance(value.get("choices"), list) and len(value["choices"]) == 1:
            return value
    return None
