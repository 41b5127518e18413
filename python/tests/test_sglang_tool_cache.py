"""The tool cache in SGLang's own server: found by its plugin, behind its check of keys, around its chat completions, its template
and parsers, over a tokenizer manager that answers from a script."""
import asyncio
import contextlib
import http.client
import json
import random
import re
import socket
import sys
import threading
import time
import types
import uuid

import pytest

pytest.importorskip("sglang", reason="SKIPPED: SGLang is not installed")
pytest.importorskip("sglang.srt.constrained.grammar_manager",
                    reason="SKIPPED: what SGLang's grammar manager imports is not installed")
pytest.importorskip("python_multipart", reason="SKIPPED: what SGLang's server imports is not installed")
http_server = pytest.importorskip("sglang.srt.entrypoints.http_server", exc_type=ImportError,
                                  reason="SKIPPED: what SGLang's server imports is not installed")

import transformers  # noqa: E402
from engine_scripts import tools_of  # noqa: E402
from scripted_chat import Client, chunks_of, joined, request  # noqa: E402
from sglang.srt import plugins  # noqa: E402
from sglang.srt.entrypoints.openai.serving_chat import OpenAIServingChat  # noqa: E402
from sglang.srt.managers.tokenizer_manager import ServerStatus, TokenizerManager  # noqa: E402
from sglang.srt.parser.template_manager import TemplateManager  # noqa: E402
from sglang.srt.runtime_context import get_context  # noqa: E402
from sglang.srt.utils.auth import add_api_key_middleware  # noqa: E402
from stream_events import pieces_of  # noqa: E402

from tooldecode import sglang_tool_cache  # noqa: E402
from tooldecode._tools import ToolRequest  # noqa: E402

CALL, OTHER = ("get_weather", {"city": "Oslo", "days": 2}), ("add", {"a": 7})
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
# Shows all that a message says, so that prompts are equal only if messages are.
TEMPLATE = """{%- for turn in messages %}<|{{ turn.role }}|>{%- if turn.reasoning_content %}<think>{{ turn.reasoning_content }}</think>
{%- endif %}{{ turn.content }}{%- for call in turn.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}{%- endfor %}{%- if add_generation_prompt %}<|assistant|>{%- endif %}"""


def says(text, *calls, reasoning=None, finish="stop"):
    """What the model writes in one answer, and why it ends."""
    written = ToolRequest(json.dumps(tools_of()), "hermes").reader().write(list(calls)) if calls else ""
    return ("" if reasoning is None else f"<think>{reasoning}</think>") + text + written, finish


class Blank(types.SimpleNamespace):
    """What is not given is None."""

    def __getattr__(self, name):
        return None


class ScriptedManager:
    """SGLang's tokenizer manager as its server sees it. Answers are entries of the script; the last one is repeated."""

    config_value, create_abort_task = TokenizerManager.config_value, TokenizerManager.create_abort_task
    serving_chat_class = OpenAIServingChat
    served_model_name = model_path = "m"
    tokenizer_path = weight_version = load_format = None
    is_generation, gracefully_exit, server_status, server_args, last_receive_tstamp = True, False, ServerStatus.Up, None, 0

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.tokenizer.chat_template = TEMPLATE
        self.model_config = Blank(
            get_default_sampling_params=dict, is_multimodal=False, context_len=4096,
            hf_config=types.SimpleNamespace(model_type="qwen2", architectures=["Qwen2ForCausalLM"], id2label={0: "a"}))
        self.request_logger = types.SimpleNamespace(log_requests=False)
        self.rid_to_state, self.aborted, self.hold = {}, [], None
        self.begin()

    def begin(self, *script):
        self.script, self.prompts, self.rids = script, [], []

    def is_ready(self):
        return True

    def abort_request(self, rid):
        self.aborted.append(rid)

    async def generate_request(self, asked, raw):
        asked.rid = asked.rid or uuid.uuid4().hex
        asked.is_single = True
        number = len(self.prompts)
        self.prompts.append(self.tokenizer.decode(asked.input_ids))
        self.rids.append(asked.rid)
        if len(asked.input_ids) > 4096:
            raise ValueError("the prompt is too long")
        text, finish = self.script[min(number, len(self.script) - 1)]
        assert asked.rid not in self.rid_to_state
        self.rid_to_state[asked.rid] = self
        meta = {"id": asked.rid, "prompt_tokens": len(asked.input_ids), "cached_tokens": number, "finish_reason": None,
                "reasoning_tokens": int("</think>" in text), "weight_version": "7", "cached_tokens_details": {"device": number},
                "output_token_logprobs": [(-0.5, 1, "a"), (-1.0, 2, "b")], "output_token_logprobs_length": 2}
        hold = self.hold
        try:
            while hold is not None and not hold.is_set():
                await asyncio.sleep(0.005)
                if await raw.is_disconnected():
                    raise ValueError("Request is disconnected from the client side")
            done, parts = "", list(pieces_of(text, random.Random(text)))
            for count, part in enumerate(parts, 1):
                done += part
                if count == len(parts):
                    meta["finish_reason"] = {"type": finish, **({"matched": 2} if finish == "stop" else {})}
                if asked.stream or count == len(parts):
                    yield {"text": done, "output_ids": [7] * count, "meta_info": {**meta, "completion_tokens": count}}
                await asyncio.sleep(0)
        except BaseException:
            if meta["finish_reason"] is None:
                self.abort_request(asked.rid)
            raise
        finally:
            del self.rid_to_state[asked.rid]


