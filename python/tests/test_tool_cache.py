"""The tool cache in front of a scripted application: what is asked of it, and what the client gets."""
import asyncio
import functools
import json
import math
import re
import tracemalloc
import types

import pytest
from scripted_chat import Client, ScriptedApp, call, chunks_of, joined, request, says

import tooldecode
from tooldecode import _tool_outputs, sglang_tool_cache
from tooldecode._chat_rounds import expand_cached
from tooldecode._api_fields import ApiError, CachedOutput, parse_outputs
from tooldecode._tool_outputs import ToolCacheOptions, ToolOutputs, call_key
from tooldecode.vllm_tool_cache import ToolCache

OSLO, ROME = call("get_weather", city="Oslo", days=2), call("get_weather", city="Rome")
RAIN = {"name": "get_weather", "params": {"days": 2.0, "city": "Oslo"}, "output": "rain"}
SUN = {"name": "get_weather", "params": {"city": "Rome", "days": 3}, "output": {"sky": "sun"}}


def asynchronous(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 30))
    return run


async def answer(client, stream, **fields):
    """The message, its finish reason and the usage of an answer that is 200; and its id."""
    if stream:
        chunks = await client.stream(stream_options={"include_usage": True}, **fields)
        message, _, finish, usage = joined(chunks)
        ids = {chunk["id"] for chunk in chunks}
        assert len(ids) == 1
        return message, finish, usage, ids.pop()
    status, body = await client.chat(**fields)
    assert status == 200 and len(body["choices"]) == 1, body
    choice = body["choices"][0]
    return choice["message"], choice["finish_reason"], body["usage"], body["id"]


STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@STREAM
@asynchronous
async def test_all_calls_cached(stream):
    app = ScriptedApp(says("I look. ", OSLO, ROME, reasoning="Hm. "), says("Rain and sun.", reasoning="So."))
    client = Client(ToolCache(app))
    assert await client.announce("r", [RAIN, SUN]) == (200, {"cached": 2})
    message, finish, usage, named = await answer(client, stream, response_id="r", tool_wait=0)
    assert named == "r" and finish == "stop" and len(app.requests) == 2
    assert message["content"] == "I look. Rain and sun." and message["reasoning"] == "Hm. So." and not message.get("tool_calls")
    assert message["cached_tool_calls"] == [{**OSLO, "output": "rain", "turn": 0, "content": "I look. ", "reasoning": "Hm. "},
                                            {**ROME, "output": '{"sky": "sun"}', "turn": 0}]
    assert usage == {"prompt_tokens": 300, "completion_tokens": 3, "total_tokens": 303,
                     "prompt_tokens_details": {"cached_tokens": 10}, "completion_tokens_details": None}
    first, second = app.requests
    assert first["messages"] == request()["messages"] and not {"response_id", "tool_wait"} & (first.keys() | second.keys())
    assert second["messages"] == [*first["messages"],
                                  {"role": "assistant", "content": "I look. ", "reasoning": "Hm. ", "tool_calls": [OSLO, ROME]},
                                  {"role": "tool", "tool_call_id": OSLO["id"], "content": "rain"},
                                  {"role": "tool", "tool_call_id": ROME["id"], "content": '{"sky": "sun"}'}]
    assert {**second, "messages": 0} == {**first, "messages": 0}
    names = [headers["x-request-id"] for headers in app.headers]
    assert names[0] == names[1] and re.fullmatch("[0-9a-f]{32}", names[0])


@asynchronous
async def test_order_of_a_stream():
    app = ScriptedApp(says("a", OSLO), says("b", ROME), says("c"))
    client = Client(ToolCache(app))
    await client.announce("r", [RAIN])
    chunks = await client.stream(response_id="r")
    _, order, finish, usage = joined(chunks)
    # Text at once, and calls whole; the usage was not asked for.
    assert order == ["role", "content", "cached_tool_calls", "content", "tool_calls"] and finish == "tool_calls" and usage is None
    assert app.requests[0]["stream_options"] == {"include_usage": True}
    assert all(chunk["choices"] and chunk["object"] == "chat.completion.chunk" for chunk in chunks)


@STREAM
@pytest.mark.parametrize("entries", [
    [], [RAIN], [SUN], [RAIN, {**SUN, "params": {"city": "Rome", "days": 4}}], [RAIN, {**SUN, "keep_alive": 0}],
    [RAIN, {"name": "add", "output": "1"}]], ids=["none", "first", "second", "other days", "no time", "other tool"])
@asynchronous
async def test_call_without_output_ends_the_answer(stream, entries):
    app = ScriptedApp(says("I look. ", OSLO, ROME), says("never"))
    client = Client(ToolCache(app))
    await client.announce("r", entries)
    message, finish, usage, _ = await answer(client, stream, response_id="r")
    assert finish == "tool_calls" and message["tool_calls"] == [OSLO, ROME] and message["content"] == "I look. "
    assert "cached_tool_calls" not in message and len(app.requests) == 1 and usage["prompt_tokens"] == 100


