"""SGLang's own grammar manager, its batches and its walk of draft trees drive the backend."""
import contextlib
import json
import random
import sys
import time
import types

import pytest

pytest.importorskip("sglang", reason="SKIPPED: SGLang is not installed")
pytest.importorskip("sglang.srt.constrained.grammar_manager",
                    reason="SKIPPED: what SGLang's grammar manager imports is not installed")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from engine_scripts import EBNF, FAILING, JUDGES, OLD_TAG, REGEX, SCHEMA, TAG, allowed, draw  # noqa: E402
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES  # noqa: E402
from sglang.srt.constrained.grammar_manager import GrammarManager  # noqa: E402
from sglang.srt.managers.io_struct import AbortReq  # noqa: E402
from sglang.srt.managers.schedule_batch import FINISH_ABORT, Req  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402
from sglang.srt.runtime_context import get_context, get_parallel  # noqa: E402
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402
from sglang.srt.speculative.spec_utils import generate_token_bitmask, traverse_tree  # noqa: E402

import tooldecode as td  # noqa: E402
from tooldecode._tools import ToolRequest  # noqa: E402

KINDS = {
    "json": {"json_schema": json.dumps(SCHEMA)},
    "regex": {"regex": REGEX},
    "ebnf": {"ebnf": EBNF},
    "structural_tag": {"structural_tag": json.dumps(TAG)},
}


@pytest.fixture(scope="module", autouse=True)
def plugin():
    load_plugins()  # by the entry point
    from tooldecode import sglang as backend

    backend.register()  # again
    assert GRAMMAR_BACKEND_CHOICES.count("tooldecode") == 1
    return backend


