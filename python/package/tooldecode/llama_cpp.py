"""For `llama-cpp-python`: answers of a GGUF model whose calls always conform.

Needs llama-cpp-python: pip install tooldecode[llama_cpp]
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from . import Completions, Constraint, Error, Vocabulary, apply_mask, tool_calls
from ._answer import Answer, check_budget, read_answer
from ._trace import Tracer

__all__ = ["Answer", "LogitsProcessor", "generate_with_tools", "read_answer", "vocabulary_of"]


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


_vocabularies: dict[str, Vocabulary] = {}


def vocabulary_of(llama: llama_cpp.Llama) -> Vocabulary:
    """The vocabulary of the model's file; cached per file."""
    if llama.model_path not in _vocabularies:
        _vocabularies[llama.model_path] = Vocabulary.from_gguf(llama.model_path)
    return _vocabularies[llama.model_path]


def _prompt(llama: llama_cpp.Llama, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> list[int]:
    template = llama.metadata.get("tokenizer.chat_template")
    if template is None:
        raise Error("malformed_vocabulary", "tokenizer.chat_template", "the model has no chat template: give tokens")
    begin, end = (llama._model.token_get_text(token) if token >= 0 else "" for token in (llama.token_bos(), llama.token_eos()))
    text = Jinja2ChatFormatter(template, eos_token=end, bos_token=begin)(messages=list(messages), tools=list(tools)).prompt
    return llama.tokenize(text.encode(), add_bos=not text.startswith(begin) if begin else False, special=True)


def generate_with_tools(
    llama: llama_cpp.Llama,
    messages: Sequence[dict[str, Any]] | Sequence[int],
    tools: Sequence[dict[str, Any]],
    format: str,
    *,
    choice: str = "auto",
    name: str = "",
    reasoning: bool | tuple[str, str] = False,
    max_tokens: int = 256,
    constraint_options: dict[str, Any] | None = None,
    **generate_options: Any,
) -> Answer:
    """Generates an answer to messages that may call tools. Every call conforms, and none is cut.

    messages: for the model's chat template, which also receives the tools; or a prompt's tokens. format: the model's
    call format, one of tooldecode.formats(). choice, name, reasoning, constraint_options: arguments of tool_calls.
    generate_options: arguments of `Llama.generate` (temp, top_k, ...). Error invalid_option for a `Llama` with a draft
    model, see LogitsProcessor.
    """
    if llama.draft_model is not None:
        raise Error("invalid_option", "draft_model", "a Llama with a draft model shows its processors the wrong tokens")
    vocabulary = vocabulary_of(llama)
    constraint = tool_calls(vocabulary, tools, format, choice=choice, name=name, reasoning=reasoning,
                            **(constraint_options or {}))
    is_tokens = len(messages) > 0 and isinstance(messages[0], int)
    prompt = list(messages) if is_tokens else _prompt(llama, messages, tools)
    if len(prompt) + max_tokens > llama.n_ctx():
        raise Error("limit_exceeded", "messages", f"{len(prompt)} tokens and {max_tokens} to come: must be at most "
                                                  f"{llama.n_ctx()}, the context's")
    processor = LogitsProcessor(constraint, len(prompt), max_tokens)
    processor._tracer = tracer = Tracer()
    processors = llama_cpp.LogitsProcessorList([*generate_options.pop("logits_processor", ()), processor])
    state, tokens = constraint.initial(), []
    for token in llama.generate(prompt, logits_processor=processors, **generate_options):
        tracer.came(1)
        tokens.append(token)
        state = constraint.advance(state, token)
        if state is None or constraint.is_finished(state) or len(tokens) == max_tokens:
            break
    answer = read_answer(constraint, tokens)
    answer.trace = tracer.trace(tokens, answer.is_whole, vocabulary, llama._model.token_get_text)
    return answer