@STREAM
@asynchronous
async def test_several_rounds(stream):
    app = ScriptedApp(says(None, OSLO), says(None, ROME), says("done", call("add", a=1)))
    client = Client(ToolCache(app))
    await client.announce("r", [RAIN, {"name": "get_weather", "output": "any"}])
    message, finish, usage, _ = await answer(client, stream, response_id="r")
    assert [(one["output"], one["turn"]) for one in message["cached_tool_calls"]] == [("rain", 0), ("any", 1)]
    assert finish == "tool_calls" and message["tool_calls"] == [call("add", a=1)] and usage["total_tokens"] == 606
    assert [len(one["messages"]) for one in app.requests] == [1, 3, 5]
    # What a client sends back is the turns that it describes.
    back = Client(ToolCache(again := ScriptedApp(says("ok"))))
    await back.chat(messages=[request()["messages"][0], message, {"role": "tool", "tool_call_id": "x", "content": "2"}])
    sent = again.requests[0]["messages"]
    assert sent[:5] == app.requests[2]["messages"] and sent[5]["tool_calls"] == message["tool_calls"]
    assert "cached_tool_calls" not in sent[5] and len(sent) == 7
    odd = {"role": "assistant", "content": "x", "cached_tool_calls": [{"function": "x"}]}
    await back.chat(messages=[request()["messages"][0], odd])
    assert again.requests[-1]["messages"][1] == odd, "what is malformed is left to the server"


@STREAM
@pytest.mark.parametrize("last", [says("It rains.", reasoning="So."), says("Now: ", call("add", a=1)), says(None, call("add", a=1))],
                         ids=["text", "text and call", "call"])
@asynchronous
async def test_text_before_a_cached_call_stands_before_it_when_it_comes_back(stream, last):
    app = ScriptedApp(says("Let me look. ", OSLO, reasoning="Hm. "), says("And there. ", ROME), last)
    client = Client(ToolCache(app))
    await client.announce("r", [RAIN, {"name": "get_weather", "output": "any"}])
    message, *_ = await answer(client, stream, response_id="r")
    assert message["content"].startswith("Let me look. And there. ")
    back = Client(ToolCache(again := ScriptedApp(says("ok"))))
    await back.chat(messages=[request()["messages"][0], message])
    sent, expected = again.requests[0]["messages"], app.requests[2]["messages"]
    assert sent[:-1] == expected and sent[1]["content"] == "Let me look. " and sent[1]["reasoning"] == "Hm. "
    alone = (await answer(Client(ToolCache(ScriptedApp(last))), False))[0]
    assert {name: value for name, value in sent[-1].items() if value} == {name: value for name, value in alone.items() if value}


@pytest.mark.parametrize("content", ["another text", None, [{"type": "text", "text": "Let me look."}], 3])
def test_text_that_a_client_has_changed_stays(content):
    entry = {**OSLO, "output": "rain", "turn": 0, "content": "Let me look. "}
    *turn, last = expand_cached([{"role": "assistant", "content": content, "cached_tool_calls": [entry]}])
    assert [one["content"] for one in turn] == ["Let me look. ", "rain"] and last == {"role": "assistant", "content": content}
    *turn, _ = expand_cached([{"role": "assistant", "content": content, "cached_tool_calls": [{**entry, "content": content}]}])
    assert turn[0]["content"] == (content if isinstance(content, str) else None)


@STREAM
@asynchronous
async def test_limit_on_rounds(stream):
    app = ScriptedApp(says("x", OSLO))
    client = Client(ToolCache(app, ToolCacheOptions(max_rounds=3)))
    await client.announce("r", RAIN)
    message, finish, usage, _ = await answer(client, stream, response_id="r")
    assert len(app.requests) == 3 and finish == "tool_calls" and message["tool_calls"] == [OSLO]
    assert len(message["cached_tool_calls"]) == 2 and message["content"] == "xxx" and usage["completion_tokens"] == 6


@STREAM
@asynchronous
async def test_refused_round_leaves_the_calls(stream):
    app = ScriptedApp(says("x", OSLO), says(status=400))
    client = Client(ToolCache(app))
    await client.announce("r", RAIN)
    message, finish, usage, _ = await answer(client, stream, response_id="r")
    assert len(app.requests) == 2 and finish == "tool_calls" and message["tool_calls"] == [OSLO]
    assert "cached_tool_calls" not in message and message["content"] == "x" and usage["total_tokens"] == 101


@STREAM
@asynchronous
async def test_other_answers_stay(stream):
    """A refused request, an answer that was cut in its calls, and requests that name no response."""
    client = Client(ToolCache(app := ScriptedApp(says(status=422))))
    await client.announce("r", RAIN)
    status, body = await client.chat(response_id="r", stream=stream)
    assert status == 422 and body["error"]["code"] == 422
    client = Client(ToolCache(ScriptedApp(says("x", OSLO, finish="length"))))
    await client.announce("r", RAIN)
    message, finish, *_ = await answer(client, stream, response_id="r")
    assert finish == "length" and message["tool_calls"] == [OSLO] and "cached_tool_calls" not in message
    for body in (json.dumps(request(stream=stream)).encode(), json.dumps(request(response_id=None)).encode()):
        apps = [ScriptedApp(says("x", OSLO)) for _ in range(2)]
        got = [await Client(one).ask("POST", "/v1/chat/completions", body) for one in (ToolCache(apps[0]), apps[1])]
        assert got[0] == got[1] and got[0][0] == 200
        assert all("x-request-id" not in headers for headers in apps[0].headers)
    app = ScriptedApp(says("x"))
    assert (await Client(ToolCache(app)).ask("GET", "/v1/models"))[0] == 200


