"""Reads whole answers from generated tokens, and checks whether an answer fits a budget."""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import CallStream, Completions, Constraint, Error, ToolCall, Vocabulary

__all__ = ["Answer", "check_budget", "read_answer", "read_value"]


@dataclass
class Answer:
    """A model's answer.

    tokens: the generated tokens, without the end token. is_whole: whether an end token ended the answer, so nothing was
    cut; `calls` does not contain a call that was cut.

    trace: how the answer came about, if `generate_with_tools` made it; else None. You can write it as JSON. It has the
    names of the program's traces, as far as the values are known: `text`, `finish` ("end" or "length"), `tokens` and
    `totals`.

    Each entry of `tokens`, including the end token (`end`), has `id` and `text`; `bytes` and `name` if the text does
    not give them; `allowed`, the number of tokens in the mask; `microseconds` since the previous token; and `kind`:
    "forced" (the only allowed token), "drafted" (guessed and read in one pass with the tokens before it) or "sampled".
    The engine's loop makes a pass for forced tokens too. Beam search has no times of tokens.

    `totals` has `tokens`, `forced_tokens`, `accepted_tokens` (drafted tokens), `passes`, and three times that add up to
    the whole: `prefill_microseconds` up to the first mask (with an assistant model: the first tokens),
    `constraint_microseconds` for masks, and `model_microseconds` for the rest: passes, sampling and drafts.

    Comparisons of answers ignore the trace.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    is_whole: bool = False
    trace: dict[str, Any] | None = field(default=None, compare=False, repr=False)


def read_answer(constraint: Constraint, tokens: Iterable[int]) -> Answer:
    """Reads an answer from generated tokens. Error malformed_call for tokens that a `tool_calls` constraint forbids."""
    stream, state, answer = CallStream(constraint), constraint.initial(), Answer()
    events = []
    for token in tokens:
        events += stream.push(token)
        state = constraint.advance(state, token)
        if state is None or constraint.is_finished(state):
            break
        answer.tokens.append(token)
    answer.is_whole = state is not None and constraint.is_finished(state)
    name, arguments = "", ""
    for event in events + stream.finish():
        if event.kind == "text":
            answer.text += event.text
        elif event.kind == "reasoning":
            answer.reasoning += event.text
        elif event.kind == "call_begin":
            name, arguments = event.text, ""
        elif event.kind == "arguments":
            arguments += event.text
        elif event.kind == "call_end":
            answer.calls.append(ToolCall(name, json.loads(arguments)))
    return answer


def read_value(constraint: Constraint, vocabulary: Vocabulary, tokens: Iterable[int], schema: Any, option: str) -> Any:
    """The value of a `json_schema` constraint's answer: parsed, or what a class of Pydantic makes of it. Error
    limit_exceeded, with the option that ended the answer if it is known, if the answer is cut."""
    state, written = constraint.initial(), []
    for token in tokens:
        following = constraint.advance(state, token)
        if following is None:  # padding behind a row that something else has stopped
            break
        state = following
        if constraint.is_finished(state):
            break
        written.append(token)
    text = vocabulary.decode(written)
    # A value may be whole where the answer stops without its end token. Only of a number more digits could follow.
    if not constraint.is_finished(state) and (not constraint.is_accepting(state) or text[-1:].isdigit()):
        raise Error("limit_exceeded", option, f"{option + ': ' if option else ''}the answer is cut after {len(written)} tokens")
    return schema.model_validate_json(text.decode()) if hasattr(schema, "model_validate_json") else json.loads(text)


def check_budget(completions: Completions, constraint: Constraint, tokens: int, option: str) -> None:
    """Raises Error invalid_option if `tokens` are fewer than the shortest answer needs."""
    shortest = completions.shortest(constraint.initial(), tokens)
    if shortest is None or shortest > tokens:
        raise Error("invalid_option", option,
                    f"{option} {tokens}: must be no less than the shortest answer, "
                    f"{'which is not known' if shortest is None else shortest}")
