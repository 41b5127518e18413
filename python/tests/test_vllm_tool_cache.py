"""The tool cache in vLLM's own server: its middleware, its check of keys, its chat completions, its template and parser, over an
engine that answers from a script; its extension of workers; and its manager, which judges drafts of cached calls."""
import argparse
import asyncio
import json

import pytest

vllm = pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
pytest.importorskip("vllm.v1.structured_output", reason="SKIPPED: what vLLM's structured outputs import is not installed")

import numpy as np  # noqa: E402
from engine_scripts import allowed, tools_of  # noqa: E402
from fastapi import FastAPI  # noqa: E402
from scripted_chat import Client, joined, request  # noqa: E402
from test_vllm import Engine  # noqa: E402
from test_vllm_parser import HERMES  # noqa: E402
from test_vllm_proposer import DRAFTS, make_config  # noqa: E402
pytest.importorskip("vllm.entrypoints.launchers.launcher", reason="SKIPPED: what vLLM's server imports is not installed")
from vllm.entrypoints.openai.chat_completion.api_router import attach_router as attach_chat  # noqa: E402
from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat  # noqa: E402
from vllm.entrypoints.openai.models.api_router import attach_router as attach_models  # noqa: E402
from vllm.entrypoints.openai.models.protocol import BaseModelPath  # noqa: E402
from vllm.entrypoints.openai.models.serving import OpenAIServingModels  # noqa: E402
from vllm.entrypoints.serve.exception_handling.register import init_exception_handler  # noqa: E402
from vllm.entrypoints.serve.middleware.register import init_entrypoints_middleware  # noqa: E402
from vllm.outputs import CompletionOutput, RequestOutput  # noqa: E402
from vllm.renderers import renderer_from_config  # noqa: E402
from vllm.renderers.online_renderer import OnlineRenderer  # noqa: E402
from vllm.sampling_params import RequestOutputKind  # noqa: E402
from vllm.v1.serial_utils import run_method  # noqa: E402
from vllm.v1.spec_decode.custom_class_proposer import create_custom_proposer  # noqa: E402
from vllm.v1.worker.worker_base import WorkerBase, WorkerWrapperBase  # noqa: E402

from tooldecode._tools import ToolRequest  # noqa: E402

CALL = ("get_weather", {"city": "Oslo", "days": 2})
OTHER = ("add", {"a": 7})
TEXT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>'
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


class FakeWorker(WorkerBase):
    """A worker without a device; vLLM gives its class the extension."""

    def __init__(self, vllm_config, **_):
        self.vllm_config = vllm_config

    def init_device(self):
        rows = argparse.Namespace(req_ids=[])
        self.model_runner = argparse.Namespace(drafter=create_custom_proposer(self.vllm_config), input_batch=rows)


class ScriptedEngine:
    """vLLM's engine client as its server sees it. Answers are texts of a script; calls of its workers go to one worker."""

    errored = False

    def __init__(self, config, *script):
        self.vllm_config, self.model_config, self.script = config, config.model_config, script
        self.renderer, self.input_processor = renderer_from_config(config), None
        self.prompts, self.ids, self.told, self.aborted, self.hold = [], [], [], 0, None
        config.parallel_config.worker_cls = f"{__name__}.FakeWorker"
        config.parallel_config.worker_extension_cls = "tooldecode.vllm_proposer.AnnouncedCalls"
        self.worker = WorkerWrapperBase(rpc_rank=0)
        self.worker.init_worker([{"vllm_config": config}])
        self.worker.init_device()

    def get_tokenizer(self):
        return self.renderer.get_tokenizer()

    def check_admission(self, count):
        assert count == 1

    async def is_tracing_enabled(self):
        return False

    async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        self.told.append(args)
        return [run_method(self.worker, method, args, kwargs or {})]

    async def generate(self, prompt, params, request_id, **_):
        tokenizer, ids = self.get_tokenizer(), prompt["prompt_token_ids"]
        self.prompts.append(tokenizer.decode(ids))
        self.ids.append(request_id)
        text = self.script[min(len(self.ids), len(self.script)) - 1]
        tokens = tokenizer.encode(text, add_special_tokens=False)
        is_delta, finished = params.output_kind == RequestOutputKind.DELTA, False
        try:
            if self.hold is not None:
                await self.hold.wait()
            done = 0
            for end in range(1, len(tokens) + 1) if is_delta else [len(tokens)]:
                whole = tokenizer.decode(tokens[:end], skip_special_tokens=False)
                finished = end == len(tokens)
                output = CompletionOutput(0, whole[done:], tokens[end - 1 : end] if is_delta else tokens, None, None,
                                          finish_reason="stop" if finished else None)
                done = len(whole) if is_delta else 0
                yield RequestOutput(request_id, None, ids, None, [output], finished, num_cached_tokens=len(self.ids) - 1)
        finally:
            self.aborted += not finished


