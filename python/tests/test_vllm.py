"""vLLM's own manager of structured outputs drives the backend, with drafts as its schedulers hand them over."""
import json
import logging
import random
import sys
import time
import types

import pytest

vllm = pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
pytest.importorskip("vllm.v1.structured_output", reason="SKIPPED: what vLLM's structured outputs import is not installed")

import numpy as np  # noqa: E402
import transformers  # noqa: E402
from engine_scripts import CHOICES, EBNF, FAILING, JUDGES, OLD_TAG, REGEX, SCHEMA, TAG, allowed, draw  # noqa: E402
from vllm.config import DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.request import Request  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402

import tooldecode as td  # noqa: E402

DRAFTS = 4
KINDS = {
    "json": {"json": SCHEMA},
    "regex": {"regex": REGEX},
    "ebnf": {"grammar": EBNF},
    "choice": {"choice": CHOICES},
    "structural_tag": {"structural_tag": json.dumps(TAG)},
}


@pytest.fixture(scope="module", autouse=True)
def plugin():
    load_general_plugins()  # by the entry point
    from tooldecode import vllm as backend

    backend.register()  # again, as in processes that load it twice
    return backend


def make_config(folder, drafts=0, **outputs) -> VllmConfig:
    model = ModelConfig(model=str(folder), tokenizer=str(folder), dtype="float32")
    config = VllmConfig(
        model_config=model, device_config=DeviceConfig(device="cpu"),
        scheduler_config=SchedulerConfig(max_num_seqs=256, max_model_len=1024, is_encoder_decoder=False,
                                         max_num_batched_tokens=1024),
        structured_outputs_config=StructuredOutputsConfig(**{"backend": "tooldecode"} | outputs),
        **({"speculative_config": SpeculativeConfig(method="ngram", num_speculative_tokens=drafts, prompt_lookup_max=3,
                                                    target_model_config=model, target_parallel_config=ParallelConfig())} if drafts else {}))
    assert config.num_speculative_tokens == drafts
    return config


class Engine:
    """The manager, and requests that go through it as through vLLM's front end and its scheduler."""

    def __init__(self, config: VllmConfig):
        self.config = config
        self.manager = StructuredOutputManager(config)
        self.tokenizer = self.manager.tokenizer
        self.ends = [self.tokenizer.eos_token_id]
        self.requests = {}

    def add(self, name: str, asked: dict, prompt=(7, 8), **sampling) -> Request:
        params = SamplingParams(max_tokens=500, structured_outputs=StructuredOutputsParams(**asked), **sampling)
        params.update_from_generation_config(self.config.model_config.try_get_generation_config(), self.ends[0])
        params.verify(self.config.model_config, self.config.speculative_config, self.config.structured_outputs_config,
                      self.tokenizer)
        request = Request(name, list(prompt), params, None)
        self.manager.grammar_init(request)
        self.requests[name] = request
        return request

    def ready(self, request: Request):
        until = time.monotonic() + 60
        while not request.structured_output_request.is_grammar_ready:
            assert time.monotonic() < until
            time.sleep(0.001)
        return request.structured_output_request.grammar

    def masks(self, drafts: dict) -> dict:
        """The rows [1 + drafts, W] of each request."""
        names = [name for name in self.requests if name in drafts]
        bitmask = self.manager.grammar_bitmask(self.requests, names, {name: d for name, d in drafts.items() if d})
        stride = 1 + self.config.num_speculative_tokens
        return {name: bitmask[i * stride : (i + 1) * stride].copy() for i, name in enumerate(names)}

    def step(self, drafts: dict, dice: random.Random) -> dict:
        """One step of the model: samples under the masks, keeps drafts that are what it has sampled."""
        new = {}
        for name, rows in self.masks(drafts).items():
            tokens = []
            for i, draft in enumerate([*drafts[name], None]):
                tokens.append(draw(rows[i], dice, self.ends) if draft is None or dice.random() < 0.5 or
                              draft not in allowed(rows[i]) else draft)
                if tokens[-1] != draft or draft in self.ends:
                    break
            self.requests[name].append_output_token_ids(tokens)
            assert self.manager.accept_tokens(self.requests[name], tokens)
            new[name] = tokens
        return new

    def text(self, name: str) -> str:
        tokens = list(self.requests[name].output_token_ids)
        assert tokens[-1] in self.ends
        return self.tokenizer.decode(tokens[:-1], skip_special_tokens=False)


