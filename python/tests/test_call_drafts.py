"""Cached calls as drafts: from the tool cache through vLLM's extension of workers to the proposer, by replay over scripted
logits. vLLM is not needed; test_vllm_tool_cache.py drives its own classes."""
import asyncio
import json
import sys
import types

import pytest

np = pytest.importorskip("numpy")

from engine_scripts import tools_of  # noqa: E402
from scripted_chat import Client, ScriptedApp, says  # noqa: E402

import tooldecode as td  # noqa: E402
from tooldecode._engine import Answer  # noqa: E402
from tooldecode.vllm_proposer import AnnouncedCalls, ToolDecodeProposer, draft_of_calls  # noqa: E402
from tooldecode.vllm_tool_cache import ToolCache  # noqa: E402

DRAFTS = 16
TRIP = {"name": "book_trip", "parameters": {
    "type": "object", "required": ["from", "to", "note"], "additionalProperties": False,
    "properties": {name: {"type": "string"} for name in ("from", "to", "note")}}}
CALL = ("book_trip", {"from": "Bergen", "to": "Reykjavik", "note": "a window seat, please"})
OTHER = ("book_trip", {"from": "Bergen", "to": "Rome", "note": "none"})


def config(drafts=DRAFTS, **parallel):
    proposer = "tooldecode.vllm_proposer.ToolDecodeProposer"
    return types.SimpleNamespace(
        speculative_config=types.SimpleNamespace(num_speculative_tokens=drafts, model=proposer),
        model_config=types.SimpleNamespace(max_model_len=1024), parallel_config=types.SimpleNamespace(**parallel))


class Worker(AnnouncedCalls):
    """A worker as far as the extension sees it."""

    def __init__(self, drafter, rows):
        self.model_runner = types.SimpleNamespace(drafter=drafter, input_batch=types.SimpleNamespace(req_ids=rows))


@pytest.fixture(scope="module")
def vocabulary(tiny):
    return td.Vocabulary.load(str(tiny))


def tokens_of(vocabulary, calls, format="hermes"):
    text = td.tool_calls(vocabulary, json.dumps([TRIP]), format).write(calls)
    return text, vocabulary.encode(text, parse_special=True)


def replay(vocabulary, announced, script, constraint=None, prompt=(7, 8)):
    """What a model writes whose logits a script says, and in how many steps; drafts are judged as the scheduler does it."""
    proposer = ToolDecodeProposer(config())
    Worker(proposer, ["others-0000", "r-1234abcd"]).announce_tool_calls("r", announced)
    answer = Answer(constraint, vocabulary) if constraint is not None else None
    known, written, steps, forced = list(prompt), [], 0, {}
    while written != script:
        assert steps <= len(script)
        rows = np.zeros((2, 1024), np.int32)
        rows[1, : len(known)] = known
        drafts = proposer.propose([[], [1]], [0, len(known)], rows)[1] if written else []
        if answer is not None and written:
            drafts = answer.draft(drafts, DRAFTS, forced)
        steps += 1
        for draft in [*drafts, None]:
            logits = np.zeros(vocabulary.size, np.float32)  # [V]
            logits[script[len(written)]] = 1
            if answer is not None:
                mask = np.zeros(constraint.mask_words, np.int32)
                answer.fill(mask[None], 0)
                td.apply_mask(logits, mask)
            token = int(np.argmax(logits))
            known.append(token)
            written.append(token)
            assert answer is None or answer.accept(token)
            if token != draft or written == script:
                break
    assert proposer.failures == 0
    return steps


def test_draft_of_calls():
    def draft(tokens, calls, room=9):
        return draft_of_calls(np.array(tokens), [np.array(one) for one in calls], room)

    call, other = [5, 6, 7, 8, 9], [5, 6, 3, 4, 9]
    assert draft([1, 5], [call]) == [6, 7, 8, 9] and draft([1, 5, 6], [call], 2) == [7, 8] and draft([5], [call]) == [6, 7, 8, 9]
    assert draft([1, 5, 6, 3], [call, other]) == [4, 9]  # the one that agrees longest
    assert draft([5, 6], [call, other]) == [7, 8, 9] and draft([5, 6], [other, call]) == [3, 4, 9]
    assert draft([*call, 1, 5], [call, other]) == [6, 3, 4, 9]  # the other was made
    assert draft([1, 6, 7], [call]) == [] and draft(call, [call]) == [] and draft([5, 6, 4], [call]) == []
    assert draft([5], [call], 0) == [] and draft([5], []) == []
    assert draft([5, 5, 6, 5], [[5, 5, 6, 5, 5, 9]]) == [5, 9]  # tokens that repeat