@asynchronous
async def test_calls_of_an_answer_that_stopped_are_whole_in_vllm_alone():
    """There a named tool's call ends so; in SGLang one that is not whole."""
    for cache, rounds in ((ToolCache, 2), (sglang_tool_cache.ToolCache, 1)):
        app = ScriptedApp(says("x", OSLO, finish="stop"), says("y"))
        client = Client(cache(app))
        await client.announce("r", RAIN)
        await client.chat(response_id="r")
        assert len(app.requests) == rounds


@STREAM
@asynchronous
async def test_waits_for_outputs(stream):
    app = ScriptedApp(says("x", OSLO, ROME), says("y"))
    client, pieces = Client(ToolCache(app)), []
    asked = asyncio.ensure_future(client.post(taken=pieces, response_id="r", tool_wait=20, stream=stream))
    await app.asked.wait()
    while stream and b"pending_tool_calls" not in b"".join(pieces):
        await asyncio.sleep(0.001)
    assert await client.announce("r", RAIN) == (200, {"cached": 1})
    assert (await client.chat(response_id="r"))[1]["error"]["code"] == "response_id_in_use"
    assert await client.announce("r", SUN) == (200, {"cached": 1})
    status, body = await asked
    message = joined(chunks_of(body))[0] if stream else json.loads(body)["choices"][0]["message"]
    assert status == 200 and message["content"] == "xy" and len(message["cached_tool_calls"]) == 2
    assert not stream or message["pending_tool_calls"] == [OSLO, ROME]
    app = ScriptedApp(says("x", OSLO))
    message, finish, _, named = await answer(Client(ToolCache(app)), stream, tool_wait=0.01)
    assert finish == "tool_calls" and message["tool_calls"] == [OSLO] and re.fullmatch("chatcmpl-[0-9a-f]{32}", named)


@asynchronous
async def test_ids():
    """The server's ids are random, known to the client from its stream's first chunk, and unknown before."""
    app = ScriptedApp(says("x", OSLO), says("y"))
    client, pieces, ids = Client(ToolCache(app)), [], set()
    for wrong in ("chatcmpl-" + "0" * 32, "resp_1", "cmpl-1"):
        status, body = await client.announce(wrong, RAIN)
        assert status == 404 and body["error"]["code"] == "unknown_response" and body["error"]["param"] == "response_id"
        status, body = await client.chat(response_id=wrong)
        assert status == 400 and (body["error"]["code"], body["error"]["param"]) == ("invalid_value", "response_id")
    asked = asyncio.ensure_future(client.post(taken=pieces, tool_wait=20, stream=True))
    while b"pending_tool_calls" not in b"".join(pieces):
        await asyncio.sleep(0.001)
    ids = {chunk["id"] for chunk in chunks_of(b"".join(pieces))}
    assert await client.announce(ids.pop(), RAIN) == (200, {"cached": 1}) and not ids
    assert joined(chunks_of((await asked)[1]))[0]["content"] == "xy"
    # An output for another id changes nothing.
    app = ScriptedApp(says("x", OSLO))
    client = Client(ToolCache(app))
    await client.announce("s", RAIN)
    assert (await answer(client, False, response_id="r"))[1] == "tool_calls" and len(app.requests) == 1


@asynchronous
async def test_keys():
    """Outputs are their key's; a key that the application does not take puts none there."""
    app = ScriptedApp(says("x", OSLO), keys=["a", "b"])
    cache = ToolCache(app)
    a, b, wrong, none = (Client(cache, key) for key in ("a", "b", "c", None))
    for client in (wrong, none):
        status, body = await client.announce("r", RAIN)
        assert status == 401 and body["error"]["code"] == "invalid_api_key"
        assert len(cache.outputs._early) == 0
        assert (await client.chat(response_id="r"))[0] == 401
    assert not app.requests
    assert await b.announce("r", RAIN) == (200, {"cached": 1})
    assert "cached_tool_calls" not in (await answer(a, False, response_id="r"))[0]
    waiting = asyncio.ensure_future(a.stream(response_id="w", tool_wait=0.2))
    await asyncio.sleep(0.05)
    assert (await b.announce("w", RAIN))[0] == 200  # kept early, for a response of its own
    assert "cached_tool_calls" not in joined(await waiting)[0]
    message, *_ = await answer(b, False, response_id="r")
    assert message["cached_tool_calls"][0]["output"] == "rain"
    # Nor does it learn the ids that the server gives to others.
    pieces = []
    asked = asyncio.ensure_future(a.post(taken=pieces, tool_wait=0.3, stream=True))
    while not pieces:
        await asyncio.sleep(0.001)
    named = chunks_of(b"".join(pieces))[0]["id"]
    assert (await b.announce(named, RAIN))[0] == 404 and (await a.announce(named, []))[0] == 200
    await asked