class Server:
    """The manager of a scheduler, and requests that go through it."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.size = len(tokenizer)
        self.ends = [tokenizer.eos_token_id]
        group = types.SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
        model = types.SimpleNamespace(vocab_size=self.size, hf_eos_token_id=set(self.ends),
                                      think_end_ids=tokenizer.encode("</think>", add_special_tokens=False))
        self.manager = GrammarManager(types.SimpleNamespace(
            server_args=None, tokenizer=tokenizer, model_config=model, dp_tp_cpu_group=None, dp_tp_group=group,
            pp_group=None))
        self.requests = {}

    def add(self, name: str, asked: dict, reasoning: bool = False) -> Req:
        request = Req(name, "", [7, 8], SamplingParams(max_new_tokens=500, **asked), vocab_size=self.size,
                      eos_token_ids=set(self.ends), require_reasoning=reasoning)
        request.tokenizer = self.tokenizer
        self.requests[name] = request
        self.manager.process_req_with_grammar(request)
        return request

    def wait(self) -> list:
        ready, until = [], time.monotonic() + 60
        while self.manager.has_waiting_grammars():
            assert time.monotonic() < until
            ready += self.manager.get_ready_grammar_requests()
        return ready

    def masks(self, names: list[str]) -> np.ndarray:
        """What a batch of these has behind sampling: [B, W]."""
        batch = types.SimpleNamespace(grammars=[self.requests[name].grammar for name in names], vocab_size=self.size,
                                      temperatures=[1.0] * len(names), device="cpu")
        SamplingBatchInfo.update_regex_vocab_mask(batch)
        logits = torch.zeros(len(names), self.size)
        batch.grammar_mask.apply(logits)
        mask = batch.grammar_mask.vocab_mask.numpy()
        bits = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")[:, : self.size]
        assert ((logits.numpy() == 0) == (bits == 1)).all()
        return mask

    def run(self, names: list[str], dice: random.Random, steps: int = 400) -> dict[str, str]:
        tokens = {name: [] for name in names}
        for _ in range(steps):
            if all(self.requests[name].grammar.is_terminated() for name in names):
                return {name: self.tokenizer.decode(tokens[name][:-1]) for name in names}
            for name, row in zip(names, self.masks(names)):
                grammar = self.requests[name].grammar
                if not grammar.is_terminated():
                    tokens[name].append(draw(row, dice, self.ends))
                    grammar.accept_token(tokens[name][-1])
                else:
                    assert (row == -1).all()  # rows of those that have ended are let be
        raise AssertionError("no end")


@contextlib.contextmanager
def serving(tokenizer, **fields):
    with get_context().override_server_args(grammar_backend="tooldecode", **fields):
        with get_parallel().override(pp_rank=0, pp_size=1, tp_rank=0):
            yield Server(tokenizer)


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return transformers.AutoTokenizer.from_pretrained(tiny)


@pytest.fixture
def server(tokenizer, plugin):
    with serving(tokenizer) as made:
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(server, kind):
    for seed in range(5):
        request = server.add(f"r{seed}", KINDS[kind])
        server.wait()
        assert request.grammar.grammar_stats.is_cache_hit == (seed > 0)
        assert JUDGES[kind](server.run([f"r{seed}"], random.Random(seed))[f"r{seed}"]), seed


def test_any_value_and_old_tags(server):
    server.add("any", {"json_schema": "$$ANY$$"})
    server.add("tag", {"structural_tag": json.dumps(OLD_TAG)})
    server.wait()
    for name, text in (("any", "[1, {\"a\": null}]"), ("tag", 'text <f=b>{"x": [1]}</f> <f=a>{"city": "Rome", "days": 3}</f>')):
        for token in server.tokenizer.encode(text, add_special_tokens=False) + server.ends:
            server.requests[name].grammar.accept_token(token)
        assert server.requests[name].grammar.is_terminated()


def test_bad_grammars_fail_alone(server):
    good = server.add("good", KINDS["json"])
    bad = [{"json_schema": "{"}, {"json_schema": '{"type": "no such type"}'}, {"json_schema": '{"$ref": "#/nowhere"}'},
           {"regex": "(a"}, {"ebnf": 'root ::= "a'}, {"structural_tag": '{"format": {"type": "unheard of"}}'},
           {"structural_tag": "{"}, {"structural_tag": "[]"}, {"regex": "a\x00"}]
    for again in range(2):  # and once more from SGLang's cache
        requests = [server.add(f"bad {again} {i}", asked) for i, asked in enumerate(bad)]
        server.wait()
        for asked, request in zip(bad, requests):
            assert isinstance(request.to_finish, FINISH_ABORT), asked
            assert request.to_finish.message.startswith("Failed to compile"), asked
    assert JUDGES["json"](server.run(["good"], random.Random(1))["good"]) and good.to_finish is None


def test_what_is_given_up_or_misread_of_tools_is_logged_once(server, caplog):
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {
        **{f"s{i}": {"type": "string", "pattern": r"(a)\1"} for i in range(12)}, "t": {"type": "string", "minLenght": 3}}}}]
    for i in range(3):
        if i == 2:  # it is built again where SGLang's cache was emptied
            server.manager.grammar_backend.reset()
        request = server.add(f"r{i}", {"structural_tag": ToolRequest(json.dumps(tools), "hermes", "required", enforcement="relax").text()})
        server.wait()
        assert request.to_finish is None
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    given_up = [text for text in said if "is not enforced at" in text]
    assert len(given_up) == 8 and "'#/0/parameters/properties/s0/pattern'" in given_up[0]
    (misread,) = [text for text in said if "Tool 'f', check " in text]
    assert "'#/0/parameters/properties/t/minLenght'" in misread and '"minLength" is one' in misread


def test_accept_and_rollback(server):
    request = server.add("r", {"regex": "ab?"})
    server.wait()
    grammar = request.grammar
    a, b = (server.tokenizer.encode(text, add_special_tokens=False)[0] for text in "ab")
    assert grammar.current_token is None
    for wrong in (b, 10**7, -1, server.ends[0]):
        with pytest.raises(ValueError):
            grammar.accept_token(wrong)
    grammar.accept_token(a)
    assert grammar.current_token == a and not grammar.is_terminated()
    other = grammar.copy()
    grammar.accept_token(server.ends[0])
    assert grammar.is_terminated()
    grammar.accept_token(b)  # behind the end
    grammar.rollback(2)
    assert not grammar.is_terminated()
    grammar.accept_token(b)
    grammar.rollback(2)
    grammar.accept_token(a)
    other.accept_token(a)  # a copy is another request's
    with pytest.raises(td.Error):
        grammar.rollback(2)


def random_tree(constraint, state, dice, ends, nodes):
    """A draft tree as SGLang stores it: the first child, the next sibling, the token; and the state of each node, None
    where it is not allowed."""
    parents, tokens, states = [-1], [0], [state]
    children = [[]]
    for node in range(1, nodes):
        parent = dice.randrange(node)
        words = np.zeros(constraint.mask_words, np.int32)
        from_state = states[parent]
        is_open = from_state is not None and not constraint.is_finished(from_state)
        if is_open:
            constraint.fill_mask(from_state, words)
        token = draw(words, dice, ends) if is_open and dice.random() < 0.7 else dice.randrange(constraint.vocabulary_size + 50)
        parents.append(parent)
        tokens.append(token)
        states.append(constraint.advance(from_state, token) if is_open else None)
        children[parent].append(node)
        children.append([])
    next_token = torch.tensor([own[0] if own else -1 for own in children])
    siblings = [-1] * nodes
    for own in children:
        for one, other in zip(own, own[1:]):
            siblings[one] = other
    return next_token, torch.tensor(siblings), torch.tensor(tokens), states


def test_draft_trees(server):
    """Every node's mask is that of its path; behind tokens that are not allowed rows are left; the grammar is as before."""
    vocabulary = td.Vocabulary.from_huggingface(server.tokenizer, server.ends, size=server.size)
    oracle = td.json_schema(vocabulary, SCHEMA)
    for seed in range(15):
        dice = random.Random(seed)
        reqs = [server.add(f"{seed} {i}", KINDS["json"]) for i in range(3)]
        server.wait()
        states = [oracle.initial()] * len(reqs)
        for _ in range(dice.randrange(15)):
            for i, req in enumerate(reqs):
                if not req.grammar.is_terminated():
                    words = np.zeros(oracle.mask_words, np.int32)
                    oracle.fill_mask(states[i], words)
                    token = draw(words, dice, [])
                    if token in server.ends:
                        continue
                    req.grammar.accept_token(token)
                    states[i] = oracle.advance(states[i], token)
        trees = [random_tree(oracle, state, dice, server.ends, 16) for state in states]
        bitmask, grammar = generate_token_bitmask(
            reqs, *(torch.stack([tree[k] for tree in trees]) for k in range(3)), vocab_size=server.size)
        assert grammar is reqs[-1].grammar
        for i, tree in enumerate(trees):
            for node, state in enumerate(tree[3]):
                words = np.full(oracle.mask_words, -1, np.int32)
                if state is not None and not oracle.is_finished(state):
                    oracle.fill_mask(state, words)
                assert (bitmask[16 * i + node].numpy() == words).all(), (seed, i, node)
            words = np.zeros(oracle.mask_words, np.int32)
            oracle.fill_mask(states[i], words)
            assert (server.masks([reqs[i].rid])[0] == words).all()


