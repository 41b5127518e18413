"""Whole answers: what generated tokens say, and whether a budget leaves room for one."""
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import CallStream, Completions, Constraint, Error, ToolCall

__all__ = ["Answer", "check_budget", "read_answer"]


@dataclass
class Answer:
    """What a model has answered.

    tokens: those generated, up to and without the one that ended them. is_whole: whether one ended them, so that nothing
    was cut; a call that was cut is not among `calls`.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    is_whole: bool = False


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