@asynchronous
async def test_refusals():
    client = Client(cache := ToolCache(ScriptedApp(says("x", OSLO)), ToolCacheOptions(max_body=1000)))
    await client.chat(response_id="known")

    async def refused(status, code, param, method="POST", path="/cache-tool-output/r", body=RAIN, **more):
        got, answered = await client.ask(method, path, body, **more)
        error = json.loads(answered)["error"]
        assert (got, error["code"], error["param"]) == (status, code, param) and error["type"] == "invalid_request_error", error
        assert param is None or param in error["message"]

    for path in ("/cache-tool-output/", "/cache-tool-output/a b", "/cache-tool-output/a/b", "/cache-tool-output/" + "r" * 129):
        await refused(404, "unknown_url", None, path=path)
    for method in ("GET", "PUT", "DELETE"):
        await refused(405, "method_not_allowed", None, method=method)
    await refused(415, "unsupported_content_type", None, headers=(("content-type", "text/plain"),))
    await refused(415, "unsupported_content_type", None, headers=())
    await refused(413, "request_too_large", None, body={**RAIN, "output": "x" * 1000})
    for body in (b"", b"[", b'[{"name": "f", "output": 1},]', b"[" * 900, b"\xff", b"null x", b'{"name": "f", "name": "f"}',
                 b"[NaN]", b'{"name": "\\ud800", "output": 1}', b'{"name": "f", "output": 1e999}'):
        await refused(400, "invalid_json", None, body=body)
    for body in (3, "x", True, None):
        await refused(400, "invalid_type", None, body=body)
        await refused(400, "invalid_type", "/1", body=[RAIN, body])
    for code, param, change in (
            ("missing_required_parameter", "/name", {"name": None}), ("invalid_type", "/name", {"name": 3}),
            ("invalid_type", "/params", {"params": []}), ("missing_required_parameter", "/output", {"output": ...}),
            ("invalid_value", "/keep_alive", {"keep_alive": -1}), ("invalid_value", "/keep_alive", {"keep_alive": 86401}),
            ("invalid_type", "/keep_alive", {"keep_alive": "1"}), ("invalid_type", "/keep_alive", {"keep_alive": True}),
            ("unsupported_parameter", "/ttl", {"ttl": 3}), ("unsupported_parameter", "/a~1b~0c", {"a/b~c": 3}),
            ("unknown_tool", "/name", {"name": "f"})):
        wrong = {key: value for key, value in {**RAIN, **change}.items() if value is not ...}
        for named in ("known", "nobody") if code != "unknown_tool" else ("known",):
            await refused(400, code, param, body=wrong, path=f"/cache-tool-output/{named}")
            await refused(400, code, f"/1{param}", body=[RAIN, wrong], path=f"/cache-tool-output/{named}")
    assert await client.announce("known", []) == (200, {"cached": 0})
    assert cache.outputs._cache.bytes == cache.outputs._early.bytes == 0  # nothing of what was refused is kept
    for code, param, fields in (
            ("invalid_type", "response_id", {"response_id": 3}), ("invalid_value", "response_id", {"response_id": "a b"}),
            ("invalid_value", "tool_wait", {"tool_wait": 3601}), ("invalid_type", "tool_wait", {"tool_wait": "1"}),
            ("invalid_value", "n", {"response_id": "r", "n": 2}), ("invalid_value", "n", {"tool_wait": 1, "n": 2})):
        await refused(400, code, param, path="/v1/chat/completions", body=request(**fields))


@STREAM
@pytest.mark.parametrize("when", ["first round", "second round", "waiting"])
@asynchronous
async def test_client_gone(stream, when):
    """The application is told, nothing more is asked of it, and the id is free again."""
    hold, gone, pieces = asyncio.Event(), asyncio.Event(), []
    rounds = [says("x", OSLO, hold=hold if when == "first round" else None), says("y", hold=hold if when == "second round" else None)]
    app = ScriptedApp(*rounds)
    client = Client(cache := ToolCache(app))
    if when != "waiting":
        await client.announce("r", RAIN)
    asked = asyncio.ensure_future(client.post(gone=gone, taken=pieces, response_id="r", tool_wait=20, stream=stream))
    while len(app.requests) < (2 if when == "second round" else 1):
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)
    assert not asked.done()
    gone.set()
    status, _ = await asyncio.wait_for(asked, 5)
    assert status == (200 if stream else None) and b"DONE" not in b"".join(pieces)
    assert app.cancelled == (0 if when == "waiting" else 1) and len(app.requests) == (2 if when == "second round" else 1)
    assert not cache._running
    hold.set()
    await client.announce("r", RAIN)
    app.script = [says("z")]
    assert (await answer(client, stream, response_id="r"))[0]["content"] == "z"