@pytest.fixture(scope="module")
def plain(tiny, plugin):
    engine = Engine(make_config(tiny))
    yield engine
    engine.manager.clear_backend()
    assert engine.manager.backend is None


@pytest.fixture(scope="module")
def speculative(tiny, plugin):
    engine = Engine(make_config(tiny, DRAFTS))
    yield engine
    engine.manager.clear_backend()


@pytest.fixture(autouse=True)
def no_requests(request):
    yield
    for name in ("plain", "speculative"):
        if name in request.fixturenames:
            request.getfixturevalue(name).requests.clear()


def run(engine: Engine, name: str, dice: random.Random, drafter=None) -> str:
    grammar = engine.ready(engine.requests[name])
    while not grammar.is_terminated():
        assert engine.requests[name].num_output_tokens < 400
        engine.step({name: drafter(grammar) if drafter else []}, dice)
    return engine.text(name)


def test_name(tiny):
    assert make_config(tiny).structured_outputs_config.backend == "tooldecode"
    assert VllmConfig(device_config=DeviceConfig(device="cpu"), structured_outputs_config={"backend": "tooldecode"})
    with pytest.raises(ValueError, match="'tooldecode'"):
        StructuredOutputsConfig(backend="tooldecodes")


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(plain, kind):
    for seed in range(5):
        plain.add(kind, KINDS[kind])
        assert JUDGES[kind](run(plain, kind, random.Random(seed))), (kind, seed)


def test_json_object_and_others(plain):
    plain.add("object", {"json_object": True})
    grammar = plain.ready(plain.requests["object"])
    assert grammar.accept_tokens("object", plain.tokenizer.encode('{"any": [1, null]}', add_special_tokens=False))
    plain.add("old tag", {"structural_tag": json.dumps(OLD_TAG | {"structures": OLD_TAG["structures"][:1]})})
    grammar = plain.ready(plain.requests["old tag"])
    assert grammar.accept_tokens("old tag", plain.tokenizer.encode('some text <f=a>{"city": "', add_special_tokens=False))
    assert not grammar.accept_tokens("old tag", plain.tokenizer.encode("Berlin", add_special_tokens=False))
    if not hasattr(td, "lark"):
        return
    plain.add("lark", {"grammar": 'start: "a" WORD\nWORD: /[b-d]+/'})
    grammar = plain.ready(plain.requests["lark"])
    assert grammar.accept_tokens("lark", plain.tokenizer.encode("abcd", add_special_tokens=False))


def masks_by_hand(engine: Engine, request: Request, drafts: list[int]) -> list:
    """What each row must allow, by a constraint that has nothing to do with the manager; None where no more is said:
    behind a draft that is not allowed, and behind an end."""
    constraint = td.json_schema(engine.manager.backend.vocabulary, SCHEMA)
    state = constraint.advance_tokens(constraint.initial(), list(request.output_token_ids))
    rows = []
    for draft in [*drafts, None]:
        words = np.zeros(constraint.mask_words, np.int32)
        constraint.fill_mask(state, words)
        rows.append(words)
        if draft is None or (state := constraint.advance(state, draft)) is None or constraint.is_finished(state):
            break
    return rows


