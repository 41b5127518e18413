"""A tool cache in front of an engine's server: ASGI middleware, whatever engine answers. `vllm_tool_cache` and
`sglang_tool_cache` say what differs.

`POST /cache-tool-output/{response_id}` takes outputs of calls that the model is expected to make, as `tooldecode serve` does.
A chat completion with this `response_id` that ends in calls whose outputs are all there goes on inside the server: the calls
and their outputs are added to its messages, and the application is asked again.
"""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
from typing import Any, Protocol

from ._api_fields import ApiError, Fields, parse_outputs
from ._asgi import ClientGone, Receive, Send, changed, header_of, other_headers, read_body, replay, send_error, send_json
from ._cached_answer import CachedAnswer
from ._chat_rounds import expand_cached, tools_of
from ._tool_outputs import Response, ToolCacheOptions, ToolOutputs, is_response_id, is_server_id

__all__ = ["Drafts", "ToolCache"]

_CHAT = "/v1/chat/completions"
_OUTPUTS = "/cache-tool-output/"
# A request without any of them goes to the application as it is.
_MEMBERS = (b'"response_id"', b'"tool_wait"', b'"cached_tool_calls"')


def _owner(scope: dict[str, Any]) -> str:
    """Whose responses a request may use: those of its API key."""
    scheme, _, key = header_of(scope, b"authorization").partition(" ")
    return hashlib.sha256(key.strip().encode()).hexdigest() if scheme.lower() == "bearer" else ""