@STREAM
@asynchronous
async def test_id_is_free_when_the_answer_was_read(stream):
    """What is told to the workers at the end may take long."""
    class SlowDrafts:
        is_on, slow = True, asyncio.Event()

        async def tell(self, name, request, calls):
            if not calls:
                await self.slow.wait()

    client = Client(cache := ToolCache(ScriptedApp(says("x", finish="stop"))))
    cache.drafts = SlowDrafts()
    await client.announce("r", RAIN)
    asked = []
    for _ in range(2):
        pieces = []
        asked.append(asyncio.ensure_future(client.post(taken=pieces, response_id="r", stream=stream)))
        while not (b"DONE" if stream else b"usage") in b"".join(pieces):
            assert not asked[-1].done(), b"".join(pieces)
            await asyncio.sleep(0.001)
    assert not asked[0].done()
    SlowDrafts.slow.set()
    assert [status for status, _ in await asyncio.gather(*asked)] == [200, 200] and not cache._running


@STREAM
@asynchronous
async def test_headers(stream):
    """Those of the application are the client's, in answers that the middleware makes too."""
    own = (("content-type", "application/json"), ("x-request-id", "mine"), ("accept-encoding", "gzip"))
    app = ScriptedApp(says("x", OSLO), says("y"), says(status=400))
    client = Client(ToolCache(app))

    async def ask(path, body, expected):
        assert (await client.ask("POST", path, body, headers=own))[0] == expected
        assert client.headers["access-control-allow-origin"] == "*"

    await ask("/cache-tool-output/r", RAIN, 200)
    await ask("/cache-tool-output/r", [3], 400)
    for expected in (200, 400):  # the second is the application's own
        await ask("/v1/chat/completions", request(response_id="r", stream=stream), expected)
        assert client.headers["x-request-id"] == "mine"
    assert len(app.requests) == 3
    assert all("accept-encoding" not in headers and headers["x-request-id"] != "mine" for headers in app.headers)
    await ask("/v1/chat/completions", request(response_id="a b", stream=stream), 400)


@asynchronous
async def test_usage_of_a_stream():
    """It comes where it would come without the cache; the rounds' own need of it does not show."""
    for options, forced, chunks, last in (({"continuous_usage_stats": True}, False, False, False), (None, False, False, False),
                                          (None, True, False, True), ({"include_usage": True}, False, False, True),
                                          ({"include_usage": True, "continuous_usage_stats": True}, False, True, True)):
        state = types.SimpleNamespace(state=types.SimpleNamespace(args=types.SimpleNamespace(enable_force_include_usage=forced)))
        client = Client(ToolCache(ScriptedApp(says("x", OSLO), says("y"))), state=state)
        await client.announce("r", RAIN)
        got = await client.stream(response_id="r", **({"stream_options": options} if options else {}))
        assert (not got[-1]["choices"] and got[-1]["usage"]["total_tokens"] == 303) == last, (options, forced)
        assert any(chunk.get("usage") for chunk in got if chunk["choices"]) == chunks, (options, forced)
        assert all(chunk["system_fingerprint"] == "f" for chunk in got)


@STREAM
@asynchronous
async def test_round_does_not_wait_for_what_the_application_does_behind_its_answer(stream):
    app, left = ScriptedApp(says("x", OSLO), says("y")), asyncio.Event()

    async def lingers(scope, receive, send):
        await app(scope, receive, send)
        if scope["path"].endswith("/completions"):
            await left.wait()

    client = Client(cache := ToolCache(lingers))
    await client.announce("r", RAIN)
    message, *_ = await answer(client, stream, response_id="r")
    assert message["content"] == "xy" and len(cache.asked) == 2
    left.set()
    await asyncio.sleep(0.01)
    assert not cache.asked


@STREAM
@asynchronous
async def test_request_that_is_cancelled_cancels_the_round(stream):
    client = Client(cache := ToolCache(app := ScriptedApp(says("x", OSLO, hold=asyncio.Event()))))
    asked = asyncio.ensure_future(client.post(response_id="r", stream=stream))
    await app.asked.wait()
    asked.cancel()
    await asyncio.wait([asked])
    await asyncio.sleep(0.01)
    assert asked.cancelled() and not cache.asked and not cache._running


@asynchronous
async def test_what_comes_behind_the_last_chunk_of_a_stream_stays_there():
    """Of the last round, with the names of its events."""
    app = ScriptedApp(says("x", OSLO), says("y", ROME))

    async def adds(scope, receive, send):
        async def more(message):
            if message.get("body") == b"data: [DONE]\n\n":
                value = {"id": "own", "choices": [], "usage": None, "of": len(app.requests)}
                await send({**message, "more_body": True, "body": f"event: more\ndata: {json.dumps(value)}\n\n".encode()})
            await send(message)
        await app(scope, receive, more)

    client = Client(ToolCache(adds))
    await client.announce("r", RAIN)
    _, body = await client.post(response_id="r", stream=True, stream_options={"include_usage": True})
    *_, last, behind, usage, done, _ = body.split(b"\n\n")
    assert b'"finish_reason":"tool_calls"' in last and done == b"data: [DONE]"
    assert behind == b'event: more\ndata: {"id":"r","choices":[],"usage":null,"of":2}' and body.count(b"event") == 1
    assert json.loads(usage[6:])["usage"]["total_tokens"] == 303