@contextlib.contextmanager
def fresh_app():
    """SGLang's application without this test's middleware, and plugins that are loaded again."""
    app = http_server.app
    before = list(app.user_middleware), app.middleware_stack, plugins._plugins_loaded
    app.middleware_stack, plugins._plugins_loaded = None, False
    try:
        yield app
    finally:
        app.user_middleware, app.middleware_stack, plugins._plugins_loaded = before


class Server:
    """SGLang's application over a scripted manager: as the plugin has made it, `cached`, and without the plugin, `plain`."""

    def __init__(self, app, manager, key):
        http_server.set_global_state(http_server._GlobalState(manager, TemplateManager(), {}))
        app.state.openai_serving_chat = OpenAIServingChat(manager, http_server.get_global_state().template_manager)
        self.manager = manager
        self.plain = self._stack(app)
        plugins.load_plugins()  # by the entry point
        if key:
            add_api_key_middleware(app, api_key=key, admin_api_key=None)
        self.cached = self._stack(app)

    @staticmethod
    def _stack(app):
        stack = app.build_middleware_stack()

        async def ask(scope, receive, send):
            await stack({**scope, "app": app}, receive, send)
        return ask


@contextlib.contextmanager
def serving(folder, monkeypatch, key=None, **more):
    options = {"tool_call_parser": "tooldecode-hermes", "grammar_backend": "tooldecode", "reasoning_parser": None,
               "enable_cache_report": True, **more}
    monkeypatch.setenv("TOOLDECODE_TOOL_CACHE", "{}")
    with get_context().override_server_args(**options), fresh_app() as app:
        yield Server(app, ScriptedManager(folder), key)


@pytest.fixture
def server(tiny, monkeypatch):
    with serving(tiny, monkeypatch) as made:
        yield made


@pytest.fixture
def thinking(tiny, monkeypatch):
    with serving(tiny, monkeypatch, reasoning_parser="qwen3") as made:
        yield made


def entry(call, output="rain", **more):
    return {"name": call[0], "params": call[1], "output": output, **more}


def run(test):
    asyncio.run(asyncio.wait_for(test, 120))


async def answer(client, stream, **fields):
    """The message, its finish reason, what it matched, and the usage."""
    if stream:
        chunks = await client.stream(tools=tools_of(), stream_options={"include_usage": True}, **fields)
        message, _, finish, usage = joined(chunks)
        assert len({chunk["id"] for chunk in chunks}) == 1
        matched = next(one["matched_stop"] for chunk in chunks for one in chunk["choices"] if one.get("finish_reason"))
        return message, finish, matched, usage
    status, body = await client.chat(tools=tools_of(), **fields)
    assert status == 200, body
    choice = body["choices"][0]
    return choice["message"], choice["finish_reason"], choice["matched_stop"], body["usage"]