def server(engine, keys=()):
    """The application as `vllm serve --middleware tooldecode.vllm_tool_cache.ToolCache` makes it, as far as chats need it."""
    app = FastAPI()
    attach_models(app)
    attach_chat(app)
    init_exception_handler(app)
    app.state.args = argparse.Namespace(
        allowed_origins=["*"], allow_credentials=False, allowed_methods=["*"], allowed_headers=["*"], api_key=list(keys),
        enable_request_id_headers=True, log_error_stack=False, tool_call_parser="tooldecode-hermes",
        middleware=["tooldecode.vllm_tool_cache.ToolCache"])
    init_entrypoints_middleware(app.state.args, app, ("generate",))
    app.state.engine_client = engine
    app.state.openai_serving_models = models = OpenAIServingModels(engine, [BaseModelPath("m", "m")])
    options = {"chat_template": HERMES, "chat_template_content_format": "string", "enable_auto_tools": True,
               "tool_parser": "tooldecode-hermes", "request_logger": None}
    renderer = OnlineRenderer(engine.model_config, engine.renderer, **options)
    app.state.openai_serving_chat = OpenAIServingChat(
        engine, models, "assistant", online_renderer=renderer, enable_prompt_tokens_details=True, **options)
    return app


def entry(call, output="rain", **more):
    return {"name": call[0], "params": call[1], "output": output, **more}


async def answer(client, stream, **fields):
    if stream:
        message, _, finish, usage = joined(await client.stream(tools=tools_of(), stream_options={"include_usage": True}, **fields))
        return message, finish, usage
    status, body = await client.chat(tools=tools_of(), **fields)
    assert status == 200, body
    return body["choices"][0]["message"], body["choices"][0]["finish_reason"], body["usage"]


@STREAM
def test_rounds(tiny, stream):
    """What all calls have in the cache goes on; the next prompt is the template's of the longer dialogue."""
    async def run():
        engine = ScriptedEngine(make_config(tiny), "I look. " + TEXT, "Rain.")
        client = Client(server(engine))
        assert await client.announce("r", entry(CALL)) == (200, {"cached": 1})
        message, finish, usage = await answer(client, stream, response_id="r")
        cached, = message["cached_tool_calls"]
        assert finish == "stop" and message["content"] == "I look. Rain." and not message.get("tool_calls")
        assert (cached["output"], cached["turn"], json.loads(cached["function"]["arguments"])) == ("rain", 0, CALL[1])
        first, second = engine.prompts
        assert second.startswith(first) and TEXT in second[len(first):] and second[len(first):].count("rain") == 1
        assert len(set(engine.ids)) == 1 and usage["prompt_tokens_details"]["cached_tokens"] == 1
        lengths = [len(engine.get_tokenizer().encode(text, add_special_tokens=False)) for text in engine.script]
        assert usage["completion_tokens"] == sum(lengths)
        # Without an output it ends as without the cache.
        engine.prompts.clear(), engine.ids.clear()
        message, finish, usage = await answer(client, stream, response_id="s")
        assert finish == "tool_calls" and len(message["tool_calls"]) == 1 and len(engine.prompts) == 1
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == CALL[1] and message["content"] == "I look. "

    asyncio.run(asyncio.wait_for(run(), 60))


def test_keys_and_refusals(tiny):
    """The middleware stands in front of vLLM's check of keys, and asks it."""
    async def run():
        engine = ScriptedEngine(make_config(tiny), TEXT)
        app = server(engine, ["a", "b"])
        a, b, wrong = (Client(app, key) for key in ("a", "b", "c"))
        status, body = await wrong.announce("r", entry(CALL))
        assert status == 401 and body["error"]["code"] == "invalid_api_key"
        assert (await wrong.chat(response_id="r"))[0] == (await wrong.chat())[0] == 401
        assert (await wrong.ask("GET", "/v1/models"))[0] == 401 and (await a.ask("GET", "/v1/models"))[0] == 200
        assert (await b.announce("r", entry(CALL)))[0] == 200
        assert (await a.announce("chatcmpl-" + "0" * 32, entry(CALL)))[0] == 404
        assert "cached_tool_calls" not in (await answer(a, False, response_id="r"))[0]
        # What vLLM refuses is its answer: in a first round, and where the dialogue has become too long.
        status, body = await a.chat(response_id="s", temperature=-1)
        assert status == 400 and "temperature" in json.dumps(body)
        assert await a.announce("t", entry(CALL, "word " * 2000)) == (200, {"cached": 1})
        for stream in (False, True):
            engine.ids.clear()
            message, finish, _ = await answer(a, stream, response_id="t")
            assert finish == "tool_calls" and len(message["tool_calls"]) == 1 and "cached_tool_calls" not in message

    asyncio.run(asyncio.wait_for(run(), 60))


