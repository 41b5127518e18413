"""For Hugging Face `transformers`: generation whose calls always conform.

Needs torch and transformers: pip install tooldecode[transformers]
"""
from __future__ import annotations

import array
import copy
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers

from . import Completions, Constraint, Error, State, Vocabulary, apply_mask, json_schema, tool_calls
from ._answer import Answer, read_answer, read_value
from ._answer import check_budget as _check_budget
from ._tools import format_for
from ._trace import Tracer

__all__ = ["Answer", "CausalModel", "LogitsProcessor", "generate_json", "generate_with_tools", "read_answer", "vocabulary_of"]


class LogitsProcessor(transformers.LogitsProcessor):
    """Lets generation write only what a constraint allows.

    The tokens after the prompt determine a row's state, so beams may be reordered, and drafts tried and rejected, in
    any order. Rows with tokens that are not allowed, such as rejected drafts, are not masked. One object serves one
    call of `generate`; its prompts are padded on the left to one length.

    constraint: over the model's vocabulary, whose end tokens end generation (`eos_token_id`).
    prompt_length: number of tokens in `input_ids` before the first generated one.
    max_new_tokens: if given, only tokens that leave room for the end of the answer are allowed, so no answer is cut;
        Error invalid_option if the shortest answer is longer.
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
        self._memory = bytearray()  # of masks [rows, W]
        self._tracer: Tracer | None = None

    def state(self, tokens: torch.Tensor) -> State | None:
        """The state after generated tokens [L]; None if they are not allowed."""
        row = tokens.tolist()
        key = array.array("q", row).tobytes()
        if key in self._known:
            return self._known[key]
        before = key[:-8]
        if before in self._known:
            state = self._known[before]
            if state is not None:
                state = self.constraint.advance(state, row[-1])
        else:
            state = self.constraint.advance_tokens(self.constraint.initial(), row)
        if len(self._known) >= self._most_known:  # the oldest
            for old in list(self._known)[: self._most_known // 2]:
                del self._known[old]
        self._known[key] = state
        return state

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """scores [B, V] -> [B, V], minus infinity for tokens that are not allowed."""
        begin = Tracer.now()
        generated = input_ids[:, self.prompt_length :].cpu()
        states = [self.state(row) for row in generated]
        rows = [i for i, state in enumerate(states) if state is not None]
        size = 4 * self.constraint.mask_words  # of a mask, in bytes
        if len(self._memory) != len(states) * size:
            self._memory = bytearray(len(states) * size)
        words = memoryview(self._memory).cast("i", (len(states), self.constraint.mask_words))
        self.constraint.fill_masks([states[i] for i in rows], words, rows)
        if self._completions is not None:
            remaining = self.max_new_tokens - generated.shape[1]
            for i in rows if remaining > 0 else ():
                if not self.constraint.is_finished(states[i]):
                    self._completions.narrow(states[i], remaining, words, i)
        masked = scores.clone()
        apply_mask(masked, words, rows)
        if self._tracer is not None:
            for i in rows:
                self._tracer.allow(array.array("q", generated[i].tolist()).tobytes(), self._memory[i * size : (i + 1) * size])
            self._tracer.masked(begin)
        return masked


class CausalModel:
    """A causal model of transformers as a tooldecode.Model, for order_consistency.

    Its caches are DynamicCache objects; sequences of one call run one after another. vocabulary_size: V of the constraint, if
    the vocabulary has more ids than the model has logits.
    """

    def __init__(self, model: Any, vocabulary_size: int = 0) -> None:
        self.model = model
        self.vocabulary_size = max(vocabulary_size, model.config.get_text_config().vocab_size)

    def make_cache(self) -> transformers.DynamicCache:
        return transformers.DynamicCache()

    def fork(self, cache: transformers.DynamicCache) -> transformers.DynamicCache:
        return copy.deepcopy(cache)

    def truncate(self, cache: transformers.DynamicCache, length: int) -> None:
        if length < cache.get_seq_length():  # crop(0) would drop nothing
            cache.crop(length - cache.get_seq_length())

    def forward(self, caches: Sequence[transformers.DynamicCache], tokens: Sequence[Sequence[int]]) -> torch.Tensor:
        rows = torch.full((len(caches), self.vocabulary_size), float("-inf"), dtype=torch.float32)
        with torch.inference_mode():
            for row, cache, sequence in zip(rows, caches, tokens):
                inputs = torch.tensor([sequence], device=self.model.device)
                logits = self.model(input_ids=inputs, past_key_values=cache, use_cache=True).logits[0, -1]
                row[: len(logits)] = logits.float()
        return rows


_usual_tokens = 1024

_vocabularies: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def vocabulary_of(tokenizer: Any, model: Any = None, end_tokens: Sequence[int] | int | None = None) -> Vocabulary:
    """The vocabulary of a tokenizer; cached until tokens are added. Its end tokens are `end_tokens`, else those of the model's
    generation_config, else the tokenizer's. It has at least as many ids as the model has logits."""
    if end_tokens is None and model is not None:
        end_tokens = model.generation_config.eos_token_id
    if end_tokens is None:
        end_tokens = tokenizer.eos_token_id
    ends = (end_tokens,) if isinstance(end_tokens, int) else tuple(end_tokens or ())
    count = size = len(tokenizer)
    if model is not None:
        size = max(size, model.config.get_text_config().vocab_size)
    known = _vocabularies.setdefault(tokenizer, {})
    key = ends, size, count  # tokens may be added where the model has room for them
    if key not in known:
        known[key] = Vocabulary.from_huggingface(tokenizer, list(ends) or None, size=size)
    return known[key]


