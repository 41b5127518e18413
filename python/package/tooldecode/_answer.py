"""Whole answers: what generated tokens say, and whether a budget leaves room for one."""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import CallStream, Completions, Constraint, Error, ToolCall

__all__ = ["Answer", "check_budget", "read_answer"]


@dataclass
class Answer:
    """What a model has answered.

    tokens: those generated, up to and without the one that ended them. is_whole: whether one ended them, so that nothing
    was cut; a call that was cut is not among `calls`.

    trace: how it came about, of `generate_with_tools`; else None. It can be written as JSON, with the names of the
    program's traces, as far as things are known here: `text`, `finish` ("end" or "length"), `tokens` and `totals`.

    Of each token, the one that ended the answer too (`end`): `id`, `text`, `bytes` and `name` where the text does not say
    it, `allowed`, how many the mask left, `microseconds` since the token before, and its `kind`: "forced", the only one
    allowed, "drafted", guessed and read in one pass with those before it, or "sampled". The engine's loop makes a pass
    for forced tokens, too. Beam search has no times of tokens.

    Of `totals`: `tokens`, `forced_tokens`, `accepted_tokens`, which had been drafted, `passes`, and three times that are
    the whole: `prefill_microseconds` up to the first mask (with an assistant model: the first tokens),
    `constraint_microseconds` of masks, and `model_microseconds` of the rest, passes, sampling and drafts.
    Answers are equal whatever their traces.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    is_whole: bool = False
    trace: dict[str, Any] | None = field(default=None, compare=False, repr=False)


def read_answer(constraint: Constraint, tokens: Iterable[int]) -> Answer:
    """The answer that generated tokens are; Error malformed_call for what a `tool_calls` constraint does not allow."""
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


def check_budget(completions: Completions, constraint: Constraint, tokens: int, option: str) -> None:
    """Error invalid_option where so many tokens are less than the shortest answer."""
    shortest = completions.shortest(constraint.initial(), tokens)
    if shortest is None or shortest > tokens:
        raise Error("invalid_option", option,
                    f"{option} {tokens}: must be no less than the shortest answer, "
                    f"{'which is not known' if shortest is None else shortest}")