@STREAM
def test_client_gone(tiny, stream):
    async def run():
        engine = ScriptedEngine(make_config(tiny), TEXT)
        engine.hold, gone = asyncio.Event(), asyncio.Event()
        client = Client(server(engine))
        asked = asyncio.ensure_future(client.post(gone=gone, tools=tools_of(), response_id="r", stream=stream))
        while not engine.ids:
            await asyncio.sleep(0.001)
        gone.set()
        await asyncio.wait_for(asked, 10)
        while not engine.aborted:
            await asyncio.sleep(0.001)
        assert len(engine.ids) == 1

    asyncio.run(asyncio.wait_for(run(), 60))


@STREAM
def test_headers(tiny, stream):
    """vLLM's own middleware adds them behind this one."""
    async def run():
        engine = ScriptedEngine(make_config(tiny), TEXT, "Rain.")
        client = Client(server(engine))
        own = (("content-type", "application/json"), ("x-request-id", "mine"), ("origin", "https://example.org"))

        async def ask(path, body, expected):
            status, _ = await client.ask("POST", path, body, headers=own)
            assert status == expected and client.headers["access-control-allow-origin"] == "*"
            assert client.headers["x-request-id"] == "mine"

        chat = request(tools=tools_of(), stream=stream)
        await ask("/cache-tool-output/r", entry(CALL), 200)
        await ask("/cache-tool-output/r", [3], 400)
        await ask("/v1/chat/completions", {**chat, "response_id": "r"}, 200)
        await ask("/v1/chat/completions", {**chat, "response_id": "a b"}, 400)
        await ask("/v1/chat/completions", {**chat, "response_id": "r", "temperature": -1}, 400)
        assert len(engine.ids) == 2 and "mine" not in engine.ids[0]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_workers_are_told(tiny):
    """Through vLLM's extension of workers; ids have vLLM's form."""
    async def run():
        engine = ScriptedEngine(make_config(tiny), TEXT, "Rain.")
        client = Client(server(engine))
        await client.announce("r", [entry(CALL), entry(OTHER)])
        await answer(client, True, response_id="r")
        tokens = [engine.get_tokenizer().encode(ToolRequest(json.dumps(tools_of()), "hermes").reader().write([call]),
                                                add_special_tokens=False) for call in (OTHER, CALL)]
        name = engine.ids[0]
        assert engine.told == [(name, tokens), (name, tokens[:1]), (name, [])]
        proposer, rows = engine.worker.worker.model_runner.drafter, engine.worker.worker.model_runner.input_batch
        run_method(engine.worker, "announce_tool_calls", engine.told[0], {})
        rows.req_ids[:] = ["another-12345678", f"{name}-12345678"]
        known = np.zeros((2, 1024), np.int32)
        known[:, : len(tokens[1])] = tokens[1]
        at = len(tokens[1]) - 8
        drafts = proposer.propose([[1], [1]], [at, at], known)
        assert drafts[1] == tokens[1][at : at + DRAFTS] != drafts[0] and proposer.failures == 0

    asyncio.run(asyncio.wait_for(run(), 60))


def test_drafts_by_replay(tiny):
    """A script says what the model samples; vLLM's manager judges the drafts and masks it. What is written stays the same."""
    engine = Engine(make_config(tiny))
    asked = ToolRequest(json.dumps(tools_of()), "hermes", "required")
    writer = asked.reader()

    def tokens_of(call):
        return engine.tokenizer.encode(writer.write([call]), add_special_tokens=False)

    script = [*tokens_of(CALL), engine.ends[0]]

    def replay(calls):
        proposer = create_custom_proposer(engine.config)
        proposer.announce("r", [tokens_of(call) for call in calls], lambda: ["r"])
        request = engine.add("r", {"grammar": asked.text()})
        grammar, steps = engine.ready(request), 0
        while not grammar.is_terminated():
            row = np.array(list(request.all_token_ids), np.int32)[None]
            proposed = proposer.propose([[1]], [row.shape[1]], row)[0] if request.num_output_tokens else []
            drafts = engine.manager.validate_tokens(request, proposed)
            rest, rows = script[request.num_output_tokens :], engine.masks({"r": drafts})["r"]
            right = next((i for i, (draft, token) in enumerate(zip(drafts, rest)) if draft != token), len(drafts))
            new = rest[: right + 1]
            assert all(token in allowed(row) for token, row in zip(new, rows))
            request.append_output_token_ids(new)
            assert engine.manager.accept_tokens(request, new)
            steps += 1
        assert list(request.output_token_ids) == script and proposer.failures == 0
        return steps

    plain = replay([])
    for announced in ([CALL], [OTHER, CALL]):
        assert replay(announced) < plain and replay(announced) <= 2 + -(-len(script) // (DRAFTS + 1))
    assert replay([OTHER]) <= plain + 1  # a wrong call costs nothing but its drafts
    engine.manager.clear_backend()