def _format_of(tokenizer: Any, chat_template: str | None) -> str:
    """The format of calls, by the tokenizer's chat template or by another one, which may be a name among the tokenizer's."""
    template = tokenizer if chat_template is None else _template_of(tokenizer, tokenizer.get_chat_template(chat_template))
    return format_for(template, hint="pass format, such as one of tooldecode.formats()")


class _Template:
    """A tokenizer with another chat template."""

    def __init__(self, tokenizer: Any, chat_template: str) -> None:
        self._tokenizer, self.chat_template = weakref.ref(tokenizer), chat_template

    def apply_chat_template(self, messages: Sequence[dict[str, Any]], **options: Any) -> Any:
        return self._tokenizer().apply_chat_template(messages, chat_template=self.chat_template, **options)


_most_templates = 16  # of a tokenizer

# They live as long as their tokenizer, so that `format_for` knows them again.
_templates: weakref.WeakKeyDictionary[Any, dict[str, _Template]] = weakref.WeakKeyDictionary()


def _template_of(tokenizer: Any, text: str) -> _Template:
    known = _templates.setdefault(tokenizer, {})
    if text not in known:
        for old in list(known)[: 1 - _most_templates]:
            known.pop(old, None)
        known[text] = _Template(tokenizer, text)
    return known[text]


class _Rounds:
    """A streamer that records how many tokens each pass returns, and forwards them to another streamer."""

    def __init__(self, tracer: Tracer, other: Any = None) -> None:
        self._tracer, self._other = tracer, other
        self._is_prompt = True

    def put(self, value: torch.Tensor) -> None:
        if not self._is_prompt:
            self._tracer.came(value.shape[1] if value.ndim > 1 else 1)
        self._is_prompt = False
        if self._other is not None:
            self._other.put(value)

    def end(self) -> None:
        if self._other is not None:
            self._other.end()


def _generate(
    model: Any, tokenizer: Any, constraint: Constraint, vocabulary: Vocabulary, prompt: Any, generate_arguments: dict[str, Any]
) -> tuple[list[int], Tracer, str]:
    """The tokens that `generate` writes after a prompt under a constraint, how they came, and the option that has ended them
    if no end token has."""
    length = prompt["input_ids"].shape[1]
    if not {"max_new_tokens", "max_length", "generation_config"} & generate_arguments.keys():
        # The default of transformers is 20 tokens, which cuts most calls.
        usual = model.generation_config.max_new_tokens or _usual_tokens
        positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        if positions is not None and length >= positions:
            raise Error("limit_exceeded", "messages", f"{length} tokens: must be less than {positions}, the model's positions")
        generate_arguments["max_new_tokens"] = usual if positions is None else min(usual, positions - length)
    options = generate_arguments.get("generation_config") or model.generation_config
    budget = generate_arguments.get("max_new_tokens")
    if budget is None and "max_length" not in generate_arguments:
        budget = options.max_new_tokens
    tracer = Tracer(drafts_first=generate_arguments.get("assistant_model") is not None)
    processor = LogitsProcessor(constraint, length, budget)
    processor._tracer = tracer
    beams = generate_arguments.get("num_beams") or getattr(options, "num_beams", None) or 1
    is_paged = generate_arguments.get("cache_implementation") == "paged"
    if beams == 1 and not is_paged and "custom_generate" not in generate_arguments:  # these accept no streamer
        generate_arguments["streamer"] = _Rounds(tracer, generate_arguments.get("streamer"))
    processors = transformers.LogitsProcessorList([*(generate_arguments.pop("logits_processor", None) or ()), processor])
    generate_arguments.setdefault("eos_token_id", vocabulary.end_tokens)
    if generate_arguments.get("stop_strings") or getattr(options, "stop_strings", None):
        generate_arguments["tokenizer"] = tokenizer  # a caller has no other way to pass it
    generated = model.generate(**prompt, logits_processor=processors, **generate_arguments)
    tracer.stop()
    sequences = generated if isinstance(generated, torch.Tensor) else generated.sequences
    tokens = sequences[0, length:].tolist()
    return tokens, tracer, _limit(generate_arguments, (options, model.generation_config), budget, length, len(tokens))