@pytest.mark.parametrize("validated", [True, False], ids=["validated drafts", "raw drafts"])
def test_drafts(speculative, validated):
    """Right drafts, wrong ones from the first or in the middle, behind the end, and padding."""
    dice = random.Random(2)
    for seed in range(8):
        request = speculative.add("r", {"json": SCHEMA})
        grammar = speculative.ready(request)
        oracle = td.json_schema(speculative.manager.backend.vocabulary, SCHEMA)
        while not grammar.is_terminated():
            state = oracle.advance_tokens(oracle.initial(), list(request.output_token_ids))
            drafts = []
            for _ in range(dice.randrange(DRAFTS + 1)):
                words = np.zeros(oracle.mask_words, np.int32)
                oracle.fill_mask(state, words)
                token = draw(words, dice, speculative.ends) if dice.random() < 0.8 else dice.randrange(8192)
                drafts.append(token)
                after = oracle.advance(state, token)
                state = after if after is not None else state
            if validated:
                kept = speculative.manager.validate_tokens(request, drafts)
                assert kept == drafts[: len(kept)]
                padded = kept + [-1] * (len(drafts) - len(kept))
            else:
                kept = padded = drafts
            rows = speculative.masks({"r": padded})["r"]
            expected = masks_by_hand(speculative, request, kept)
            assert len(kept) < len(expected) or not validated or kept[-1] in speculative.ends
            for row, words in zip(rows, expected):
                assert (row == words).all(), seed
            if validated and len(kept) < len(drafts) and len(expected) == len(kept) + 1:
                assert drafts[len(kept)] not in allowed(rows[len(kept)])  # or it would have been kept
            if not validated:  # vLLM repeats the mask of where a draft was rejected
                for row in rows[len(expected) : len(drafts) + 1]:
                    assert (row == expected[-1]).all() or drafts[len(expected) - 1] in speculative.ends
            tokens = speculative.step({"r": kept}, dice)["r"]
            assert oracle.advance_tokens(oracle.initial(), list(request.output_token_ids)) is not None, tokens
        assert JUDGES["json"](speculative.text("r"))


def test_rollback_and_past_the_end(speculative):
    request = speculative.add("r", {"regex": "ab?"})
    grammar = speculative.ready(request)
    a, b, end = *speculative.tokenizer.encode("ab", add_special_tokens=False)[:1], None, speculative.ends[0]
    a, b = (speculative.tokenizer.encode(text, add_special_tokens=False)[0] for text in "ab")
    assert grammar.validate_tokens([a, end, end]) == [a, end] and grammar.validate_tokens([b, a]) == []
    assert grammar.validate_tokens([a, -1, b]) == [a] and grammar.validate_tokens([a, 10**7]) == [a]
    assert grammar.accept_tokens("r", [a, end]) and grammar.is_terminated()
    assert grammar.validate_tokens([end]) == []
    rows = speculative.masks({"r": []})["r"]
    assert (rows[0] == -1).all()  # vLLM lets pass what is behind the end
    assert grammar.accept_tokens("r", [b, b])
    grammar.rollback(3)
    assert not grammar.is_terminated() and grammar.validate_tokens([b, end]) == [b, end]
    assert not grammar.accept_tokens("r", [b, b]) and grammar.validate_tokens([b, end]) == [b, end]  # none of them
    grammar.reset()
    assert grammar.validate_tokens([a, b, end]) == [a, b, end] and grammar.validate_tokens([b]) == []
    with pytest.raises(td.Error):
        grammar.rollback(1)


def test_reasoning(thinking, plugin):
    """The constraint begins where reasoning ends, in the midst of a draft too."""
    engine = Engine(make_config(thinking, DRAFTS, reasoning_parser="qwen3"))
    begin, stop = engine.tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    words = engine.tokenizer.encode("so it is", add_special_tokens=False)
    value = engine.tokenizer.encode('{"city": "Rome", "days": 3}', add_special_tokens=False)
    request = engine.add("r", {"json": SCHEMA}, prompt=(7, begin))
    engine.ready(request)
    call = engine.tokenizer.convert_tokens_to_ids("<tool_call>")  # ends reasoning too, where the constraint allows it

    def is_free(row):
        return set(range(len(engine.tokenizer))) - set(allowed(row).tolist()) == {call}

    assert all(map(is_free, engine.masks({"r": words[:1]})["r"][:2]))
    assert engine.manager.validate_tokens(request, [words[0], stop, words[0]]) == [words[0], stop]
    drafts = [words[0], stop, value[0]]
    assert engine.manager.validate_tokens(request, drafts) == drafts
    rows = engine.masks({"r": drafts})["r"]
    assert all(map(is_free, rows[:2])) and value[0] in allowed(rows[2]) and words[0] not in allowed(rows[2])
    assert value[1] in allowed(rows[3]) and value[0] not in allowed(rows[3])
    rows = engine.masks({"r": [words[0], stop, words[0]]})["r"]  # rejected behind the end of reasoning
    assert (rows[3] == rows[2]).all() and words[0] not in allowed(rows[3])
    request.append_output_token_ids([*words, stop])
    assert engine.manager.accept_tokens(request, [*words, stop])
    rows = engine.masks({"r": value[:2]})["r"]
    assert value[0] in allowed(rows[0]) and value[1] in allowed(rows[1]) and words[0] not in allowed(rows[0])
    dice = random.Random(3)
    grammar = request.structured_output_request.grammar
    while not grammar.is_terminated():
        engine.step({"r": []}, dice)
    text = engine.text("r")
    assert JUDGES["json"](text.split("</think>")[1].strip()), text
    engine.manager.clear_backend()


