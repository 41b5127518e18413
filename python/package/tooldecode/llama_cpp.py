"""For `llama-cpp-python`: answers of a GGUF model whose calls always conform.

Needs llama-cpp-python: pip install tooldecode[llama_cpp]
"""
from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from . import Completions, Constraint, Error, Vocabulary, apply_mask, json_schema, tool_calls
from ._answer import Answer, check_budget, read_answer, read_value
from ._tools import format_for
from ._trace import Tracer

__all__ = ["Answer", "BatchedLlama", "LogitsProcessor", "generate_json", "generate_with_tools", "prompt_tokens", "read_answer",
           "vocabulary_of"]


class LogitsProcessor:
    """Lets a `Llama` write only what a constraint allows; pass it as a `logits_processor`.

    One object serves one answer. Do not use it with a draft model: `Llama` passes all of a draft's tokens for each
    position, so a processor cannot know which position is meant.

    constraint: over the model's vocabulary.
    prompt_length: number of tokens before the first generated one.
    max_tokens: if given, only tokens that leave room for the end of the answer are allowed, so it is not cut; Error
        invalid_option if the shortest answer is longer.
    """

    def __init__(self, constraint: Constraint, prompt_length: int, max_tokens: int | None = None) -> None:
        self.constraint = constraint
        self.prompt_length = prompt_length
        self.max_tokens = max_tokens
        self._completions = None
        if max_tokens is not None:
            self._completions = Completions(constraint)
            check_budget(self._completions, constraint, max_tokens, "max_tokens")
        self._state, self._tokens = constraint.initial(), []
        self._mask = np.zeros(constraint.mask_words, np.int32)
        self._tracer: Tracer | None = None

    def __call__(self, input_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """scores [V] -> [V], minus infinity for tokens that are not allowed; unchanged after the answer's end."""
        begin = Tracer.now()
        masked = self._masked(input_ids, scores)
        if self._tracer is not None:
            self._tracer.masked(begin)
        return masked

    def _masked(self, input_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        tokens = [int(token) for token in input_ids[self.prompt_length :]]
        known = len(self._tokens)
        if tokens[:known] != self._tokens:
            self._state, known = self.constraint.initial(), 0
        for token in tokens[known:]:
            if self._state is not None:
                self._state = self.constraint.advance(self._state, token)
        self._tokens = tokens
        if self._state is None or self.constraint.is_finished(self._state):
            return scores
        self.constraint.fill_mask(self._state, self._mask)
        if self._completions is not None and len(tokens) < self.max_tokens:
            self._completions.narrow(self._state, self.max_tokens - len(tokens), self._mask[None], 0)
        if self._tracer is not None:
            self._tracer.allow(np.array(tokens, np.int64).tobytes(), self._mask)
        masked = scores.copy()
        apply_mask(masked, self._mask)
        return masked


_vocabularies: dict[str, tuple[tuple[int, int], Vocabulary]] = {}  # of files
_of_models: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # one that is loaded stays as its file was


def vocabulary_of(llama: llama_cpp.Llama) -> Vocabulary:
    """The vocabulary of the model's file; cached as long as the file is the same."""
    made = _of_models.get(llama)
    if made is None:
        file = os.stat(llama.model_path)
        version = file.st_mtime_ns, file.st_size
        known = _vocabularies.get(llama.model_path)
        if known is None or known[0] != version:
            known = _vocabularies[llama.model_path] = version, Vocabulary.from_gguf(llama.model_path)
        made = _of_models[llama] = known[1]
    return made


def _check_version() -> None:
    """Error invalid_option for a version of llama-cpp-python that lacks what BatchedLlama needs."""
    # A field that is not there could be set, and would do nothing.
    known = {name for name, *_ in llama_cpp.llama_context_params._fields_}.union(dir(llama_cpp))
    for name in ("llama_get_memory", "swa_full", "kv_unified", "llama_set_adapters_lora"):
        if name not in known:
            raise Error("invalid_option", name, f"llama-cpp-python {llama_cpp.__version__} has no {name}: must be 0.3.17 or later")


class _Sequence:
    """A cache of BatchedLlama: a sequence of its context, and how many tokens it has read."""

    def __init__(self, number: int, length: int) -> None:
        self.number, self.length = number, length


class BatchedLlama:
    """The weights of a `Llama` as a tooldecode.Model, for order_consistency. The `Llama` keeps its own context.

    Its caches are sequences of one context of llama.cpp: a fork shares the cells of what it was forked from, and one pass
    reads tokens of all. One thread at a time.

    sequences: the most caches at once; order_consistency needs max_orders + 2. context_size: tokens of all caches together,
    shared ones once; 0 is the `Llama`'s own. Error limit_exceeded if sequences or tokens are not enough, invalid_option
    for models that cannot forget a part of what they have read (recurrent ones). A LoRA adapter of the `Llama` holds here
    too. Do not close the `Llama` before this.
    """

    def __init__(self, llama: llama_cpp.Llama, *, sequences: int = 16, context_size: int = 0) -> None:
        _check_version()
        most = llama_cpp.llama_max_parallel_sequences()
        if not 1 <= sequences <= most:
            raise Error("invalid_option", "sequences", f"{sequences}: must be from 1 to {most}")
        parameters = type(llama.context_params).from_buffer_copy(llama.context_params)
        parameters.n_ctx = context_size or llama.n_ctx()
        parameters.n_seq_max = sequences
        parameters.kv_unified = True
        parameters.swa_full = True  # forks and truncated caches go back
        parameters.embeddings = False
        context = llama_cpp.llama_init_from_model(llama._model.model, parameters)
        if context is None:
            raise Error("limit_exceeded", "context_size", f"llama.cpp makes no context of {parameters.n_ctx} tokens")
        self._llama = llama  # keeps the weights
        self._context, self._memory = context, llama_cpp.llama_get_memory(context)
        weakref.finalize(self, llama_cpp.llama_free, context)
        if (adapter := getattr(llama, "_lora_adapter", None)) is not None:
            adapters, scales = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter), (ctypes.c_float * 1)(llama.lora_scale)
            if llama_cpp.llama_set_adapters_lora(context, adapters, 1, scales):
                raise Error("invalid_option", "lora_path", "llama.cpp does not take the adapter in another context")
        self._batch_size = llama_cpp.llama_n_batch(context)
        self._batch = llama_cpp.llama_batch_init(self._batch_size, 0, 1)
        weakref.finalize(self, llama_cpp.llama_batch_free, self._batch)
        self._free = list(range(sequences))[::-1]
        self._released: list[int] = []  # of caches that are gone, whose tokens are still there
        self.vocabulary_size = llama.n_vocab()

    def make_cache(self) -> _Sequence:
        self._forget_released()
        if not self._free:
            raise Error("limit_exceeded", "sequences", "all are taken: pass BatchedLlama more")
        cache = _Sequence(self._free.pop(), 0)
        weakref.finalize(cache, self._released.append, cache.number)  # may run in any thread
        return cache

    def _forget_released(self) -> None:
        while self._released:
            number = self._released.pop()
            llama_cpp.llama_memory_seq_rm(self._memory, number, -1, -1)
            self._free.append(number)

    def fork(self, cache: _Sequence) -> _Sequence:
        copy = self.make_cache()
        llama_cpp.llama_memory_seq_cp(self._memory, cache.number, copy.number, -1, -1)
        copy.length = cache.length
        return copy

    def truncate(self, cache: _Sequence, length: int) -> None:
        if length < cache.length:
            self._drop(cache, length)
            cache.length = length

    def _drop(self, cache: _Sequence, length: int) -> None:
        if not llama_cpp.llama_memory_seq_rm(self._memory, cache.number, length, -1):
            raise Error("invalid_option", self._llama.model_path, "the model cannot forget a part of what it has read")

    def forward(self, caches: Sequence[_Sequence], tokens: Sequence[Sequence[int]]) -> np.ndarray:
        """Appends tokens to each cache; logits [B, V] behind the last token of each. After an error no cache has changed."""
        self._forget_released()
        logits = np.empty((len(caches), self.vocabulary_size), np.float32)
        entries = [(row, cache.number, cache.length + at, token, at + 1 == len(read))
                   for row, (cache, read) in enumerate(zip(caches, tokens)) for at, token in enumerate(read)]
        for begin in range(0, len(entries), self._batch_size):
            part = entries[begin : begin + self._batch_size]
            if (status := self._decode(part)) != 0:
                for cache in caches:
                    self._drop(cache, cache.length)
                if status == 1:
                    raise Error("limit_exceeded", "context_size", "no room for more tokens: pass BatchedLlama more")
                raise RuntimeError(f"llama_decode failed with {status}")
            for at, (row, _, _, _, is_last) in enumerate(part):
                if is_last:
                    scores = llama_cpp.llama_get_logits_ith(self._context, at)
                    logits[row] = np.ctypeslib.as_array(scores, (self.vocabulary_size,))
        for cache, read in zip(caches, tokens):
            cache.length += len(read)
        return logits

    def _decode(self, entries: Sequence[tuple[int, int, int, int, bool]]) -> int:
        batch = self._batch
        batch.n_tokens = len(entries)
        for at, (_, number, position, token, is_last) in enumerate(entries):
            batch.token[at], batch.pos[at] = token, position
            batch.n_seq_id[at], batch.seq_id[at][0] = 1, number
            batch.logits[at] = is_last
        return llama_cpp.llama_decode(self._context, batch)


class _Template:
    """The chat template of a file, where a tokenizer of transformers has its own."""

    def __init__(self, llama: llama_cpp.Llama) -> None:
        self.chat_template = llama.metadata.get("tokenizer.chat_template")
        self.begin, self.end = (llama._model.token_get_text(token) if token >= 0 else ""
                                for token in (llama.token_bos(), llama.token_eos()))

    @functools.cached_property
    def _formatter(self) -> Jinja2ChatFormatter:
        if self.chat_template is None:
            raise Error("malformed_vocabulary", "tokenizer.chat_template", "the model has no chat template: give tokens")
        return Jinja2ChatFormatter(self.chat_template, eos_token=self.end, bos_token=self.begin)

    def apply_chat_template(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), **_: Any) -> str:
        # Templates ask for a call if `tools` is not None.
        return self._formatter(messages=list(messages), tools=list(tools) or None).prompt