def test_draft_of_calls_is_that_of_a_comparison_of_every_place():
    def referee(tokens, calls, room):
        begun = [max((n for n in range(1, len(call)) if n <= len(tokens) and tokens[-n:] == call[:n]), default=0) for call in calls]
        agree = [call for call, n in zip(calls, begun) if n == max(begun)]
        made = [any(tokens[i : i + len(call)] == call for i in range(len(tokens))) for call in agree]
        call = agree[made.index(False) if False in made else 0]
        return call[max(begun) : max(begun) + room] if max(begun) else []

    for seed in range(500):
        random = np.random.default_rng(seed)
        calls = [random.integers(0, 2, random.integers(2, 9)).tolist() for _ in range(3)]
        tokens = random.integers(0, 2, random.integers(1, 30)).tolist()
        made = draft_of_calls(np.array(tokens, np.int32), [np.array(call, np.int32) for call in calls], 5)
        assert made == referee(tokens, calls, 5), f"seed {seed}"


def test_tokens_that_repeat_take_few_steps():
    """Counted in calls of functions: a client may choose its text and its announced calls."""
    text = np.full(30_000, 7, np.int32)
    calls = [np.array([7] * 2000 + [middle] + [7] * 2000 + [9], np.int32) for middle in (8, 5)]
    count = 0

    def counted(_, event, __):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        draft = draft_of_calls(text, calls, 4)
    finally:
        sys.setprofile(None)
    assert draft == [8, 7, 7, 7] and count < 500
    proposer = ToolDecodeProposer(config(drafts=4))
    proposer.announce("r", [[7] * 50_000], lambda: ["r"])
    assert [len(call) for call in proposer._announced["r"]] == [4096]


