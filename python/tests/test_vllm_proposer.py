"""Drafts of history and of forced text: vLLM's proposer loader, manager and scheduler's way of judging drafts."""
import json
import random

import numpy as np
import pytest

vllm = pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
pytest.importorskip("vllm.v1.structured_output", reason="SKIPPED: what vLLM's structured outputs import is not installed")

from engine_scripts import SCHEMA, allowed, tools_of  # noqa: E402
from test_vllm import Engine  # noqa: E402
from vllm.config import DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402
from vllm.v1.spec_decode.custom_class_proposer import create_custom_proposer  # noqa: E402

import tooldecode as td  # noqa: E402
from tooldecode._engine import Answer  # noqa: E402
from tooldecode._tools import ToolRequest  # noqa: E402
from tooldecode.vllm_proposer import ToolDecodeProposer, draft_of_history  # noqa: E402

DRAFTS = 6


def make_config(folder, asynchronous=False, **outputs):
    load_general_plugins()
    model = ModelConfig(model=str(folder), tokenizer=str(folder), dtype="float32")
    return VllmConfig(
        model_config=model, device_config=DeviceConfig(device="cpu"),
        scheduler_config=SchedulerConfig(max_num_seqs=8, max_model_len=1024, is_encoder_decoder=False,
                                         max_num_batched_tokens=1024, async_scheduling=asynchronous),
        structured_outputs_config=StructuredOutputsConfig(backend="tooldecode", **outputs),
        speculative_config=SpeculativeConfig(method="custom_class", model="tooldecode.vllm_proposer.ToolDecodeProposer",
                                             num_speculative_tokens=DRAFTS, target_model_config=model,
                                             target_parallel_config=ParallelConfig()))


@pytest.fixture(scope="module")
def engine(tiny):
    made = Engine(make_config(tiny))
    yield made
    made.manager.clear_backend()


def test_history():
    def draft(tokens, room=4):
        return draft_of_history(np.array(tokens), room)

    assert draft([5, 1, 2, 3, 9, 8, 7, 1, 2, 3]) == [9, 8, 7, 1]  # three agree
    assert draft([5, 1, 2, 3, 9, 8, 7, 1, 2, 3], 2) == [9, 8]
    assert draft([1, 2, 7, 4, 4, 1, 2, 8, 1, 2]) == [8, 1, 2]  # the latest of two
    assert draft([6, 1, 2, 7, 5, 1, 2, 8, 6, 1, 2], 1) == [7]  # the longest
    assert draft([3, 7, 4, 3]) == [7] and draft([1, 2, 3]) == [3] and draft([4]) == [4]
    assert draft([1, 1, 1, 1, 1]) == [1] and draft([3, 4, 3], 0) == []


def test_proposer(engine):
    proposer = create_custom_proposer(engine.config)
    assert isinstance(proposer, ToolDecodeProposer)
    rows = np.zeros((4, 1024), np.int32)
    rows[0, :7] = [1, 2, 3, 4, 1, 2, 3]
    rows[1, :7] = [1, 2, 3, 4, 1, 2, 3]
    rows[2, :1023] = 5
    drafts = proposer.propose([[3], [], [5], [3]], [7, 7, 1023, None], rows)
    assert drafts == [[4, 1, 2, 3], [], [], []] and proposer.failures == 1  # a row that cannot be read fails alone


def test_forced_text(engine):
    """Drafts are all the forced tokens, whatever was guessed; and a guess that agrees goes on behind them."""
    request = ToolRequest(json.dumps(tools_of()), "hermes", "named", "get_weather")
    engine.add("r", {"grammar": request.text()})
    grammar = engine.ready(engine.requests["r"])
    text = request.reader().write([("get_weather", {"city": "Rome", "days": 3})])
    tokens = engine.tokenizer.encode(text, add_special_tokens=False)
    assert grammar.accept_tokens("r", tokens[:1])  # the opening, as a control token or in letters
    oracle = request.constraint(engine.manager.backend.vocabulary)
    forced = oracle.forced_tokens(oracle.advance(oracle.initial(), tokens[0]), b"<tool_call>")
    assert forced == tokens[1 : 1 + len(forced)] and len(forced) > DRAFTS
    for guess in ([engine.ends[0]], tokens[1:], [8]):
        assert engine.manager.validate_tokens(engine.requests["r"], guess) == forced[:DRAFTS]
    # Between what is forced, guesses that agree go on.
    at = 1 + len(forced) - 2
    assert grammar.accept_tokens("r", tokens[1:at])
    drafts = engine.manager.validate_tokens(engine.requests["r"], tokens[at:])
    assert drafts == tokens[at : at + DRAFTS]
    assert engine.manager.validate_tokens(engine.requests["r"], [8]) == tokens[at : at + 2]
    grammar.rollback(at)
    assert grammar.accept_tokens("r", tokens[:1]) and engine.manager.validate_tokens(engine.requests["r"], [8]) == forced[:DRAFTS]


@pytest.mark.parametrize("asked", [{"json": SCHEMA}, {"regex": "(abc|abd)-[0-9]{3}-(yes|yet)"},
                                   {"grammar": ToolRequest(json.dumps(tools_of()), "qwen3-coder", "required").text()}])