def test_environment_turns_it_on_where_a_process_may_serve(monkeypatch):
    def middleware(value):
        if value is None:
            monkeypatch.delenv("TOOLDECODE_TOOL_CACHE", raising=False)
        else:
            monkeypatch.setenv("TOOLDECODE_TOOL_CACHE", value)
        with fresh_app() as app:
            plugins.load_plugins()
            sglang_tool_cache.add_to_server() if value else None  # again
            return [one for one in app.user_middleware if one.cls is sglang_tool_cache.ToolCache]

    assert middleware(None) == middleware("") == []
    one, = middleware('{"max_rounds": 3}')
    assert one.kwargs["options"].max_rounds == 3
    with pytest.raises(SystemExit, match="TOOLDECODE_TOOL_CACHE: rounds: unknown"):
        middleware('{"rounds": 3}')
    # A child serves if it has imported the server; schedulers have not.
    monkeypatch.setattr(sglang_tool_cache.multiprocessing, "parent_process", lambda: "parent")
    assert len(middleware("{}")) == 1
    monkeypatch.delitem(sys.modules, http_server.__name__)
    assert middleware("{}") == [] and http_server.__name__ not in sys.modules


@STREAM
def test_rounds(thinking, stream):
    """What all calls have in the cache goes on; the next prompt is the template's of the longer dialogue."""
    async def test():
        manager, client = thinking.manager, Client(thinking.cached)
        manager.begin(says("I look. ", CALL, reasoning="Hm. "), says("Rain.", reasoning="So."))
        assert await client.announce("r", entry(CALL)) == (200, {"cached": 1})
        message, finish, matched, usage = await answer(client, stream, response_id="r", rid="mine")
        cached, = message["cached_tool_calls"]
        assert (finish, matched, message["content"]) == ("stop", 2, "I look. Rain.") and not message.get("tool_calls")
        assert message["reasoning_content"] == "Hm. So." and (cached["output"], cached["turn"]) == ("rain", 0)
        assert json.loads(cached["function"]["arguments"]) == CALL[1]
        first, second = manager.prompts
        assert second.startswith(first + manager.script[0][0]) and second.count("rain") == 1
        assert manager.rids[0] == "mine" != manager.rids[1]  # or SGLang would abort the second for the first
        assert usage["prompt_tokens_details"]["cached_tokens"] == 1 and usage["reasoning_tokens"] == 2
        await asyncio.sleep(2.2 if stream else 0)
        assert not manager.aborted
        # Without an output it ends as without the cache.
        manager.begin(says("I look. ", CALL, reasoning=""))
        message, finish, _, _ = await answer(client, stream, response_id="s")
        assert finish == "tool_calls" and len(message["tool_calls"]) == 1 and len(manager.prompts) == 1
        assert message["content"] == "I look. " and "cached_tool_calls" not in message

    run(test())


def output_of(call):
    return f"{call[0]} gives {json.dumps(call[1], sort_keys=True)}"


async def plain_loop(client, messages, ends):
    """A client that runs the tools itself and asks again, until an answer ends without calls or in one of `ends`."""
    answers = []
    while True:
        status, body = await client.chat(tools=tools_of(), messages=messages)
        assert status == 200, body
        choice = body["choices"][0]
        answers.append((choice, body["usage"]))
        calls = [(one["function"]["name"], json.loads(one["function"]["arguments"]))
                 for one in choice["message"].get("tool_calls") or ()]
        if choice["finish_reason"] != "tool_calls" or any(call in ends for call in calls):
            return answers
        messages = [*messages, choice["message"], *(
            {"role": "tool", "tool_call_id": one["id"], "content": output_of(call)}
            for one, call in zip(choice["message"]["tool_calls"], calls))]


def without_ids(calls):
    return [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls or ()]