def _limit(arguments: dict[str, Any], configurations: Sequence[Any], budget: int | None, prompt_length: int, count: int) -> str:
    """The option that ends an answer of `count` tokens without an end token: names of several, if each may; empty if unknown."""
    def given(name: str) -> Any:
        values = [arguments.get(name), *(getattr(one, name, None) for one in configurations)]
        return next((value for value in values if value is not None), None)

    if budget is not None and count >= budget:
        return "max_new_tokens"
    longest = given("max_length") if budget is None else None
    if longest is not None and prompt_length + count >= longest:
        return "max_length"
    others = [name for name in ("max_time", "stop_strings", "stopping_criteria") if given(name)]
    # Without a limit that is given, transformers has its own max_length.
    return ", ".join(others) or ("max_length" if budget is None else "")


def _prompt(
    model: Any, tokenizer: Any, messages: Sequence[dict[str, Any]], template_options: dict[str, Any] | None, **more: Any
) -> Any:
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True,
                                         **more, **(template_options or {})).to(model.device)


def generate_with_tools(
    model: Any,
    tokenizer: Any,
    messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any] | Callable],
    format: str | None = None,
    *,
    choice: str = "auto",
    name: str = "",
    reasoning: bool | tuple[str, str] = False,
    constraint_options: dict[str, Any] | None = None,
    template_options: dict[str, Any] | None = None,
    **generate_arguments: Any,
) -> Answer:
    """Generates an answer to messages that may call tools. Every call conforms.

    tools: documents, or functions that apply_chat_template accepts. format: as in tool_calls; None: the one that the
    environment variable TOOLDECODE_FORMAT names, else the one in which the chat template writes calls, with what such models
    fall back to. Error unknown_format if that is none of tooldecode.formats(). choice, name, reasoning, constraint_options:
    arguments of tool_calls. template_options: arguments of apply_chat_template. generate_arguments: arguments of `generate`.
    No answer is cut by `max_new_tokens`; without a limit it is 1024, or fewer if the model has fewer positions left. Greedy
    decoding, sampling, beams, prompt lookup and assisted generation are supported.
    """
    documents = [tool if isinstance(tool, dict) else transformers.utils.get_json_schema(tool) for tool in tools]
    vocabulary = vocabulary_of(tokenizer, model, generate_arguments.get("eos_token_id"))
    if format is None:
        format = _format_of(tokenizer, (template_options or {}).get("chat_template"))
    constraint = tool_calls(vocabulary, documents, format, choice=choice, name=name, reasoning=reasoning,
                            **(constraint_options or {}))
    prompt = _prompt(model, tokenizer, messages, template_options, tools=documents or None)
    tokens, tracer, _ = _generate(model, tokenizer, constraint, vocabulary, prompt, generate_arguments)
    answer = read_answer(constraint, tokens)
    answer.trace = tracer.trace(tokens[: len(answer.tokens) + answer.is_whole], answer.is_whole, vocabulary,
                                tokenizer.convert_ids_to_tokens)
    return answer


def generate_json(
    model: Any,
    tokenizer: Any,
    messages: Sequence[dict[str, Any]],
    schema: Any,
    *,
    constraint_options: dict[str, Any] | None = None,
    template_options: dict[str, Any] | None = None,
    **generate_arguments: Any,
) -> Any:
    """Generates a value that conforms to a JSON Schema, and returns it: parsed, or as an object of a Pydantic class.

    schema: a dictionary, its JSON text, or a class of Pydantic. The model does not see it, unless the messages have it.
    constraint_options: arguments of json_schema. template_options, generate_arguments: as in generate_with_tools; no answer
    is cut by `max_new_tokens`, and one that `max_length`, `stop_strings` or the like cuts is Error limit_exceeded.
    """
    vocabulary = vocabulary_of(tokenizer, model, generate_arguments.get("eos_token_id"))
    constraint = json_schema(vocabulary, schema, **(constraint_options or {}))
    prompt = _prompt(model, tokenizer, messages, template_options)
    tokens, _, limit = _generate(model, tokenizer, constraint, vocabulary, prompt, generate_arguments)
    return read_value(constraint, vocabulary, tokens, schema, limit)
