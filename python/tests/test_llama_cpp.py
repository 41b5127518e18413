"""Answers of SmolLM2, run by llama-cpp-python: every call conforms. Both are left out where they are not."""
import json
import os
import pathlib
import subprocess
import sys
import weakref

import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp")

import tooldecode as td  # noqa: E402
from tooldecode import llama_cpp as backend  # noqa: E402

MESSAGES = [{"role": "user", "content": "What is the weather in Paris for 3 days?"}]


@pytest.fixture(scope="module")
def llama():
    cache = os.environ.get("TOOLDECODE_CACHE")
    folder = pathlib.Path(cache or pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tooldecode")
    path = folder / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        pytest.skip("SmolLM2 is not here: bash examples/models.sh smollm2")
    return llama_cpp.Llama(str(path), n_ctx=2048, n_threads=1, n_threads_batch=1, seed=1, verbose=False)


@pytest.mark.parametrize("options", [{"temp": 0.0}, {"temp": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}])
def test_calls_conform(llama, tools, options):
    for choice in ("required", "auto"):
        answer = backend.generate_with_tools(llama, MESSAGES, tools, "hermes", choice=choice, max_tokens=60, **options)
        assert answer.is_whole and (choice == "auto" or answer.calls)
        for call in answer.calls:
            assert call.name in {"get_weather", "add"}
            if call.name == "get_weather":
                assert isinstance(call.arguments["city"], str) and 1 <= call.arguments.get("days", 1) <= 14


def test_json_conforms_to_its_schema(llama):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
              "required": ["city", "days"], "additionalProperties": False}

    class Trip:
        @classmethod
        def model_json_schema(cls):
            return schema

        @classmethod
        def model_validate_json(cls, text):
            trip = cls()
            trip.value = json.loads(text)
            return trip

    value = backend.generate_json(llama, MESSAGES, schema, max_tokens=40, temp=0.0)
    assert set(value) == {"city", "days"} and len(value["city"]) <= 12 and 1 <= value["days"] <= 14
    prompt = backend.prompt_tokens(llama, MESSAGES)
    trip = backend.generate_json(llama, prompt, Trip, max_tokens=40, temp=0.0)
    assert isinstance(trip, Trip) and trip.value == value
    with pytest.raises(td.Error, match="max_tokens 2"):
        backend.generate_json(llama, MESSAGES, schema, max_tokens=2)
    vocabulary = backend.vocabulary_of(llama)
    for end in b'"', b"}":
        stop = llama_cpp.StoppingCriteriaList([lambda tokens, logits: vocabulary.decode([int(tokens[-1])]).endswith(end)])
        options = {"max_tokens": 40, "temp": 0.0, "stopping_criteria": stop}
        if end == b"}":
            assert backend.generate_json(llama, MESSAGES, schema, **options) == value
        else:
            with pytest.raises(td.Error, match="^stopping_criteria: the answer is cut after") as error:
                backend.generate_json(llama, MESSAGES, schema, **options)
            assert (error.value.code, error.value.where) == ("limit_exceeded", "stopping_criteria")