async def check_script(server, stream, thinks, seed):
    """One answer of the cache is what a client without it gets in several."""
    dice = random.Random(seed)
    pool = [("get_weather", {"city": city, "days": days}) for city in ("Oslo", "Rome") for days in (1, 2, 3)]
    pool += [("add", {"a": number}) for number in range(6)]
    dice.shuffle(pool)
    turns = [[pool.pop() for _ in range(dice.choice((1, 1, 2, 3)))] for _ in range(dice.randrange(4))]
    thoughts = ("", "Hm. ", "So ") if thinks else (None,)
    script = [says(dice.choice(("", "I look. ", "Zwei \u2603 ")), *calls, reasoning=dice.choice(thoughts)) for calls in turns]
    finish = dice.choice(("stop", "stop", "length"))
    script.append(says(dice.choice(("Done.", "a <b> c")), reasoning=dice.choice(thoughts), finish=finish))
    when = {json.dumps(call): dice.choices(("before", "during", "never"), (6, 3, 1))[0] for calls in turns for call in calls}
    never = [call for calls in turns for call in calls if when[json.dumps(call)] == "never"]
    messages = [{"role": "user", "content": f"Question {seed}"}]

    manager = server.manager
    manager.begin(*script)
    expected = await plain_loop(Client(server.plain), messages, never)
    prompts = manager.prompts

    client = Client(server.cached)
    named = f"r{seed}{'stream' if stream else 'whole'}"
    manager.begin(*script)

    async def post(call):
        assert await client.announce(named, entry(call, output_of(call))) == (200, {"cached": 1})

    async def post_during():
        for number, calls in enumerate(turns):
            while len(manager.prompts) <= number:
                await asyncio.sleep(0.001)
            for call in calls:
                if when[json.dumps(call)] == "during":
                    await asyncio.sleep(0.003)
                    await post(call)

    early = [call for calls in turns for call in calls if when[json.dumps(call)] == "before"]
    dice.shuffle(early)
    for call in early:
        await post(call)
    posting = asyncio.ensure_future(post_during())
    message, finish, matched, usage = await answer(client, stream, messages=messages, response_id=named,
                                                   tool_wait=("during" in when.values()) * (2 if never else 60))
    posting.cancel()
    assert manager.prompts == prompts
    last, _ = expected[-1]
    assert (finish, message["content"]) == (last["finish_reason"], "".join(one["message"]["content"] for one, _ in expected))
    assert stream and finish == "tool_calls" or matched == last["matched_stop"]
    reasoning = [one["message"]["reasoning_content"] or "" for one, _ in expected]
    assert (message.get("reasoning_content") or "") == "".join(reasoning)
    assert without_ids(message.get("tool_calls")) == without_ids(last["message"].get("tool_calls"))
    cached = [(call, output_of(call), turn) for turn, (one, _) in enumerate(expected[:-1])
              for call in without_ids(one["message"]["tool_calls"])]
    got = message.get("cached_tool_calls", [])
    assert list(zip(without_ids(got), [one["output"] for one in got], [one["turn"] for one in got])) == cached
    for name in ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens"):
        assert usage[name] == sum(one[name] for _, one in expected), name
    assert usage["prompt_tokens_details"]["cached_tokens"] == sum(range(len(expected)))
    if finish == "tool_calls":  # the client goes on with what it got
        back = [*messages, message, *({"role": "tool", "tool_call_id": one["id"], "content": output_of(call)}
                                      for one, call in zip(message["tool_calls"], without_ids(message["tool_calls"])))]
        await answer(client, False, messages=back)
        assert all(output_of(call) in manager.prompts[-1] for call in [*without_ids(got), *without_ids(message["tool_calls"])])
    return len(got), len(expected)


@STREAM
@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "reasoning"])
def test_answer_is_that_of_a_client_that_asks_again(tiny, monkeypatch, stream, thinks):
    async def test(server):
        made = []
        for seed in range(24):
            try:
                made.append(await check_script(server, stream, thinks, seed))
            except BaseException:
                print("seed", seed)
                raise
        assert sum(calls for calls, _ in made) > 20 and max(rounds for _, rounds in made) == 4

    with serving(tiny, monkeypatch, reasoning_parser="qwen3" if thinks else None) as server:
        run(test(server))