_templates: weakref.WeakKeyDictionary[llama_cpp.Llama, _Template] = weakref.WeakKeyDictionary()


def _template_of(llama: llama_cpp.Llama) -> _Template:
    made = _templates.get(llama)
    if made is None:
        made = _templates[llama] = _Template(llama)
    return made


def prompt_tokens(
    llama: llama_cpp.Llama, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()
) -> list[int]:
    """The tokens of messages and tools as the model's own chat template writes them, up to where the answer begins."""
    template = _template_of(llama)
    text = template.apply_chat_template(messages, tools)
    return llama.tokenize(text.encode(), add_bos=not text.startswith(template.begin) if template.begin else False, special=True)


def _generate(
    llama: llama_cpp.Llama, constraint: Constraint, messages: Sequence[dict[str, Any]] | Sequence[int],
    tools: Sequence[dict[str, Any]], max_tokens: int, generate_options: dict[str, Any],
) -> tuple[list[int], Tracer]:
    """The tokens of an answer to messages, or to a prompt's tokens, under a constraint, and how they came."""
    if llama.draft_model is not None:
        raise Error("invalid_option", "draft_model", "a Llama with a draft model shows its processors the wrong tokens")
    is_tokens = len(messages) > 0 and isinstance(messages[0], int)
    prompt = list(messages) if is_tokens else prompt_tokens(llama, messages, tools)
    if len(prompt) + max_tokens > llama.n_ctx():
        raise Error("limit_exceeded", "messages", f"{len(prompt)} tokens and {max_tokens} to come: must be at most "
                                                  f"{llama.n_ctx()}, the context's")
    processor = LogitsProcessor(constraint, len(prompt), max_tokens)
    processor._tracer = tracer = Tracer()
    processors = llama_cpp.LogitsProcessorList([*(generate_options.pop("logits_processor", None) or ()), processor])
    state, tokens = constraint.initial(), []
    for token in llama.generate(prompt, logits_processor=processors, **generate_options):
        tracer.came(1)
        tokens.append(token)
        state = constraint.advance(state, token)
        if state is None or constraint.is_finished(state) or len(tokens) == max_tokens:
            break
    return tokens, tracer