def test_reasoning(tiny, plugin):
    """SGLang's own wrapper holds the constraint back until reasoning ends, in draft trees and over rollbacks too."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens(["<think>", "</think>"])
    with serving(tokenizer, reasoning_parser="qwen3") as server:
        stop = tokenizer.encode("</think>", add_special_tokens=False)[0]
        word, first = (tokenizer.encode(text, add_special_tokens=False)[0] for text in ("so", '{"city": "Rome"'))
        thinking = server.add("thinking", KINDS["json"], reasoning=True)
        plain = server.add("plain", KINDS["json"], reasoning=False)
        server.wait()
        again = server.add("again", KINDS["json"], reasoning=True)  # from the cache
        assert again.grammar.grammar.grammar_stats.is_cache_hit
        row = server.masks(["thinking", "plain", "again"])
        assert (row[0] == -1).all() and (row[2] == -1).all() and word not in allowed(row[1])
        chain = [0, word, stop, first, word]
        bitmask, _ = generate_token_bitmask(
            [thinking], torch.tensor([[1, 2, 3, 4, -1]]), torch.full((1, 5), -1), torch.tensor([chain]), vocab_size=server.size)
        assert (bitmask[:2] == -1).all() and first in allowed(bitmask[2].numpy()) and word not in allowed(bitmask[2].numpy())
        assert word not in allowed(bitmask[3].numpy()) and (bitmask[4] == -1).all()
        for token in (word, stop, first):
            thinking.grammar.accept_token(token)
        with pytest.raises(ValueError):
            thinking.grammar.accept_token(word)
        thinking.grammar.rollback(2)  # into reasoning
        assert (server.masks(["thinking"])[0] == -1).all()
        thinking.grammar.accept_token(stop)
        texts = server.run(["thinking", "plain"], random.Random(7))
        assert all(JUDGES["json"](text) for text in texts.values()) and plain.grammar.is_terminated()
    with serving(tokenizer, reasoning_parser="qwen3", enable_strict_thinking=True) as server:
        server.add("strict", KINDS["json"], reasoning=True)
        server.wait()
        call = tokenizer.encode("<tool_call>", add_special_tokens=False)
        assert not {*call} & set(allowed(server.masks(["strict"])[0]).tolist()) and len(allowed(server.masks(["strict"])[0])) > 8000


def test_aborted(server):
    """By name in the queue, while they compile, and all of them; the others go on."""
    big = {"anyOf": [{"type": "object", "properties": {f"p{i}": SCHEMA}, "required": [f"p{i}"],
                      "additionalProperties": False} for i in range(150)]}
    for i in range(12):
        server.add(f"big {i}", {"json_schema": json.dumps(big | {"title": str(i)})})
    good = server.add("good", KINDS["json"])
    for i in range(0, 12, 2):
        server.manager.abort_requests(AbortReq(rid=f"big {i}"))
    returned = server.wait()
    assert len(returned) == 13
    for i in range(12):
        request = server.requests[f"big {i}"]
        assert (request.to_finish is not None) == (i % 2 == 0), i
    assert JUDGES["json"](server.run(["good"], random.Random(2))["good"]) and good.to_finish is None
    for i in range(5):
        server.add(f"new {i}", {"json_schema": json.dumps(big | {"title": f"new {i}"})})
    server.manager.abort_requests(AbortReq(abort_all=True))
    server.wait()
    assert all(server.requests[f"new {i}"].to_finish is not None for i in range(5))
    server.manager.clear()
    server.add("after", KINDS["json"])
    server.wait()
    assert JUDGES["json"](server.run(["after"], random.Random(3))["after"])


def test_many_at_once(server):
    """200 requests of every kind in one batch, some of which have ended."""
    kinds = [list(KINDS)[i % len(KINDS)] for i in range(200)]
    for i, kind in enumerate(kinds):
        server.add(str(i), KINDS[kind])
    server.wait()
    texts = server.run([str(i) for i in range(200)], random.Random(4))
    for i, kind in enumerate(kinds):
        assert JUDGES[kind](texts[str(i)]), (i, kind)


def test_traverse_leaves_the_grammar(server):
    """A tree of one chain that runs past the end."""
    request = server.add("r", {"regex": "ab"})
    server.wait()
    a, b = (server.tokenizer.encode(text, add_special_tokens=False)[0] for text in "ab")
    chain = torch.tensor([0, a, b, server.ends[0], a])
    mask = request.grammar.allocate_vocab_mask(server.size, 5, "cpu")
    traverse_tree(torch.tensor([1, 2, 3, 4, -1]), torch.full((5,), -1), chain, request.grammar, mask, server.size)
    assert a in allowed(mask[0].numpy()) and b in allowed(mask[1].numpy()) and (mask[3:] == -1).all()
    assert allowed(mask[2].numpy()).tolist() == server.ends
    request.grammar.accept_token(a)


def test_batch_with_a_mask_past_its_limit_has_the_masks_of_the_others(server):
    names = ["good", "bad", "other"]
    for name, asked in zip(names, (KINDS["regex"], {"ebnf": FAILING["at once"]}, KINDS["json"])):
        server.add(name, asked)
    server.wait()
    alone = [server.masks([name])[0].copy() for name in ("good", "other")]
    for _ in range(2):
        rows = server.masks(names)
        assert (rows[0] == alone[0]).all() and (rows[2] == alone[1]).all()
        (token,) = allowed(rows[1])  # SGLang takes an end for the answer's
        assert token not in server.ends and server.tokenizer.decode([token], skip_special_tokens=True) == ""
    bad = server.requests["bad"].grammar
    assert bad.draft(4, lambda drafted: [5]) == []
    for token in (int(token), server.ends[0]):
        with pytest.raises(ValueError, match="failed: building this takes more than"):
            bad.accept_token(token)
    assert not bad.is_terminated() and bad.copy().grammar_stats.is_cache_hit


def test_draft_tree_where_a_mask_passes_its_limit_ends_without_an_error(server):
    bad, good = server.add("bad", {"ebnf": FAILING["behind a text"]}), server.add("good", KINDS["regex"])
    server.wait()
    silent = bad.grammar._backend.silent_tokens[0]
    text = server.tokenizer.encode("abcdefgh", add_special_tokens=False)
    chain = [0, *text, silent, silent, server.ends[0]]
    nodes = [list(range(1, len(chain))) + [-1]] * 2
    for _ in range(2):
        generate_token_bitmask([bad, good], torch.tensor(nodes), torch.full((2, len(chain)), -1), torch.tensor([chain] * 2),
                               vocab_size=server.size)
    with pytest.raises(ValueError, match="failed: building this takes more than"):
        bad.grammar.accept_token(text[0])
    assert JUDGES["regex"](server.run(["good"], random.Random(5))["good"])


def test_token_whose_step_fails_is_the_error_that_sglang_expects(server):
    """Also where the failure comes in a draft tree, of a token."""
    request = server.add("r", KINDS["regex"])
    server.wait()
    answer, fails = request.grammar._answer, types.SimpleNamespace()
    real = answer.constraint

    def advance(state, token):
        raise td.Error("limit_exceeded", "", "too much")
    fails.__dict__.update(advance=advance, fill_mask=real.fill_mask, is_finished=real.is_finished)
    answer._constraint = fails
    a = server.tokenizer.encode("a", add_special_tokens=False)[0]
    mask = request.grammar.allocate_vocab_mask(server.size, 3, "cpu")
    traverse = sys.modules["sglang.srt.speculative.spec_utils"].traverse_tree
    traverse(torch.tensor([1, 2, -1]), torch.full((3,), -1), torch.tensor([0, a, a]), request.grammar, mask, server.size)
    with pytest.raises(ValueError, match="failed: too much"):
        request.grammar.accept_token(a)


def test_tokenizer_with_more_ids_than_logits_gets_masks_of_the_logits(tiny, plugin):
    """As gemma-3-1b-it has: 262145 tokens, 262144 logits."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens([f"<more {i}>" for i in range(40)])
    with serving(tokenizer) as server:
        scheduler = server.manager.scheduler
        server.size = scheduler.model_config.vocab_size = 8192
        server.manager = GrammarManager(scheduler)
        for name, asked in {**KINDS, "any text": {"regex": "(.|\\n)*"}}.items():
            server.add(name, asked)
        server.wait()
        rows = server.masks([*KINDS, "any text"])
        assert rows.shape == (len(KINDS) + 1, 256)
        texts = server.run(list(KINDS), random.Random(8))
        assert all(JUDGES[kind](text) for kind, text in texts.items())