@STREAM
def test_waits_for_outputs(server, stream):
    async def test():
        client, pieces = Client(server.cached), []
        server.manager.begin(says("x", CALL, OTHER), says("y"))
        asked = asyncio.ensure_future(client.post(taken=pieces, tools=tools_of(), response_id="r", tool_wait=20, stream=stream))
        while b"pending_tool_calls" not in b"".join(pieces) if stream else not server.manager.prompts:
            await asyncio.sleep(0.001)
        assert await client.announce("r", entry(CALL)) == (200, {"cached": 1})
        assert (await client.chat(tools=tools_of(), response_id="r"))[1]["error"]["code"] == "response_id_in_use"
        assert await client.announce("r", entry(OTHER)) == (200, {"cached": 1})
        status, body = await asked
        message = joined(chunks_of(body))[0] if stream else json.loads(body)["choices"][0]["message"]
        assert status == 200 and message["content"] == "xy" and len(message["cached_tool_calls"]) == 2
        server.manager.begin(says("x", CALL))
        message, finish, _, _ = await answer(client, stream, tool_wait=0.01)
        assert finish == "tool_calls" and len(message["tool_calls"]) == 1

    run(test())


def shape(chunk):
    return {**chunk, "id": 0, "created": 0}


def test_answer_without_calls_stays_as_it_is(thinking):
    """All members that SGLang gives, in the order in which it gives them."""
    more = {"logprobs": True, "return_cached_tokens_details": True, "return_output_ids_in_sglext": True}
    framed = (("content-type", "application/json"), ("x-sglext-ids-framed", "1"))

    async def both(**fields):
        """The bodies without the cache and with it."""
        bodies = []
        for app, named in ((thinking.plain, {}), (thinking.cached, {"response_id": "r"})):
            thinking.manager.begin(says("Some text.", reasoning="Hm."))
            asked = request(tools=tools_of(), **more, **fields, **named)
            bodies.append((await Client(app).ask("POST", "/v1/chat/completions", asked, headers=framed))[1])
        return bodies

    async def test():
        plain, cached = [shape(json.loads(one)) for one in await both(return_meta_info=True, return_token_ids=True)]
        for one in plain, cached:
            del one["choices"][0]["meta_info"]["id"]
        assert plain == cached and cached["metadata"] and cached["sglext"] and cached["choices"][0]["response_token_ids"]
        for options in (None, {"include_usage": True}, {"continuous_usage_stats": True},
                        {"include_usage": True, "continuous_usage_stats": True}):
            bodies = await both(stream=True, stream_options=options)
            plain, cached = [[shape(one) for one in chunks_of(body.replace(b"event: sglext_ids\n", b""))] for body in bodies]
            assert plain == cached and any(chunk.get("sglext") for chunk in cached), options
            assert [body.count(b"event: sglext_ids\ndata: {") for body in bodies] == [1, 1]

    run(test())


def test_usage_that_the_server_always_gives(tiny, monkeypatch):
    async def test(server, expected):
        server.manager.begin(says("x", CALL), says("y"))
        client = Client(server.cached)
        await client.announce("r", entry(CALL))
        chunks = await client.stream(tools=tools_of(), response_id="r")
        assert ([chunk["usage"]["completion_tokens"] > 1 for chunk in chunks if not chunk["choices"]] == [True]) == expected

    for default in (False, True):
        with serving(tiny, monkeypatch, stream_response_default_include_usage=default) as server:
            run(test(server, default))


def test_tools_in_messages(server):
    """SGLang takes tools in a system message too."""
    async def test():
        server.manager.begin(says("x", CALL), says("y"))
        client = Client(server.cached)
        await client.announce("r", entry(CALL))
        told = [{"role": "system", "content": "", "tools": tools_of()}, *request()["messages"]]
        status, body = await client.chat(tools=None, messages=told, response_id="r")
        assert status == 200 and body["choices"][0]["message"]["content"] == "xy"

    run(test())


@STREAM
def test_required_calls_without_a_parser_for_them(tiny, monkeypatch, stream):
    """With another grammar backend SGLang reads them as a JSON list; the calls end for the same reason."""
    async def test(server):
        written = json.dumps([{"name": CALL[0], "parameters": CALL[1]}])
        server.manager.begin((written, "stop"), (written, "stop"))
        client = Client(server.cached)
        await client.announce("r", entry(CALL))
        message, finish, _, _ = await answer(client, stream, response_id="r", tool_choice="required")
        assert len(message["cached_tool_calls"]) == 7 and finish == "tool_calls" and len(message["tool_calls"]) == 1

    with serving(tiny, monkeypatch, grammar_backend="xgrammar", reasoning_parser=None) as server:
        run(test(server))