def test_drafted_answers(engine, asked):
    """Random answers with drafts: every draft is allowed by the masks, those that were forced are always accepted, and
    the answer conforms."""
    proposer = create_custom_proposer(engine.config)
    dice = random.Random(5)
    steps = tokens = 0
    for _ in range(6):
        request = engine.add("r", asked)
        grammar = engine.ready(request)
        oracle = Answer(engine.ready(request)._answer.constraint, engine.manager.backend.vocabulary)
        while not grammar.is_terminated():
            row = np.array(list(request.all_token_ids), np.int32)[None]
            proposed = proposer.propose([[1]], np.array([row.shape[1]]), row)[0]
            drafts = engine.manager.validate_tokens(request, proposed)
            assert len(drafts) <= DRAFTS and oracle.allowed(drafts) == len(drafts)
            # Without a token of the answer guesses are judged, and nothing is added.
            assert request.num_output_tokens or drafts == proposed[: len(drafts)]
            written = engine.manager.backend.vocabulary.decode(list(request.output_token_ids))
            forced = oracle.constraint.forced_tokens(oracle.state, written) if request.num_output_tokens == 1 else []
            assert drafts[: len(forced)] == forced[:DRAFTS]
            for rows, draft in zip(engine.masks({"r": drafts})["r"], drafts):
                assert draft in allowed(rows)
            new = engine.step({"r": drafts}, dice)["r"]
            assert all(oracle.accept(token) for token in new)
            steps, tokens = steps + 1, tokens + len(new)
        assert oracle.is_terminated
    assert tokens / steps > 1.2  # though samples are random


def test_drafts_that_end_reasoning(thinking):
    """Behind the end of reasoning there is only the room that it leaves, and whether a token may begin an answer is answered."""
    engine = Engine(make_config(thinking, reasoning_parser="qwen3"))
    begin, stop, call = engine.tokenizer.convert_tokens_to_ids(["<think>", "</think>", "<tool_call>"])
    word = engine.tokenizer.encode("so", add_special_tokens=False)[0]
    value = engine.tokenizer.encode("first of all: one", add_special_tokens=False)
    choices = {"choice": ["first of all: one", "first of all: two"]}
    asked = {"a": choices, "b": choices,
             "c": {"grammar": ToolRequest(json.dumps(tools_of()), "hermes", "required").text()}}
    requests = {name: engine.add(name, what, prompt=(7, begin)) for name, what in asked.items()}
    for request in requests.values():
        engine.ready(request)
    forced = engine.ready(requests["a"])._answer.constraint
    assert len(forced.forced_tokens(forced.initial(), b"")) > 1
    for guess in ([word] * (DRAFTS - 2) + [stop, value[0]], [word, stop, value[0]], [word] * (DRAFTS - 1) + [stop], [stop, value[0]]):
        drafts = {name: engine.manager.validate_tokens(request, guess) for name, request in requests.items()}
        assert drafts["a"] == drafts["b"] == guess
        rows = engine.masks(drafts)
        for name in "ab":
            assert all(word in allowed(row) and call not in allowed(row) for row in rows[name][: guess.index(stop) + 1])
            assert word not in allowed(rows[name][guess.index(stop) + 1]) and value[0] in allowed(rows[name][guess.index(stop) + 1])
        assert word in allowed(rows["c"][0]) and call in allowed(rows["c"][0])
    # When reasoning has ended, guesses are judged until the answer has a token; then forced text is drafted.
    request, grammar = requests["a"], engine.ready(requests["a"])
    request.append_output_token_ids([word, stop])
    assert engine.manager.accept_tokens(request, [word, stop])
    assert engine.manager.validate_tokens(request, [word]) == [] and engine.manager.validate_tokens(request, value[:1]) == value[:1]
    request.append_output_token_ids(value[:1])
    assert engine.manager.accept_tokens(request, value[:1])
    drafts = engine.manager.validate_tokens(request, [word])
    assert 0 < len(drafts) <= DRAFTS and grammar._answer.allowed(drafts) == len(drafts)
    engine.manager.clear_backend()


def test_not_drafted(tiny, engine, caplog):
    """Without this proposer, with asynchronous scheduling, and in a vocabulary without a tokenizer."""
    from tooldecode.vllm import ToolDecodeGrammar, _drafts_of
    import types

    assert _drafts_of(engine.config) == DRAFTS
    for changes in ({"async_scheduling": True}, {"pipeline_parallel_size": 2}, {"model": "ngram"}):
        config = types.SimpleNamespace(
            speculative_config=types.SimpleNamespace(model=changes.get("model", engine.config.speculative_config.model),
                                                     num_speculative_tokens=DRAFTS),
            scheduler_config=types.SimpleNamespace(async_scheduling=changes.get("async_scheduling", False)),
            parallel_config=types.SimpleNamespace(pipeline_parallel_size=changes.get("pipeline_parallel_size", 1)))
        assert _drafts_of(config) == 0
    vocabulary = td.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256])
    grammar = ToolDecodeGrammar(Answer(td.regex(vocabulary, "abc"), vocabulary), DRAFTS)
    assert grammar.accept_tokens("r", [97])
    assert grammar.validate_tokens([98, 120]) == [98] and grammar._drafts == 0


def test_unconstrained_requests_keep_their_drafts(engine):
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    request = Request("free", [7, 8, 7], SamplingParams(max_tokens=5), None)
    assert engine.manager.validate_tokens(request, [8, 7]) == [8, 7]