def test_stop_tokens(plain):
    """Ends of a request's own: allowed where the answer may end, and nowhere inside it."""
    e = plain.tokenizer.encode("e", add_special_tokens=False)[0]
    request = plain.add("r", {"choice": ["one", "other"]}, stop_token_ids=[e])
    grammar = plain.ready(request)
    tokens = plain.tokenizer.encode("oth", add_special_tokens=False)
    assert grammar.accept_tokens("r", tokens)
    assert e not in allowed(plain.masks({"r": []})["r"][0]) and grammar.validate_tokens([e]) == []
    grammar.reset()
    request = plain.add("s", {"regex": "x+"}, stop_token_ids=[e])
    grammar = plain.ready(request)
    x = plain.tokenizer.encode("x", add_special_tokens=False)[0]
    assert e not in allowed(plain.masks({"s": []})["s"][0])
    assert grammar.accept_tokens("s", [x])
    assert {e, *plain.ends} <= set(allowed(plain.masks({"s": []})["s"][0]).tolist())
    assert grammar.validate_tokens([x, e, x]) == [x, e] and grammar.accept_tokens("s", [x, e]) and grammar.is_terminated()


def test_bad_requests_fail_alone(plain):
    """Refused by the front end, or as the error of one request, while others go on."""
    for asked in ({"choice": []}, {"json": " "}, {"grammar": ""}, {"structural_tag": " "}, {"json_object": False}):
        with pytest.raises(VLLMValidationError):
            plain.add("bad", asked)
    deep = json.loads('{"items":' * 900 + "{}" + "}" * 900)
    with pytest.raises(VLLMValidationError, match="nested"):
        plain.add("bad", {"json": deep})
    bad = [{"json": "{"}, {"json": {"type": "no such type"}}, {"json": {"$ref": "#/nowhere"}}, {"regex": "(a"},
           {"regex": "(a+)+\\1"}, {"grammar": 'root ::= "a'}, {"grammar": "start: nothing_known"},
           {"structural_tag": '{"format": {"type": "unheard of"}}'}, {"structural_tag": "[]"}]
    good = plain.add("good", {"json": SCHEMA})
    for i, asked in enumerate(bad):
        request = plain.add(f"bad {i}", asked)
        plain.ready(good)
        error = plain.ready(request)
        assert isinstance(error, td.Error) and error.code and str(error), asked
        del plain.requests[f"bad {i}"]
    assert JUDGES["json"](run(plain, "good", random.Random(4)))
    request = plain.add("outlines", {"json": SCHEMA})
    request.sampling_params.structured_outputs._backend = "outlines"
    with pytest.raises(VLLMValidationError, match="one backend"):
        plain.manager.grammar_init(request)


def test_aborted(plain):
    """Requests that go while they compile or between steps leave the others as they are."""
    dice = random.Random(5)
    big = {"anyOf": [{"type": "object", "properties": {f"p{i}": SCHEMA}, "required": [f"p{i}"],
                      "additionalProperties": False} for i in range(150)]}
    waiting = [plain.add(f"wait {i}", {"json": big | {"title": str(i)}}) for i in range(20)]
    for request in waiting[::2]:
        del plain.requests[request.request_id]
    for i in range(6):
        plain.ready(plain.add(f"run {i}", {"json": SCHEMA}))
    for i in range(4):
        plain.step({name: [] for name in plain.requests if name.startswith("run")}, dice)
        del plain.requests[f"run {i}"]
    for name in ("run 4", "run 5"):
        assert JUDGES["json"](run(plain, name, dice))
    for request in waiting:
        assert not isinstance(plain.ready(request), Exception)