@STREAM
@pytest.mark.parametrize("cut", ['"add"', '"arguments": {'], ids=["name", "arguments"])
def test_call_that_is_cut_is_not_answered(server, stream, cut):
    """SGLang streams its beginning, and refuses it in a message."""
    async def test():
        text, _ = says("x", ("add", {"a": 7}))
        server.manager.begin((text[: text.index(cut) + len(cut)], "stop"), says("never"))
        client = Client(server.cached)
        await client.announce("r", {"name": "add", "output": "1"})
        message, finish, _, _ = await answer(client, stream, response_id="r")
        assert "never" not in message["content"] and "cached_tool_calls" not in message
        assert (finish, len(message.get("tool_calls") or ())) == (("tool_calls", 1) if stream else ("stop", 0))

    run(test())


def test_refusals(server):
    """Wrong ids, what one round alone can have, and rounds that SGLang refuses."""
    async def test():
        client, manager = Client(server.cached), server.manager
        manager.begin(says("x", CALL))
        for named in ("chatcmpl-" + "0" * 32, "resp_1", "cmpl-1"):
            status, body = await client.announce(named, entry(CALL))
            assert (status, body["error"]["code"]) == (404, "unknown_response")
        assert (await client.announce("a b", entry(CALL)))[0] == 404
        assert (await client.chat(response_id="chatcmpl-1"))[0] == 400
        for member, value in (("input_ids", [7]), ("bootstrap_room", 3), ("n", 2)):
            status, body = await client.chat(response_id="r", **{member: value})
            assert (status, body["error"]["param"]) == (400, member)
            assert not manager.prompts
        status, body = await client.chat(response_id="r", temperature="warm")
        assert status == 400 and body["object"] == "error"  # SGLang's own
        await client.announce("t", entry(CALL, "word " * 5000))
        for stream in (False, True):
            manager.begin(says("x", CALL))
            message, finish, _, _ = await answer(client, stream, response_id="t")
            assert finish == "tool_calls" and len(message["tool_calls"]) == 1 and "cached_tool_calls" not in message
            assert len(manager.prompts) == 2

    run(test())


def test_keys(tiny, monkeypatch):
    """SGLang's check stands in front of the middleware: what it refuses does not arrive there."""
    async def test(server):
        manager = server.manager
        manager.begin(says("x", CALL), says("y"))
        right, wrong, none = (Client(server.cached, key) for key in ("a", "b", None))
        for client in (wrong, none):
            assert await client.announce("r", entry(CALL)) == (401, {"error": "Unauthorized"})
            assert await client.chat(tools=tools_of(), response_id="r") == (401, {"error": "Unauthorized"})
            assert (await client.ask("GET", "/ready"))[0] == 200
        message, *_ = await answer(right, False, response_id="r")
        assert "cached_tool_calls" not in message and len(manager.prompts) == 1
        manager.begin(says("x", CALL), says("y"))
        assert await right.announce("r", entry(CALL)) == (200, {"cached": 1})
        message, *_ = await answer(right, False, response_id="r")
        assert message["content"] == "xy" and len(message["cached_tool_calls"]) == 1

    with serving(tiny, monkeypatch, key="a") as server:
        run(test(server))


def test_other_urls_and_origins(server):
    async def test():
        server.manager.server_status = ServerStatus.Starting
        for path in ("/ready", "/health", "/v1/models", "/nothing"):
            got = []
            for one in (server.plain, server.cached):
                status, body = await Client(one).ask("GET", path)
                got.append((status, re.sub(rb'"created":\d+', b"", body)))
            assert got[0] == got[1], path
        client = Client(server.cached)
        server.manager.begin(says("x"))
        origin = (("content-type", "application/json"), ("origin", "https://example.org"))
        for path, body, expected in (("/cache-tool-output/r", entry(CALL), 200), ("/cache-tool-output/r", [3], 400),
                                     ("/v1/chat/completions", request(response_id="r"), 200),
                                     ("/v1/chat/completions", request(response_id="a b"), 400)):
            assert (await client.ask("POST", path, body, headers=origin))[0] == expected
            assert client.headers["access-control-allow-origin"] == "https://example.org"

    run(test())


