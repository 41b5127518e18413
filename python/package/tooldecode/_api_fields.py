"""The bodies of requests, read as `tooldecode serve` reads them: a mistake has a status, a code and a place."""
from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

__all__ = ["ApiError", "CachedOutput", "Fields", "parse_body", "parse_outputs"]


class ApiError(Exception):
    """A request that is refused; `json` is the body of the answer."""

    def __init__(self, status: int, code: str, param: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param

    def json(self) -> dict[str, Any]:
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(
            self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param or None, "code": self.code}}


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        raise ValueError("a key is there twice")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_body(body: bytes) -> Any:
    """A JSON value; ApiError invalid_json for anything else, keys that are there twice and unpaired surrogates included."""
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "invalid_json", "", f"the body is not JSON as required: {error}") from None


class Fields:
    """Reads the members of an object. A null counts as absent. Places are JSON pointers, or names."""

    def __init__(self, value: Any, place: str = "", pointers: bool = True) -> None:
        self.place, self._pointers = place, pointers
        if not isinstance(value, dict):
            self.fail("", "must be an object", "invalid_type")
        self._value = value

    def fail(self, key: str, what: str, code: str = "invalid_value") -> None:
        place = self.place
        if key:
            place += "/" + key.replace("~", "~0").replace("/", "~1") if self._pointers else key
        raise ApiError(400, code, place, f"{place or 'the request'} {what}")

    def allow(self, *keys: str) -> None:
        for key, value in self._value.items():
            if value is not None and key not in keys:
                self.fail(key, "is not supported", "unsupported_parameter")

    def find(self, key: str, kind: type, name: str) -> Any:
        value = self._value.get(key)
        if value is not None and not isinstance(value, kind):
            self.fail(key, f"must be {name}", "invalid_type")
        return value

    def text(self, key: str) -> str:
        value = self.find(key, str, "a string")
        if value is None:
            self.fail(key, "is required", "missing_required_parameter")
        return value

    def number(self, key: str, most: float) -> float | None:
        value = self._value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(key, "must be a number", "invalid_type")
        if not 0 <= value <= most:
            self.fail(key, f"must be from 0 to {most}")
        return float(value)


class CachedOutput(NamedTuple):
    """A call's output. place: the JSON pointer of its entry. arguments: the JSON of an object, as the client ordered it; None
    if the output answers any. keep_alive: seconds."""

    place: str
    name: str
    arguments: str | None
    output: str
    keep_alive: float | None


def _parse_output(value: Any, place: str) -> CachedOutput:
    entry = Fields(value, place)
    entry.allow("name", "params", "output", "keep_alive")
    name, keep_alive = entry.text("name"), entry.number("keep_alive", 86_400)
    arguments = entry.find("params", dict, "an object")
    if "output" not in value:  # null is a valid output
        entry.fail("output", "is required", "missing_required_parameter")
    output = value["output"]
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    written = None if arguments is None else json.dumps(arguments, ensure_ascii=False)
    return CachedOutput(place, name, written, text, keep_alive)


def parse_outputs(body: bytes) -> list[CachedOutput]:
    """One output or an array of them; ApiError with the JSON pointer of the first mistake."""
    value = parse_body(body)
    if isinstance(value, list):
        return [_parse_output(one, f"/{i}") for i, one in enumerate(value)]
    if not isinstance(value, dict):
        raise ApiError(400, "invalid_type", "", "the body must be an object or an array of objects")
    return [_parse_output(value, "")]