HERMES = """{%- for turn in messages %}<|im_start|>{{ turn.role }}
{% if turn.tool_calls %}{%- for call in turn.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}{%- else %}{{ turn.content }}{%- endif %}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def test_format_is_the_one_of_the_files_chat_template(llama, tools, monkeypatch):
    monkeypatch.delenv("TOOLDECODE_FORMAT", raising=False)

    def generate(*format):
        llama.reset()
        return backend.generate_with_tools(llama, MESSAGES, tools, *format, choice="required", max_tokens=60, temp=0.0)

    with pytest.raises(td.Error, match="pass format") as error:
        generate()  # the template of SmolLM2 writes no calls
    assert (error.value.code, error.value.where) == ("unknown_format", "chat_template")
    monkeypatch.setattr(backend, "_templates", weakref.WeakKeyDictionary())
    monkeypatch.setitem(llama.metadata, "tokenizer.chat_template", HERMES)
    answer = generate()
    text = backend.vocabulary_of(llama).decode(answer.tokens).decode()
    assert answer.calls and answer == generate("auto:hermes")
    assert td.tool_calls(backend.vocabulary_of(llama), tools, "auto:hermes", choice="required").parse(text) == answer.calls
    monkeypatch.setenv("TOOLDECODE_FORMAT", "python")
    text = backend.vocabulary_of(llama).decode(generate().tokens).decode()
    assert text.startswith("[") and "(" in text


def test_a_template_sees_tools_only_where_there_are_some(tools):
    class Model:
        metadata = {"tokenizer.chat_template": "{% if tools is not none %}call {{ tools[0].name }}{% else %}answer{% endif %}"}
        token_bos = token_eos = staticmethod(lambda: -1)
        _model = None

        def tokenize(self, text, add_bos, special):
            return text

    assert backend.prompt_tokens(Model(), MESSAGES) == b"answer"
    assert backend.prompt_tokens(Model(), MESSAGES, tools) == b"call get_weather"


def test_vocabulary_of_a_file_that_is_replaced_is_that_of_the_new_file(tmp_path, monkeypatch):
    """But a model that is loaded keeps its own."""
    class Model:
        model_path = str(tmp_path / "model.gguf")
    file = pathlib.Path(Model.model_path)
    monkeypatch.setattr(backend.Vocabulary, "from_gguf", lambda path: file.read_text(), raising=False)
    file.write_text("old")
    first, second = Model(), Model()
    assert backend.vocabulary_of(first) == backend.vocabulary_of(second) == "old"
    file.write_text("newer")
    third = Model()
    assert backend.vocabulary_of(first) == "old" and backend.vocabulary_of(third) == "newer"
    file.unlink()
    assert backend.vocabulary_of(third) == "newer"


def test_budgets_and_contexts(llama, tools):
    shortest = backend.generate_with_tools(llama, MESSAGES, tools, "python", choice="required", max_tokens=14, temp=0.0)
    assert shortest.is_whole and len(shortest.calls) == 1
    with pytest.raises(td.Error, match="max_tokens 3"):
        backend.generate_with_tools(llama, MESSAGES, tools, "python", choice="required", max_tokens=3)
    with pytest.raises(td.Error, match="the context's"):
        backend.generate_with_tools(llama, MESSAGES, tools, "python", max_tokens=2040)


def test_traces(llama, tools):
    answer = backend.generate_with_tools(llama, MESSAGES, tools, "hermes", choice="required", max_tokens=60, temp=0.0)
    vocabulary, trace = backend.vocabulary_of(llama), json.loads(json.dumps(answer.trace))
    tokens, totals = trace["tokens"], trace["totals"]
    assert [token["id"] for token in tokens[:-1]] == answer.tokens and tokens[-1]["end"] and tokens[-1]["name"]
    assert trace["text"] == vocabulary.decode(answer.tokens).decode() and trace["finish"] == "end"
    assert all((token["kind"] == "forced") == (token["allowed"] == 1) and token["microseconds"] > 0 for token in tokens)
    assert totals["passes"] == len(tokens) == totals["tokens"] + 1 and 0 < totals["forced_tokens"] < len(tokens)
    times = [totals[f"{phase}_microseconds"] for phase in ("prefill", "model", "constraint")]
    assert min(times) > 0 and sum(times) == pytest.approx(sum(token["microseconds"] for token in tokens))


def test_the_script(llama):
    script = pathlib.Path(__file__).resolve().parents[1] / "generate_gguf.py"
    ran = subprocess.run([sys.executable, script, llama.model_path], capture_output=True, text=True, timeout=300, check=True)
    assert "ToolCall(name=" in ran.stdout and "is_whole=True" in ran.stdout  # which tool is the model's choice


def test_drafts_are_refused(llama, tools):
    llama.draft_model = lambda ids: ids[:0]
    try:
        with pytest.raises(td.Error, match="draft model"):
            backend.generate_with_tools(llama, MESSAGES, tools, "python")
    finally:
        llama.draft_model = None


def test_masks_of_a_processor(llama, tools):
    vocabulary = backend.vocabulary_of(llama)
    constraint = td.tool_calls(vocabulary, tools, "python", choice="required")
    processor = backend.LogitsProcessor(constraint, prompt_length=2)
    scores = np.random.default_rng(1).standard_normal(llama.n_vocab()).astype(np.float32)
    written = vocabulary.encode("[add(a=1, b=2)]")
    ids = np.array([1, 2, *written], np.intc)
    state = constraint.initial()
    for i in range(len(written) + 1):
        mask = np.zeros(constraint.mask_words, np.int32)
        constraint.fill_mask(state, mask)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(scores)].astype(bool)
        masked = processor(ids[: 2 + i], scores)
        assert (np.isfinite(masked) == allowed).all() and (masked[allowed] == scores[allowed]).all()
        if i < len(written):
            state = constraint.advance(state, written[i])
    assert (np.isfinite(processor(ids[:2], scores)).sum()) > 0  # back to the beginning


@pytest.mark.parametrize("name", ["llama_get_memory", "swa_full", "kv_unified", "llama_set_adapters_lora"])
def test_versions_that_cannot_read_batches_are_refused(monkeypatch, name):
    if hasattr(llama_cpp, name):
        monkeypatch.delattr(llama_cpp, name)
    else:
        fields = [field for field in llama_cpp.llama_context_params._fields_ if field[0] != name]
        monkeypatch.setattr(llama_cpp, "llama_context_params", type("llama_context_params", (), {"_fields_": fields}))
    with pytest.raises(td.Error, match=f"has no {name}: must be 0.3.17") as error:
        backend.BatchedLlama(None)
    assert (error.value.code, error.value.where) == ("invalid_option", name)


@pytest.fixture(scope="module")
def batched(llama):
    return backend.BatchedLlama(llama, sequences=8)


def test_logits_of_a_batch_are_those_of_each_sequence_alone(llama, batched):
    first, second = llama.tokenize(b"The weather in Paris is"), llama.tokenize(b"Two and three make five, and")
    a, b = batched.make_cache(), batched.make_cache()
    batched.forward([a, b], [first[:2], second[:3]])
    together = batched.forward([b, a], [second[3:], first[2:]])
    fork = batched.fork(a)
    batched.forward([a], [second])  # must not reach the fork
    batched.truncate(fork, len(first) - 1)
    again = batched.forward([fork], [first[-1:]])
    for tokens, logits in [(second, together[0]), (first, together[1]), (first, again[0])]:
        llama.reset()
        llama.eval(tokens)
        expected = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama._ctx.ctx, -1), (llama.n_vocab(),))
        assert np.abs(logits - expected).max() < 0.05 * expected.std()  # sums depend on a batch's shape


def test_prompts_longer_than_a_batch_are_read_in_parts(llama):
    kept, llama.context_params.n_batch = llama.context_params.n_batch, 16
    try:
        small = backend.BatchedLlama(llama, sequences=2, context_size=256)
    finally:
        llama.context_params.n_batch = kept
    tokens = llama.tokenize(b"The weather in Paris is fine, and that in Oslo is cold. " * 6)
    assert 70 < len(tokens) < 200
    a, b = small.make_cache(), small.make_cache()
    logits = small.forward([a, b], [tokens, tokens[:5]])
    for read, row in [(tokens, logits[0]), (tokens[:5], logits[1])]:
        llama.reset()
        llama.eval(read)
        expected = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama._ctx.ctx, -1), (llama.n_vocab(),))
        assert np.abs(row - expected).max() < 0.3 * expected.std()
    before = small.forward([b], [tokens[5:6]])
    small.truncate(b, 5)
    with pytest.raises(td.Error):  # some parts are read before one does not fit
        small.forward([b], [tokens[5:] * 4])
    assert b.length == 5 and np.abs(small.forward([b], [tokens[5:6]]) - before).max() < 0.5


def test_sequences_and_tokens_are_limited(llama, batched):
    kept = [batched.make_cache() for _ in range(7)]
    with pytest.raises(td.Error) as error:
        [batched.make_cache() for _ in range(2)]
    assert (error.value.code, error.value.where) == ("limit_exceeded", "sequences")
    kept.clear()
    del error
    small = backend.BatchedLlama(llama, sequences=2, context_size=256)
    cache = small.make_cache()
    expected = small.forward([cache], [[1, 2, 3]])
    with pytest.raises(td.Error) as error:
        small.forward([cache], [[5] * 600])
    assert (error.value.code, error.value.where) == ("limit_exceeded", "context_size")
    small.truncate(cache, 2)  # the cache is as it was before the error
    assert np.allclose(small.forward([cache], [[3]]), expected, atol=0.5)
    for wrong in (0, 100_000):
        with pytest.raises(td.Error) as error:
            backend.BatchedLlama(llama, sequences=wrong)
        assert (error.value.code, error.value.where) == ("invalid_option", "sequences")


def test_order_consistency_votes_on_values(llama, batched, tools):
    constraint = td.tool_calls(backend.vocabulary_of(llama), tools, "hermes", choice="required", max_calls=1)
    prompt = backend.prompt_tokens(llama, MESSAGES, tools)
    one = td.order_consistency(constraint, batched, prompt, max_orders=1, max_tokens=60)
    assert one.is_whole and one.calls[0].sampled == 1
    votes = td.order_consistency(constraint, batched, prompt, max_orders=4, max_tokens=60, adaptive=False)
    [vote] = votes.calls
    assert votes.is_whole and vote.sampled == vote.orders >= 1
    assert all(sum(choice.votes for choice in one.choices) == vote.sampled for one in vote.parameters)
    text = backend.vocabulary_of(llama).decode(votes.tokens).decode()
    assert constraint.parse(text) == [vote.call] and constraint.explain_refusal(text) is None
    batched._forget_released()
    assert len(batched._free) == 8  # every cache was given back