@pytest.mark.parametrize("drafts", [0, DRAFTS])
def test_many_at_once(plain, speculative, drafts):
    """200 requests of every kind; without drafts vLLM fills their masks in threads."""
    engine = speculative if drafts else plain
    dice = random.Random(6)
    kinds = [list(KINDS)[i % len(KINDS)] for i in range(200)]
    for i, kind in enumerate(kinds):
        engine.add(str(i), KINDS[kind])
    for request in engine.requests.values():
        engine.ready(request)
    steps = 0
    while running := [name for name, request in engine.requests.items()
                      if not request.structured_output_request.grammar.is_terminated()]:
        proposals = {}
        for name in running:
            raw = [dice.randrange(8192) for _ in range(drafts)]
            proposals[name] = engine.manager.validate_tokens(engine.requests[name], raw)
        engine.step(proposals, dice)
        steps += 1
        assert steps < 400
    for i, kind in enumerate(kinds):
        assert JUDGES[kind](engine.text(str(i))), (i, kind)


def test_beam_search(tiny, plain):
    """Offline beam search makes the backend by itself."""
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin

    llm = types.SimpleNamespace(llm_engine=types.SimpleNamespace(vllm_config=plain.config), model_config=plain.config.model_config)
    backend, key, bitmask = BeamSearchOfflineMixin._init_beam_search_structured_output(
        llm, StructuredOutputsParams(json=SCHEMA), plain.tokenizer)
    grammar = backend.compile_grammar(*key)
    assert grammar.accept_tokens("beam", plain.tokenizer.encode('{"city": "', add_special_tokens=False))
    grammar.fill_bitmask(bitmask, 0)
    assert 0 < len(allowed(bitmask.numpy()[0])) < 100


@pytest.mark.parametrize("drafts", [0, DRAFTS])
def test_mask_past_its_limit_refuses_all_tokens_of_its_request_alone(plain, speculative, drafts):
    engine = speculative if drafts else plain
    good, bad = engine.add("good", {"regex": REGEX}), engine.add("bad", {"grammar": FAILING["at once"]})
    grammar = engine.ready(bad)
    engine.ready(good)
    tokens = engine.tokenizer.encode("ab", add_special_tokens=False)
    alone = engine.masks({"good": tokens[:drafts]})["good"]
    for _ in range(2):
        rows = engine.masks({"good": tokens[:drafts], "bad": tokens[:drafts]})
        assert (rows["good"] == alone).all()
        assert all(allowed(row).tolist() == engine.ends for row in rows["bad"][: 1 + len(tokens[:drafts])])
    assert engine.manager.validate_tokens(bad, tokens) == [] and not grammar.is_terminated()
    for token in (*tokens, *engine.ends):
        bad.append_output_token_ids([token])
        assert not engine.manager.accept_tokens(bad, [token])
    del engine.requests["bad"]
    assert JUDGES["regex"](run(engine, "good", random.Random(7)))


def test_token_whose_step_fails_is_refused(plain):
    grammar = plain.ready(plain.add("r", {"regex": REGEX}))
    answer = grammar._answer
    state, real = answer.state, answer.constraint

    def advance(*_):
        raise td.Error("limit_exceeded", "", "too much")
    answer._constraint = types.SimpleNamespace(advance=advance, is_finished=real.is_finished, validate=advance)
    a = plain.tokenizer.encode("a", add_special_tokens=False)[0]
    assert not grammar.accept_tokens("r", [a, a]) and answer.state == state and not grammar.accept_tokens("r", [a])
    grammar.reset()
    assert grammar.validate_tokens([a]) == [] and str(answer.failure) == "too much"


def test_beam_search_with_a_mask_past_its_limit_is_an_error(plain):
    """It is the caller's own, and an end would be taken for the answer's."""
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin

    llm = types.SimpleNamespace(llm_engine=types.SimpleNamespace(vllm_config=plain.config), model_config=plain.config.model_config)
    backend, key, bitmask = BeamSearchOfflineMixin._init_beam_search_structured_output(
        llm, StructuredOutputsParams(grammar=FAILING["at once"]), plain.tokenizer)
    with pytest.raises(td.Error, match="takes more than"):
        backend.compile_grammar(*key).fill_bitmask(bitmask, 0)


