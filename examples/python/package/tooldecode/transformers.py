"""For Hugging Face `transformers`: generation that cannot write a wrong call.

Needs torch and transformers: pip install tooldecode[transformers]
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers

from . import Completions, Constraint, Error, State, Vocabulary, tool_calls
from ._answer import Answer, read_answer
from ._answer import check_budget as _check_budget

__all__ = ["Answer", "LogitsProcessor", "generate_with_tools", "read_answer", "vocabulary_of"]


class LogitsProcessor(transformers.LogitsProcessor):
    """Lets generation write only what a constraint allows.

    A row's state is found by the tokens that the row holds behind the prompt, so beams may be reordered, and
    drafts be tried and given up, in any order. Rows that hold what is not allowed, such as rejected drafts, stay as
    they are. One object serves one call of `generate`, whose prompts, padded on the left, are all of one length.

    constraint: over the model's vocabulary, whose end tokens end generation (`eos_token_id`).
    prompt_length: tokens in `input_ids` before the first that is generated.
    max_new_tokens: where it is given, only what leaves room for the end of the answer is allowed, so that none is
        cut; Error invalid_option where that is less than the shortest answer.
    """

    _most_known = 1024

    def __init__(self, constraint: Constraint, prompt_length: int, max_new_tokens: int | None = None) -> None:
        self.constraint = constraint
        self.prompt_length = prompt_length
        self.max_new_tokens = max_new_tokens
        self._completions = None
        if max_new_tokens is not None:
            self._completions = Completions(constraint)
            _check_budget(self._completions, constraint, max_new_tokens, "max_new_tokens")
        self._known: dict[bytes, State | None] = {b"": constraint.initial()}
        self._bits = torch.arange(32, dtype=torch.int32)
        self._words = torch.empty((0, constraint.mask_words), dtype=torch.int32)

    def state(self, tokens: torch.Tensor) -> State | None:
        """The state behind generated tokens [L]; None where they are not allowed."""
        row = tokens.detach().to("cpu", torch.int64).contiguous().numpy()
        key = row.tobytes()
        if key in self._known:
            return self._known[key]
        before = key[:-8]
        if before in self._known:
            state = self._known[before]
            if state is not None:
                state = self.constraint.advance(state, int(row[-1]))
        else:
            state = self.constraint.advance_tokens(self.constraint.initial(), row.tolist())
        if len(self._known) >= self._most_known:  # the oldest
            for old in list(self._known)[: self._most_known // 2]:
                del self._known[old]
        self._known[key] = state
        return state

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """scores [B, V] -> [B, V], minus infinity where a token is not allowed."""
        states = [self.state(row) for row in input_ids[:, self.prompt_length :]]
        rows = [i for i, state in enumerate(states) if state is not None]
        if len(states) > len(self._words):
            self._words = torch.empty((len(states), self.constraint.mask_words), dtype=torch.int32)
        words = self._words[: len(states)]
        words.fill_(-1)
        array = words.numpy()
        self.constraint.fill_masks([states[i] for i in rows], array, rows)
        if self._completions is not None:
            remaining = self.max_new_tokens - (input_ids.shape[1] - self.prompt_length)
            for i in rows if remaining > 0 else ():
                if not self.constraint.is_finished(states[i]):
                    self._completions.narrow(states[i], remaining, array, i)
        words = words.to(scores.device)
        allowed = ((words[:, :, None] >> self._bits.to(scores.device)) & 1).bool().flatten(1)
        width = scores.shape[1]
        if allowed.shape[1] < width:
            rest = torch.zeros((len(states), width - allowed.shape[1]), dtype=torch.bool, device=scores.device)
            allowed = torch.cat([allowed, rest], dim=1)
        return scores.masked_fill(~allowed[:, :width], -float("inf"))


_usual_tokens = 1024

_vocabularies: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def vocabulary_of(tokenizer: Any, model: Any = None, end_tokens: Sequence[int] | int | None = None) -> Vocabulary:
    """The vocabulary of a tokenizer, made once for each: it ends with `end_tokens`, else where the model's
    generation_config says, else where the tokenizer does, and has at least as many ids as the model has logits."""
    if end_tokens is None and model is not None:
        end_tokens = model.generation_config.eos_token_id
    if end_tokens is None:
        end_tokens = tokenizer.eos_token_id
    ends = (end_tokens,) if isinstance(end_tokens, int) else tuple(end_tokens or ())
    size = len(tokenizer)
    if model is not None:
        size = max(size, model.config.get_text_config().vocab_size)
    known = _vocabularies.setdefault(tokenizer, {})
    if (ends, size) not in known:
        known[ends, size] = Vocabulary.from_huggingface(tokenizer, list(ends) or None, size=size)
    return known[ends, size]


def generate_with_tools(
    model: Any,
    tokenizer: Any,
    messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any] | Callable],
    format: str,
    *,
    choice: str = "auto",
    name: str = "",
    reasoning: bool | tuple[str, str] = False,
    constraint_options: dict[str, Any] | None = None,
    template_options: dict[str, Any] | None = None,
    **generate_arguments: Any,
) -> Answer:
    """Lets a model answer messages, and call tools if it likes: every call it makes conforms.

    tools: documents, or functions as apply_chat_template takes them. format: how the model writes calls, one of
    tooldecode.formats(). choice, name, reasoning: as tool_calls has them, and constraint_options the rest of what it
    takes. template_options go to apply_chat_template, generate_arguments to `generate`: no answer is cut by
    `max_new_tokens`, which is 1024, or what the model's positions leave, where nothing is said. Greedy, sampling, beams,
    prompt lookup and assisted generation are all right.
    """
    documents = [tool if isinstance(tool, dict) else transformers.utils.get_json_schema(tool) for tool in tools]
    vocabulary = vocabulary_of(tokenizer, model, generate_arguments.get("eos_token_id"))
    constraint = tool_calls(vocabulary, documents, format, choice=choice, name=name, reasoning=reasoning,
                            **(constraint_options or {}))
    prompt = tokenizer.apply_chat_template(messages, tools=documents, add_generation_prompt=True, return_tensors="pt",
                                           return_dict=True, **(template_options or {})).to(model.device)
    length = prompt["input_ids"].shape[1]
    if not {"max_new_tokens", "max_length", "generation_config"} & generate_arguments.keys():
        # transformers' own is 20 tokens, which cut most calls.
        usual = model.generation_config.max_new_tokens or _usual_tokens
        positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        generate_arguments["max_new_tokens"] = max(1, usual if positions is None else min(usual, positions - length))
    processor = LogitsProcessor(constraint, length, generate_arguments.get("max_new_tokens"))
    processors = transformers.LogitsProcessorList([*generate_arguments.pop("logits_processor", ()), processor])
    generate_arguments.setdefault("eos_token_id", vocabulary.end_tokens)
    generated = model.generate(**prompt, logits_processor=processors, **generate_arguments)
    sequences = generated if isinstance(generated, torch.Tensor) else generated.sequences
    return read_answer(constraint, sequences[0, length:].tolist())