def test_cache_whose_memory_is_full_gives_up_constraints_of_older_memory(server):
    vocabulary = td.Vocabulary.from_huggingface(server.tokenizer, server.ends, size=server.size, memory_bytes=400_000)
    from tooldecode.sglang import ToolDecodeBackend

    backend = ToolDecodeBackend(vocabulary)
    words = np.zeros((1, vocabulary.mask_words), np.int32)
    for i in range(600):
        key = ("regex", f"[a-f]{{2,5}}-{i}x[0-9]{{3}}")
        backend.set_cache(key, backend._init_value_dispatch(key, False).copy())
        for again in (key, ("regex", "[a-f]{2,5}-0x[0-9]{3}")):  # the second is used all the time
            grammar, is_hit = backend.get_cached_or_future_value(again, False)
            if is_hit:
                state = grammar._answer.state
                for byte in b"abc-":
                    if state is not None:
                        grammar._answer.constraint.fill_mask(state, words)
                        state = grammar._answer.constraint.advance_bytes(state, bytes([byte]))
            else:
                backend.set_cache(again, grammar.result())
        del grammar
    backend.executor.shutdown(wait=True)
    assert len(backend.cache) == 600
    kept = [value._text._known.constraint for value in backend.cache.values() if not value._text.is_given_up]
    generations = {constraint.memory_bytes for constraint in kept}
    assert 0 < len(kept) < 600 and len(generations) <= 2 and sum(generations) < 1_200_000, generations
    assert not any("_answer" in vars(value) for value in backend.cache.values())


def test_constraint_that_was_given_up_is_built_again(server, monkeypatch):
    server.add("first", KINDS["regex"])
    server.wait()
    server.masks(["first"])  # it runs
    text = server.requests["first"].grammar._text
    for i in range(2):
        text.give_up()
        request = server.add(f"again {i}", KINDS["regex"])
        assert request.grammar.grammar_stats.is_cache_hit and not server.manager.has_waiting_grammars()
        assert JUDGES["regex"](server.run([f"again {i}"], random.Random(i))[f"again {i}"]) and not text.is_given_up
    text.give_up()

    def fails():
        raise td.Error("limit_exceeded", "", "no room")
    monkeypatch.setattr(text, "_make", fails)
    request = server.add("fails", KINDS["regex"])
    assert allowed(server.masks(["fails"])[0]).tolist() == request.grammar._backend.silent_tokens
    with pytest.raises(ValueError, match="failed: no room"):
        request.grammar.accept_token(5)
    assert JUDGES["regex"](server.run(["first"], random.Random(3))["first"])