def test_tokenizer_with_more_ids_than_logits_gets_masks_of_the_logits(tiny):
    """As gemma-3-1b-it has: 262145 tokens, 262144 logits."""
    from tooldecode.vllm import ToolDecodeBackend
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    config = make_config(tiny)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens([f"<more {i}>" for i in range(40)])
    for size in (8192, 8200):
        backend = ToolDecodeBackend(config, tokenizer, size)
        mask = backend.allocate_token_bitmask(2)
        assert backend.vocabulary.size == 8232 and mask.shape == (2, (size + 31) // 32)
        e = tokenizer.encode("e", add_special_tokens=False)[0]
        ends = {tokenizer.eos_token_id, e}
        for kind, text in ((StructuredOutputOptions.JSON, json.dumps(SCHEMA)), (StructuredOutputOptions.REGEX, "(<more 3>)?x+"),
                           (StructuredOutputOptions.REGEX, "(.|\n)*")):
            grammar, constraint = backend.compile_grammar(kind, text, ends), list(backend._known._known.values())[-1].constraint
            words = np.zeros(backend.vocabulary.mask_words, np.int32)
            constraint.fill_mask(constraint.initial(), words)
            grammar.fill_bitmask(mask, 1)
            may_end = constraint.is_accepting(constraint.initial())
            expected = {token for token in allowed(words).tolist() if token < size and token not in ends} | (ends if may_end else set())
            assert set(allowed(mask.numpy()[1]).tolist()) == expected and grammar._answer.failure is None
        drafted = backend.compile_grammar(StructuredOutputOptions.REGEX, "<more 3>x")._answer.draft([], 8, {})
        assert all(token < size for token in drafted)


def test_cache_whose_memory_is_full_gives_up_constraints_of_older_memory(tiny):
    from tooldecode.vllm import ToolDecodeBackend
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    config = make_config(tiny)
    config.additional_config = {"tooldecode": {"memory_bytes": 400_000, "prepare": False}}
    backend = ToolDecodeBackend(config, StructuredOutputManager(config).tokenizer, 8192)
    mask = backend.allocate_token_bitmask(1)
    for i in range(600):
        for text in (f"[a-f]{{2,5}}-{i}x[0-9]{{3}}", "[a-f]{2,5}-0x[0-9]{3}"):  # the second is used all the time
            grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, text)
            for token in backend.vocabulary.encode("abc-"):
                grammar.fill_bitmask(mask, 0)
                grammar.accept_tokens("r", [token])
        del grammar
    generations = {known.constraint.memory_bytes for known in backend._known._known.values()}
    assert len(generations) <= 2 and sum(generations) < 1_200_000, generations


def test_options(tiny):
    from tooldecode.vllm import ToolDecodeBackend

    config = make_config(tiny)
    tokenizer = StructuredOutputManager(config).tokenizer
    config.additional_config = {"tooldecode": {"whitespace": 0}}
    backend = ToolDecodeBackend(config, tokenizer, 8192)
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    grammar = backend.compile_grammar(StructuredOutputOptions.JSON, json.dumps(SCHEMA))
    assert not grammar.accept_tokens("r", tokenizer.encode('{ "city', add_special_tokens=False))
    assert grammar.accept_tokens("r", tokenizer.encode('{"city": "Rome", ', add_special_tokens=False))
    config.additional_config = {"tooldecode": {"white_space": 0}}
    with pytest.raises(ValueError, match="white_space"):
        ToolDecodeBackend(config, tokenizer, 8192)


@pytest.mark.parametrize("arguments, level", [
    ([], "DEBUG"), (["serve", "m"], "DEBUG"), (["serve", "m", "--structured-outputs-config.backend", "tooldecode"], "ERROR"),
    (["serve", "m", "--tool-call-parser=tooldecode-hermes"], "ERROR")])
def test_other_versions(plugin, monkeypatch, caplog, arguments, level):
    """Of a vLLM that it does not know it hooks nothing, and says so aloud where the command asks for it."""
    import vllm.version

    monkeypatch.setattr(vllm.version, "__version__", "0.34.1")
    monkeypatch.setattr(plugin, "_accept_name", lambda: pytest.fail("hooked"))
    monkeypatch.setattr(plugin.logger, "propagate", True)
    monkeypatch.setattr(sys, "argv", ["/opt/tooldecode/vllm", *arguments])
    with caplog.at_level(logging.DEBUG, plugin.logger.name):
        plugin.register()
    assert [record.levelname for record in caplog.records] == [level] and "0.34.1" in caplog.text