class Drafts(Protocol):
    """Receives the calls that a request is expected to make. is_on: whether they are used."""

    is_on: bool

    async def tell(self, name: str, request: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> None:
        """name: of the request, as its X-Request-Id. No calls end it."""


class ToolCache:
    """The middleware. One event loop uses it; each process of a server has its own cache."""

    whole_calls = ("tool_calls",)  # why an answer ends whose calls are whole
    one_prompt: tuple[str, ...] = ()  # members of a request that belong to its prompt, so that no round can follow
    first_round: tuple[str, ...] = ()  # members of a request that only its first round has

    def __init__(self, app: Any, options: ToolCacheOptions | None = None) -> None:
        self.app = app
        self.options = ToolCacheOptions.of_environment() if options is None else options
        self.outputs = ToolOutputs(self.options)
        self.drafts: Drafts | None = None
        self.asked: set[asyncio.Future] = set()  # what the application still does
        self._running: dict[tuple[str, str], CachedAnswer] = {}

    def usages(self, app: Any, options: dict[str, Any]) -> tuple[bool, bool]:
        """Whether the application gives a stream with these `stream_options` a usage at its end, and one in each chunk."""
        raise NotImplementedError

    def make_drafts(self, app: Any) -> Drafts | None:
        """Over the application of the first request."""
        return None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        path, method = scope.get("path", ""), scope.get("method")
        root = scope.get("root_path", "").rstrip("/")
        if path.startswith(root + "/"):
            path = path[len(root):]
        if scope["type"] != "http" or method == "OPTIONS":
            await self.app(scope, receive, send)
        elif path.startswith(_OUTPUTS):
            try:
                cached, headers = await self._add(scope, path[len(_OUTPUTS):], receive)
            except ApiError as error:
                await self._refuse(scope, send, error)
            except ClientGone:
                return
            else:
                await send_json(send, 200, {"cached": cached}, headers)
        elif path == _CHAT and method == "POST":
            await self._chat(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    # ------------------------------------------------------------------------------------------------------ outputs

    async def _add(self, scope: dict[str, Any], response_id: str, receive: Receive) -> tuple[int, tuple]:
        """How many outputs were kept, and headers for the answer."""
        if not is_response_id(response_id):
            raise ApiError(404, "unknown_url", "", "there is nothing at this URL")
        if scope["method"] != "POST":
            raise ApiError(405, "method_not_allowed", "", f"this URL takes POST, not {scope['method']}")
        headers = await self._check_key(scope)
        if header_of(scope, b"content-type").split(";")[0].strip().lower() != "application/json":
            raise ApiError(415, "unsupported_content_type", "", "the body must be application/json")
        length = header_of(scope, b"content-length")
        if length.isdigit() and int(length) > self.options.max_body:
            raise ApiError(413, "request_too_large", "", f"the body has more than {self.options.max_body} bytes")
        outputs = parse_outputs(await read_body(receive, self.options.max_body))
        owner = _owner(scope)
        kept = self.outputs.add(owner, response_id, outputs)
        running = self._running.get((owner, response_id))
        if kept and running is not None:
            await running.announce()
        return kept, headers

    async def _check_key(self, scope: dict[str, Any]) -> tuple:
        """Asks the application whether it takes the request's key: the check may stand behind this middleware. Gives the
        headers that the application adds to answers, such as those for other origins."""
        start = await self._ask_models(scope)
        if start.get("status") in (401, 403):
            raise ApiError(401, "invalid_api_key", "", "the API key is missing or wrong")
        if start.get("status") != 200:
            raise ApiError(503, "unavailable", "", "the server does not answer requests now")
        return other_headers(start)

    async def _refuse(self, scope: dict[str, Any], send: Send, error: ApiError) -> None:
        await send_error(send, error, other_headers(await self._ask_models(scope)))

    async def _ask_models(self, scope: dict[str, Any]) -> dict[str, Any]:
        """The beginning of the application's answer to GET /v1/models with the request's headers."""
        path = scope.get("root_path", "").rstrip("/") + "/v1/models"
        of_body = (b"content-length", b"content-type", b"transfer-encoding")
        headers = [one for one in scope["headers"] if one[0].lower() not in of_body]
        start: dict[str, Any] = {}

        async def nothing() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)

        asked = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
        await self.app(asked, replay(b"", nothing), send)
        return start

    # --------------------------------------------------------------------------------------------------------- chat

    async def _chat(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        length = header_of(scope, b"content-length")
        try:
            if not length.isdigit() or int(length) > self.options.max_body:
                await self._check_key(scope)  # before a large body is read
            body = await read_body(receive)
        except ApiError:
            return await self.app(scope, receive, send)
        except ClientGone:
            return
        request = None
        if any(member in body for member in _MEMBERS):
            with contextlib.suppress(ValueError, RecursionError):  # the application says what is wrong
                request = json.loads(body)
        if not isinstance(request, dict):
            return await self.app(scope, replay(body, receive), send)
        if b'"cached_tool_calls"' in body:
            request["messages"] = expand_cached(request.get("messages"))
        try:
            response_id, wait = self._named(request)
            if response_id is None:
                return await self.app(*changed(scope, json.dumps(request).encode(), receive), send)
            await self._check_key(scope)
            response = self.outputs.open(_owner(scope), response_id, tools_of(request))
        except ApiError as error:
            return await self._refuse(scope, send, error)
        if self.drafts is None:
            self.drafts = self.make_drafts(scope.get("app"))
        answer = CachedAnswer(self, scope, receive, send, request, response, wait)
        self._running[response.key] = answer
        await answer.run()

    def end(self, answer: CachedAnswer, response: Response) -> None:
        """Ends an answer, so that another request may have its id."""
        if self._running.get(response.key) is answer:
            del self._running[response.key]
            self.outputs.close(response)

    def _named(self, request: dict[str, Any]) -> tuple[str | None, float]:
        """Takes the cache's members out of a request: the response's id, None where it has none, and the seconds to wait."""
        fields = Fields(request, pointers=False)
        named, wait = fields.find("response_id", str, "a string"), fields.number("tool_wait", 3600) or 0.0
        if named is not None and not is_response_id(named):
            fields.fail("response_id", "must be 1 to 128 letters, digits, '-', '_' and '.'")
        if named is not None and is_server_id(named):
            fields.fail("response_id", "must not begin as the server's own ids do")
        is_cached = named is not None or wait > 0
        if is_cached and request.get("n") not in (None, 1):
            fields.fail("n", "must be 1 where outputs of tools may be cached")
        for member in self.one_prompt:
            if is_cached and request.get(member) is not None:
                fields.fail(member, "must not be given where outputs of tools may be cached")
        for member in ("response_id", "tool_wait"):
            request.pop(member, None)
        if not is_cached:
            return None, 0.0
        return named or f"chatcmpl-{secrets.token_hex(16)}", wait