@asynchronous
async def test_root_path():
    """Servers put it before the path or not."""
    for root, path in (("/v", "/v/cache-tool-output/r"), ("/v", "/cache-tool-output/r"), ("/v/", "/v/cache-tool-output/r"),
                       ("/cache", "/cache-tool-output/r"), ("", "/cache-tool-output/r")):
        client = Client(ToolCache(ScriptedApp(says("x"))), root=root)
        client.app.app.paths = []
        status, _ = await client.ask("POST", path, RAIN)
        assert (status, client.app.app.paths) == (200, [root.rstrip("/") + "/v1/models"]), (root, path)
    client = Client(ToolCache(ScriptedApp(says("x", OSLO), says("y"))), root="/v")
    await client.announce("r", RAIN)
    assert (await client.chat(response_id="r"))[1]["choices"][0]["message"]["content"] == "xy"


# --------------------------------------------------------------------------------------------------------- what is kept


def outputs(*names, size=4, keep_alive=None, arguments=None):
    written = None if arguments is None else json.dumps(arguments)
    return [CachedOutput("", name, written, "x" * size, keep_alive) for name in names]


def test_keys_of_calls():
    schema = {"properties": {"a": {"default": 3}, "b": {"properties": {"c": {"default": [1]}}}, "d": True}}
    assert call_key("f", {"a": 3, "b": {}}, schema) == call_key("f", {"b": {"c": [1.0]}}, schema) != call_key("f", {"b": {}})
    assert call_key("f", {"a": 1}) == call_key("f", {"a": 1.0}) != call_key("f", {"a": True})
    assert call_key("f", {"a": 1}) != call_key("g", {"a": 1}) and call_key("f", {}) != call_key("f", None)
    assert call_key("f", {"a": 10 ** 400}) != call_key("f", {"a": 10 ** 400 + 1})
    assert call_key("f", {"a": 123456789012345678901}) != call_key("f", {"a": 123456789012345678902})
    assert parse_outputs(b'{"name": "f", "output": null}')[0].output == "null"
    value = '["\u2603", 18446744073709551617]'
    assert parse_outputs(f'{{"name": "f", "output": {value}}}'.encode())[0].output == value


def test_limits():
    now = [0.0]
    kept = ToolOutputs(ToolCacheOptions(cache_bytes=6000, early_outputs=3, early_bytes=4000), lambda: now[0])

    def early(*ids):
        return [len(list(kept._early.latest(("", one)))) for one in ids]

    for number in range(5):
        assert kept.add("", f"n{number}", outputs("f")) == 1
    assert early("n0", "n1", "n2", "n3", "n4") == [0, 0, 1, 1, 1]  # the oldest goes first
    assert kept.add("", "big", outputs("f", size=4000)) == 0 and early("n2") == [1]
    assert kept.add("", "none", outputs("f", keep_alive=0)) == 0
    for number in range(200):
        assert kept.add("", f"m{number}", outputs("f", size=900)) == 1 and kept._early.bytes <= 4000
    assert kept.add("", "t", outputs("f")) == 1
    now[0] = 59
    assert early("t") == [1]
    response = kept.open("", "t", {"f": None, "g": None})
    assert early("t") == [0] and kept.find(response, [("f", {})]) == ["xxxx"]
    now[0] = 299
    assert kept.find(response, [("f", {})]) == ["xxxx"]
    now[0] = 300  # its time began when it came
    assert kept.find(response, [("f", {})]) == [None] and kept._cache.bytes == 0
    kept.add("", "late", outputs("f"))
    now[0] = 361
    assert early("late") == [0] and len(kept._early) == 0
    # The entry that was not used for longest goes first, and what cannot fit takes the place of none.
    for number in range(8):
        kept.add("", "t", outputs("f", size=100, arguments={"a": number}))
        kept.find(response, [("f", {"a": 0})])
    kept.add("", "t", outputs("f", size=2500, arguments={"a": 9}))
    found = kept.find(response, [("f", {"a": number}) for number in (*range(8), 9)])
    assert found[0] and found[-1] and None in found and kept._cache.bytes <= 6000
    assert kept.add("", "t", outputs("g", size=6000)) == 0 and kept.find(response, [("f", {"a": 0})])[0]
    with pytest.raises(ApiError):
        kept.open("", "t", {})
    for number in range(ToolOutputs.max_responses + 10):
        kept.close(kept.open("", f"chat{number}", {}))
    assert len(kept._responses) == ToolOutputs.max_responses + 1 and ("", "chat9") not in kept._responses
    for number in range(5000):
        kept.add("", "t", outputs("f", arguments={"a": 0}))
    assert len(kept._cache._ends) < 200


def test_expected_calls():
    kept = ToolOutputs(ToolCacheOptions())
    kept.add("", "r", [*outputs("f", arguments={"a": 1}), *outputs("f", arguments={"a": 2}), *outputs("g")])
    response = kept.open("", "r", {"f": None, "g": None})
    assert kept.expected(response, 16) == [("f", {"a": 2}), ("f", {"a": 1})]
    kept.find(response, [("f", {"a": 2}), ("h", {})])
    assert len(kept.expected(response, 16)) == 2
    assert kept.expected(response, 1) == [("f", {"a": 2})]
    kept.find(response, [("f", {"a": 2.0})])
    assert kept.expected(response, 16) == [("f", {"a": 1})]