def generate_with_tools(
    llama: llama_cpp.Llama,
    messages: Sequence[dict[str, Any]] | Sequence[int],
    tools: Sequence[dict[str, Any]],
    format: str | None = None,
    *,
    choice: str = "auto",
    name: str = "",
    reasoning: bool | tuple[str, str] = False,
    max_tokens: int = 256,
    constraint_options: dict[str, Any] | None = None,
    **generate_options: Any,
) -> Answer:
    """Generates an answer to messages that may call tools. Every call conforms, and none is cut.

    messages: for the model's chat template, which also receives the tools; or a prompt's tokens. format: as in tool_calls;
    None: the one that the environment variable TOOLDECODE_FORMAT names, else the one in which the file's chat template writes
    calls, with what such models fall back to. Error unknown_format if that is none of tooldecode.formats(). choice, name,
    reasoning, constraint_options: arguments of tool_calls. generate_options: arguments of `Llama.generate` (temp, top_k,
    ...). Error invalid_option for a `Llama` with a draft model, see LogitsProcessor.
    """
    vocabulary = vocabulary_of(llama)
    if format is None:
        format = format_for(_template_of(llama), hint="pass format, such as one of tooldecode.formats()")
    constraint = tool_calls(vocabulary, tools, format, choice=choice, name=name, reasoning=reasoning,
                            **(constraint_options or {}))
    tokens, tracer = _generate(llama, constraint, messages, tools, max_tokens, generate_options)
    answer = read_answer(constraint, tokens)
    answer.trace = tracer.trace(tokens, answer.is_whole, vocabulary, llama._model.token_get_text)
    return answer


def generate_json(
    llama: llama_cpp.Llama,
    messages: Sequence[dict[str, Any]] | Sequence[int],
    schema: Any,
    *,
    max_tokens: int = 256,
    constraint_options: dict[str, Any] | None = None,
    **generate_options: Any,
) -> Any:
    """Generates a value that conforms to a JSON Schema, and returns it: parsed, or as an object of a Pydantic class.

    messages, generate_options: as in generate_with_tools. schema: a dictionary, its JSON text, or a class of Pydantic. The
    model does not see it, unless the messages have it. constraint_options: arguments of json_schema. No answer is cut:
    Error invalid_option if the shortest one is longer than `max_tokens`. One that `stopping_criteria` cut is Error
    limit_exceeded.
    """
    vocabulary = vocabulary_of(llama)
    constraint = json_schema(vocabulary, schema, **(constraint_options or {}))
    tokens, _ = _generate(llama, constraint, messages, (), max_tokens, generate_options)
    limit = "max_tokens" if len(tokens) >= max_tokens else "stopping_criteria" if generate_options.get("stopping_criteria") else ""
    return read_value(constraint, vocabulary, tokens, schema, limit)
