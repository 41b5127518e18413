"""Answers of SmolLM2, run by llama-cpp-python: every call conforms. Both are left out where they are not."""
import json
import os
import pathlib
import subprocess
import sys

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
