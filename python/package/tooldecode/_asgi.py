"""Requests and answers of ASGI: what middleware reads, changes and sends."""
from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ._api_fields import ApiError

__all__ = ["ClientGone", "Receive", "Send", "changed", "header_of", "other_headers", "read_body", "replay", "send_error",
           "send_json"]

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class ClientGone(OSError):
    """The client has closed the connection; servers of ASGI send the same kind of error."""


def header_of(scope: dict[str, Any], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name), "")


def other_headers(message: dict[str, Any]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of an answer without those of its body, for an answer with another body."""
    of_body = (b"content-length", b"content-type", b"content-encoding", b"transfer-encoding")
    return tuple((key, value) for key, value in message.get("headers", ()) if key.lower() not in of_body)


async def read_body(receive: Receive, most: float = float("inf")) -> bytes:
    """ApiError 413 for more than `most` bytes, ClientGone for a body that is not whole."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone("the client is gone")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise ApiError(413, "request_too_large", "", f"the body has more than {most} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def replay(body: bytes, then: Receive) -> Receive:
    """Gives a body that was read, and then what follows it."""
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            return await then()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def send_json(send: Send, status: int, value: Any, headers: tuple = ()) -> None:
    body = json.dumps(value, ensure_ascii=False).encode()
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: ApiError, headers: tuple = ()) -> None:
    if error.status == 401 and all(key.lower() != b"www-authenticate" for key, _ in headers):
        headers = (*headers, (b"www-authenticate", b"Bearer"))
    await send_json(send, error.status, error.json(), headers)


def changed(scope: dict[str, Any], body: bytes, then: Receive, request_id: str = "") -> tuple[dict[str, Any], Receive]:
    """The scope and the messages of a request with another body. request_id: for a request whose answer is read here; it is
    not compressed then."""
    dropped = (b"content-length", b"transfer-encoding") + ((b"x-request-id", b"accept-encoding") if request_id else ())
    headers = [one for one in scope["headers"] if one[0].lower() not in dropped]
    headers.append((b"content-length", str(len(body)).encode()))
    if request_id:
        headers.append((b"x-request-id", request_id.encode()))
    return {**scope, "headers": headers}, replay(body, then)