@pytest.mark.parametrize("choice", ["required", "auto", None], ids=["constrained", "constrained or text", "not constrained"])
def test_replay(vocabulary, choice):
    text, tokens = tokens_of(vocabulary, [CALL])
    assert text.startswith("<tool_call>")
    before = [] if choice == "required" else vocabulary.encode("Well then. ")
    script = [*before, *tokens, vocabulary.end_tokens[0]]
    constraint = td.tool_calls(vocabulary, json.dumps([TRIP]), "hermes", choice=choice) if choice else None
    other = tokens_of(vocabulary, [OTHER])[1]
    plain = replay(vocabulary, [], script, constraint)
    drafted = replay(vocabulary, [tokens], script, constraint)
    # The first token of the call is the model's; then all of it is drafted.
    assert len(tokens) > 2 * DRAFTS and drafted < plain - len(tokens) / 4
    if choice == "required":
        assert drafted <= 1 + -(-len(tokens) // (DRAFTS + 1)) + 1
    assert replay(vocabulary, [other, tokens], script, constraint) <= drafted + 2
    assert drafted < replay(vocabulary, [other], script, constraint) <= plain + 1  # a wrong call costs nothing but its drafts


def test_announced_calls(vocabulary):
    proposer = ToolDecodeProposer(config(drafts=4))
    rows = ["chatcmpl-aa-12345678", "chatcmpl-bb-12345678", "chatcmpl-cc"]
    worker = Worker(proposer, rows)
    table = np.tile(np.array([9, 5] + [0] * 1022, np.int32), (3, 1))

    def drafts():
        return proposer.propose([[5]] * 3, [2, 2, 2], table)

    assert drafts() == [[5]] * 3  # the last token, as without any history
    assert worker.announce_tool_calls("chatcmpl-bb", [[5, 6, 7, 8, 9, 10]]) is True
    assert drafts() == [[5], [6, 7, 8, 9], [5]]
    rows[:2] = rows[1::-1]  # vLLM moves rows
    assert worker.announce_tool_calls("chatcmpl-cc", [[5, 1]]) and drafts() == [[6, 7, 8, 9], [5], [1]]
    assert worker.announce_tool_calls("chatcmpl-bb", [[5, 2]]) and drafts() == [[2], [5], [1]]
    worker.announce_tool_calls("chatcmpl-bb", [])
    worker.announce_tool_calls("chatcmpl-cc", [[5]])  # which has no rest
    assert drafts() == [[5]] * 3
    for number in range(3000):
        worker.announce_tool_calls(f"chatcmpl-{number}", [[1, 2]])
    assert len(proposer._announced) == 1024 and proposer.failures == 0
    assert Worker(None, rows).announce_tool_calls("r", [[1, 2]]) is False


class Engine:
    """vLLM's engine as far as the tool cache sees it, with one worker."""

    def __init__(self, vocabulary, extension="tooldecode.vllm_proposer.AnnouncedCalls"):
        self.vllm_config = config(worker_extension_cls=extension)
        self.proposer = ToolDecodeProposer(self.vllm_config)
        self.worker, self.told, self._vocabulary = Worker(self.proposer, []), [], vocabulary

    def get_tokenizer(self):
        return Tokenizer(self._vocabulary)

    async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        json.dumps(args)  # it goes to another process
        self.told.append(args)
        return [getattr(self.worker, method)(*args)]


class Tokenizer:
    def __init__(self, vocabulary):
        self._vocabulary = vocabulary

    def __deepcopy__(self, memo):
        return self

    def encode(self, text, add_special_tokens):
        assert add_special_tokens is False
        return self._vocabulary.encode(text, parse_special=True)


def test_from_the_cache_to_the_proposer(vocabulary):
    """Calls are told while their outputs are there and they were not made; others are not, and nothing is told without any."""
    async def run():
        hold = asyncio.Event()
        made = {"id": "c", "type": "function", "function": {"name": "book_trip", "arguments": json.dumps(CALL[1])}}
        app = ScriptedApp(says("x", made, hold=hold), says("y"))
        engine = Engine(vocabulary)
        state = types.SimpleNamespace(engine_client=engine, args=types.SimpleNamespace(tool_call_parser="tooldecode-hermes"))
        client = Client(ToolCache(app), state=types.SimpleNamespace(state=state))
        tools = [{"type": "function", "function": TRIP}, *tools_of()]

        def entry(call):
            return {"name": call[0], "params": call[1], "output": "done"}

        await client.announce("r", [entry(OTHER), {"name": "add", "output": 1}])
        asked = asyncio.ensure_future(client.stream(response_id="r", tools=tools))
        await app.asked.wait()
        name = "chatcmpl-" + app.headers[0]["x-request-id"]
        call, other = tokens_of(vocabulary, [CALL])[1], tokens_of(vocabulary, [OTHER])[1]
        assert engine.told == [(name, [other])]
        await client.announce("r", [entry(CALL)])
        assert engine.told[1:] == [(name, [call, other])]  # the latest first
        engine.worker.model_runner.input_batch.req_ids = [name + "-00000000"]
        known = [7, 8, *call[:12]]
        row = np.array([known + [0] * 1000], np.int32)
        assert engine.proposer.propose([[1]], [len(known)], row) == [call[12 : 12 + DRAFTS]]
        hold.set()
        await asked
        assert engine.told[2:] == [(name, [other]), (name, [])] and not engine.proposer._announced
        # Without calls nothing is told.
        engine.told.clear()
        await client.chat(response_id="s", tools=tools)
        await client.chat(tools=tools)
        assert engine.told == []
        for extension, parser in (("", "tooldecode-hermes"), ("another.Extension", "tooldecode-hermes")):
            silent = Engine(vocabulary, extension)
            state = types.SimpleNamespace(engine_client=silent, args=types.SimpleNamespace(tool_call_parser=parser))
            client = Client(ToolCache(ScriptedApp(says("x"))), state=types.SimpleNamespace(state=state))
            await client.announce("r", [entry(CALL)])
            assert (await client.chat(response_id="r", tools=tools))[0] == 200 and silent.told == []

    asyncio.run(asyncio.wait_for(run(), 30))


def test_failures_change_no_answer(vocabulary):
    async def run():
        engine = Engine(vocabulary)

        async def broken(*_, **__):
            raise RuntimeError("no worker")

        engine.collective_rpc = broken
        state = types.SimpleNamespace(engine_client=engine, args=types.SimpleNamespace(tool_call_parser="tooldecode-hermes"))
        cache = ToolCache(ScriptedApp(says("x")))
        client = Client(cache, state=types.SimpleNamespace(state=state))
        for number in range(2):
            await client.announce(f"r{number}", {"name": "add", "params": {"a": 1}, "output": "1"})
            status, body = await client.chat(response_id=f"r{number}", tools=tools_of())
            assert status == 200 and body["choices"][0]["message"]["content"] == "x"
        assert cache.drafts.failures == 4 and cache.drafts.is_on  # each told once, and ended once

    asyncio.run(asyncio.wait_for(run(), 30))
