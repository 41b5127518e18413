"""Order consistency: calls sampled under several orders of their parameters, with a vote on each value."""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from . import _core
from ._types import ToolCall

__all__ = ["CallVote", "Consensus", "Model", "ParameterVote", "VotedValue", "order_consistency"]


class Model(Protocol):
    """A language model over caches that the caller keeps. A cache is any object; it holds the tokens that it has read."""

    def make_cache(self) -> Any:
        """An empty cache."""

    def fork(self, cache: Any) -> Any:
        """Another cache with the same content."""

    def truncate(self, cache: Any, length: int) -> None:
        """Drops all but the first `length` tokens."""

    def forward(self, caches: Sequence[Any], tokens: Sequence[Sequence[int]]) -> Any:
        """Appends tokens to each of several different caches; float32 logits [B, V] behind the last token of each, in the
        CPU's memory, as NumPy and torch have them."""


class VotedValue(NamedTuple):
    """What some orders chose for a parameter.

    value: as JSON has it; None if `is_left_out`, which is a vote too. probability: geometric mean over its tokens.
    """

    value: Any
    is_left_out: bool
    votes: int
    probability: float


class ParameterVote(NamedTuple):
    """The vote on one parameter: its choices, the winner first, and the winner's share of the votes."""

    key: str
    agreement: float
    choices: list[VotedValue]


class CallVote(NamedTuple):
    """How a call was decided.

    orders: how many there are, at most `max_orders`; sampled: how many ran. is_written: False if the answer had to end
    before the call.
    """

    call: ToolCall
    orders: int
    sampled: int
    is_written: bool
    parameters: list[ParameterVote]


class Consensus(NamedTuple):
    """An answer and the votes on its calls.

    tokens: without the end token. is_whole: whether an end token ended it. passes: of the model, those of all orders
    together. sampled_tokens: of all orders, those that were not used too.
    """

    tokens: list[int]
    is_whole: bool
    calls: list[CallVote]
    passes: int
    sampled_tokens: int


def order_consistency(
    constraint: _core.ToolCallFSM,
    model: Model,
    prompt: Sequence[int],
    *,
    max_orders: int = _core.usual_orders,
    max_tokens: int = 256,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    adaptive: bool = True,
) -> Consensus:
    """Answers a prompt; each call is sampled under up to `max_orders` orders of its parameters, and a majority vote picks
    each value (Tool Decoding's order consistency).

    The orders share the prompt's cache and the passes of the model. The answer is never cut: Error invalid_option if the
    shortest one is longer than `max_tokens`. temperature 0 is greedy. adaptive: orders that could not change a winner do
    not run; the answer is the same. Exceptions of the model pass through.
    """
    tokens, is_whole, votes, passes, sampled = _core.order_consistency(
        constraint, model, prompt, max_orders, max_tokens, temperature, top_k, top_p, seed, adaptive)
    return Consensus(tokens, is_whole, [_vote_of(vote) for vote in json.loads(votes)], passes, sampled)


def _vote_of(vote: dict[str, Any]) -> CallVote:
    parameters = [ParameterVote(one["key"], one["agreement"], [
        VotedValue(choice.get("value"), "value" not in choice, choice["votes"], choice["probability"]) for choice in one["choices"]])
        for one in vote["parameters"]]
    return CallVote(ToolCall(vote["name"], vote["arguments"]), vote["orders"], vote["sampled"], vote["written"], parameters)