def test_keys_are_made_once(monkeypatch):
    """What is kept is not read again for each output that arrives, and nothing is read without drafts."""
    kept = ToolOutputs(ToolCacheOptions())
    response = kept.open("", "r", {"f": None})
    for number in range(100):
        kept.add("", "r", outputs("f", arguments={"a": number}))
    with monkeypatch.context() as patched:
        patched.setattr(_tool_outputs, "call_key", None)
        assert [call[1]["a"] for call in kept.expected(response, 16)] == list(range(99, 83, -1))

    async def run():
        client = Client(cache := ToolCache(ScriptedApp(says("x", OSLO))))
        cache.outputs.expected = None
        assert (await client.chat(response_id="r"))[0] == 200

    asyncio.run(run())


def nested(depth):
    return b'{"a": ' + b"[" * depth + b"]" * depth + b"}"


@asynchronous
async def test_arguments_nested_too_deep():
    deep = {**OSLO, "function": {"name": "get_weather", "arguments": nested(700).decode()}}
    client = Client(cache := ToolCache(ScriptedApp(says("x", deep))))
    fine = b'{"name": "get_weather", "params": {}, "output": 1}'
    entry = b"[" + fine + b', {"name": "get_weather", "output": 1, "params": ' + nested(700) + b"}]"
    for _ in range(2):  # an id that no request has used, and one that is known
        status, body = await client.announce("r", entry)
        assert status == 400 and body["error"]["code"] == "invalid_json" and body["error"]["param"] in ("/1/params", None)
        assert cache.outputs._cache.bytes == cache.outputs._early.bytes == 0
        status, body = await client.chat(response_id="r")
        assert status == 200 and body["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("shape", ["small", "nested", "wide letters", "many ids"])
def test_limits_bound_memory(shape):
    body = {"small": {"params": {"a": 0}, "output": ""}, "nested": {"params": {"a": [[]] * 100}, "output": ""},
            "wide letters": {"params": {"a": "x"}, "output": "x" * 2000 + "\U0001f327"}, "many ids": {"output": ""}}[shape]
    kept = ToolOutputs(ToolCacheOptions(early_outputs=10_000, early_bytes=500_000))
    tracemalloc.start()
    try:
        for number in range(1000):
            if "params" in body:
                body["params"]["b"] = number
            entry, = parse_outputs(json.dumps({"name": "get_weather", "keep_alive": 50.5, **body}).encode())
            kept.add("", f"r{number}" if shape == "many ids" else "r", [entry])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < kept._early.bytes <= 500_000 and held < 1.1 * kept._early.bytes, (held, kept._early.bytes, len(kept._early))


@asynchronous
async def test_found_outputs_stay_while_others_are_waited_for():
    now = [0.0]
    client = Client(cache := ToolCache(app := ScriptedApp(says("x", OSLO, ROME), says("y"))))
    cache.outputs = ToolOutputs(cache.options, lambda: now[0])
    await client.announce("r", {**RAIN, "keep_alive": 1})
    asked = asyncio.ensure_future(client.chat(response_id="r", tool_wait=0.5))
    await app.asked.wait()
    await asyncio.sleep(0.05)
    now[0] = 2
    await client.announce("r", SUN)
    assert [one["output"] for one in (await asked)[1]["choices"][0]["message"]["cached_tool_calls"]] == ["rain", '{"sky": "sun"}']


WITH_DEFAULTS = {"type": "object", "properties": {
    "a": {"type": "integer"}, "b": {"type": "integer", "default": 2}, "n": {"type": "string", "default": None},
    "o": {"type": "object", "properties": {
        "x": {"type": "number", "default": 1.0},
        "p": {"type": "object", "properties": {"y": {"type": "boolean", "default": False}}}}},
    "d": {"type": "object", "default": {"u": 1}, "properties": {
        "u": {"type": "integer"}, "v": {"type": "integer", "default": 5}}}}, "required": ["a"]}


@pytest.mark.parametrize("arguments, schema, key", [
    ({}, None, "{}"),
    ({"b": [2.0, "x"], "a": 1e0}, None, '{"a":1,"b":[2,"x"]}'),
    ({"a": True, "b": None, "c": [], "d": {}}, None, '{"a":true,"b":null,"c":[],"d":{}}'),
    ({"a": 2 ** 64 - 1, "b": -2 ** 63, "c": 2 ** 53 + 1}, None,
     '{"a":18446744073709551615,"b":-9223372036854775808,"c":9007199254740993}'),
    ({"a": 2 ** 64 + 1, "b": 1e-7, "c": -0.0, "d": 1e21}, None, '{"a":18446744073709551617,"b":1e-7,"c":0,"d":1e+21}'),
    ({"a": 10 ** 400, "b": 1.0}, None, '{"a":1' + 400 * "0" + ',"b":1}'),
    ({"\u00e9": '"\n', "\ufb33": 1, "\U0001f600": 2, "z": 3}, None,  # by units of UTF-16
     '{"z":3,"\u00e9":"\\"\\n","\U0001f600":2,"\ufb33":1}'),
    ({"a": 1}, WITH_DEFAULTS, '{"a":1,"b":2,"d":{"u":1,"v":5},"n":null}'),
    ({"n": "x", "d": {"v": 6, "z": [1.0]}, "b": 3}, WITH_DEFAULTS, '{"b":3,"d":{"v":6,"z":[1]},"n":"x"}'),
    ({"d": 1, "n": None, "b": 2.5, "o": {}}, WITH_DEFAULTS, '{"b":2.5,"d":1,"n":null,"o":{"x":1}}'),
    ({"d": {}, "o": {"p": {}}}, WITH_DEFAULTS, '{"b":2,"d":{"v":5},"n":null,"o":{"p":{"y":false},"x":1}}'),
    ({}, True, "{}"),
    ({}, {"properties": [1]}, "{}"),
    ({}, {"properties": {"a": True, "b": {"default": math.nan}, "\ud800": {"default": 1}, "c": {"default": 1}}}, '{"c":1}'),
])
def test_call_key_is_the_name_and_the_canonical_arguments_with_defaults(arguments, schema, key):
    before = json.dumps([arguments, schema])
    assert call_key("f", arguments, schema) == "f\n" + key
    assert json.dumps([arguments, schema]) == before


def test_call_key_with_a_schema_that_refers_to_itself():
    schema = {}
    schema["properties"] = {"a": schema, "b": schema}
    assert call_key("f", {"a": {"b": 1}}, schema) == 'f\n{"a":{"b":1}}'
    schema["default"] = {}  # so its defaults have no end
    with pytest.raises(tooldecode.Error) as caught:
        call_key("f", {}, schema)
    assert caught.value.code == "limit_exceeded"


@pytest.mark.parametrize("value, code", [(10**5000, "limit_exceeded"), (math.inf, "malformed_call"), ("\ud800", "malformed_call")],
                         ids=["digits", "infinity", "surrogate"])
def test_call_key_of_what_has_no_json_is_an_error(value, code):
    with pytest.raises(tooldecode.Error) as caught:
        call_key("f", {"a": value})
    assert caught.value.code == code


def test_call_key_without_arguments_is_that_of_any_call():
    assert call_key("f", None) == call_key("f", None, WITH_DEFAULTS) == "f\n"
    assert call_key("f\n{}", {}) != call_key("f", {}) != call_key("g", {})


@pytest.mark.parametrize("arguments, code", [
    ({"a": math.inf}, "malformed_call"), ({"a": ["\ud800"]}, "malformed_call"), ({"\udfff": 1}, "malformed_call"),
    ({1: 2}, "malformed_call"), ({"a": b""}, "malformed_call"), (json.loads('{"a":' + 200 * "[" + 200 * "]" + "}"), "limit_exceeded"),
])
def test_call_key_refuses_what_no_json_has(arguments, code):
    with pytest.raises(tooldecode.Error) as refused:
        call_key("f", arguments)
    assert refused.value.code == code
    call_key("f", json.loads('{"a":' + 199 * "[" + 199 * "]" + "}"))


def test_output_for_any_arguments_answers_a_call_whose_arguments_have_no_key():
    kept = ToolOutputs(ToolCacheOptions())
    response = kept.open("", "r", {"f": None})
    kept.add("", "r", outputs("f", arguments={"a": 1}))
    assert kept.find(response, [("f", {"a": math.nan})]) == [None]
    kept.add("", "r", outputs("f"))
    assert kept.find(response, [("f", {"a": math.nan}), ("f", {"a": "\ud800"})]) == ["xxxx", "xxxx"]
    assert kept.find(response, [("\ud800", {})]) == [None]


def test_options(monkeypatch):
    monkeypatch.setenv("TOOLDECODE_TOOL_CACHE", '{"max_rounds": 3, "keep_alive": 1.5}')
    assert ToolCache(None).options == ToolCacheOptions(max_rounds=3, keep_alive=1.5)
    for text, what in (("[]", "object"), ('{"rounds": 3}', "rounds: unknown"), ('{"max_rounds": 0}', "max_rounds"),
                       ('{"max_body": "1"}', "max_body")):
        monkeypatch.setenv("TOOLDECODE_TOOL_CACHE", text)
        with pytest.raises(ValueError, match=what):
            ToolCache(None)


@asynchronous
async def test_large_bodies_need_a_key_first():
    """What is not authorised is the application's to refuse, before its body is read."""
    app = ScriptedApp(says("x"), keys=["a"])
    cache = ToolCache(app, ToolCacheOptions(max_body=100))
    for key, expected in (("a", 200), ("b", 401)):
        reads = []

        class Counted(Client):
            async def count(self, scope, receive, send):
                async def counted():
                    reads.append(1)
                    return await receive()
                await cache(scope, counted, send)

        client = Counted(None, key)
        client.app = client.count
        status, _ = await client.post()
        assert status == expected and (len(reads) > 0) == (expected == 200)