@STREAM
@pytest.mark.parametrize("number", [1, 2], ids=["first round", "second round"])
def test_client_gone(server, stream, number):
    async def test():
        manager, client, gone = server.manager, Client(server.cached), asyncio.Event()
        manager.begin(says("x", CALL), says("y"))
        manager.hold = asyncio.Event()
        await client.announce("r", entry(CALL))
        asked = asyncio.ensure_future(client.post(gone=gone, tools=tools_of(), response_id="r", stream=stream))
        for count in range(1, number + 1):
            while len(manager.prompts) < count:
                await asyncio.sleep(0.001)
            if count < number:
                hold, manager.hold = manager.hold, asyncio.Event()
                hold.set()
        gone.set()
        await asyncio.wait_for(asked, 10)
        assert manager.aborted == manager.rids[-1:] and len(manager.prompts) == number and not manager.rid_to_state
        # The id is free again, and its outputs are there.
        manager.hold = None
        manager.begin(says("x", CALL), says("z"))
        assert (await answer(client, stream, response_id="r"))[0]["content"] == "xz"

    run(test())


def test_server_that_sglang_starts(tiny, monkeypatch, caplog):
    """SGLang's own start puts its check of keys in front; real sockets, and a client that closes one."""
    caplog.set_level("INFO", "sglang.tooldecode")
    monkeypatch.setenv("TOOLDECODE_TOOL_CACHE", "{}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments, stop, manager = Blank(url=lambda: f"http://127.0.0.1:{port}"), [], ScriptedManager(tiny)
    manager.set_server_stop_hook = stop.append
    options = {"tool_call_parser": "tooldecode-hermes", "grammar_backend": "tooldecode", "reasoning_parser": None,
               "tokenizer_worker_num": 1, "host": "127.0.0.1", "port": port, "api_key": "a", "skip_server_warmup": True}

    def begin(method, path, body=None, key="a"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        connection.request(method, path, json.dumps(body), headers)
        return connection

    def ask(*asked, **more):
        answered = begin(*asked, **more).getresponse()
        return answered.status, answered.read()

    def wait_for(condition):
        until = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < until and thread.is_alive()
            time.sleep(0.01)

    def is_up():
        with contextlib.suppress(OSError):
            return ask("GET", "/ready", key="b")[0] == 200
        return False

    with get_context().override_server_args(**options), fresh_app() as app:
        plugins.load_plugins()
        thread = threading.Thread(target=http_server._setup_and_run_http_server, daemon=True, args=(
            arguments, manager, TemplateManager(), None, [{}], None))
        thread.start()
        try:
            wait_for(is_up)
            names = [one.cls.__name__ for one in app.user_middleware]
            assert "POST /cache-tool-output/" in caplog.text
            assert names.index("_ApiKeyASGIMiddleware") < names.index("ToolCache") < names.index("CORSMiddleware")
            assert ask("POST", "/cache-tool-output/r", entry(CALL), key="b")[0] == 401
            assert ask("POST", "/cache-tool-output/r", entry(CALL)) == (200, b'{"cached": 1}')
            for stream in (False, True):
                manager.begin(says("x", CALL), says("y"))
                status, body = ask("POST", "/v1/chat/completions", request(tools=tools_of(), response_id="r", stream=stream))
                message = joined(chunks_of(body))[0] if stream else json.loads(body)["choices"][0]["message"]
                assert status == 200 and message["content"] == "xy" and len(message["cached_tool_calls"]) == 1
                manager.begin(says("x", CALL), says("y"))
                manager.hold = asyncio.Event()
                leaving = begin("POST", "/v1/chat/completions", request(tools=tools_of(), response_id="r", stream=stream))
                wait_for(lambda: manager.prompts)
                leaving.close()
                wait_for(lambda: manager.aborted == manager.rids)
                manager.hold = None
                manager.aborted.clear()
        finally:
            wait_for(lambda: stop)
            stop[0]()
            thread.join(30)
    assert not thread.is_alive()
