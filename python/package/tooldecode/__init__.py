"""Correct tool calls from a language model: masks of the tokens that may follow.

    vocabulary = tooldecode.Vocabulary.load("tokenizer.json")
    calls = tooldecode.tool_calls(vocabulary, tools, "hermes")
    state = calls.initial()
    calls.fill_mask(state, mask)           # int32 or uint32, [ceil(V / 32)]
    tooldecode.apply_mask(logits, mask)    # minus infinity for tokens that are not allowed
    state = calls.advance(state, token)    # None if the token is not allowed
"""
from ._core import (
    CallStream,
    Completions,
    Constraint,
    State,
    ThreadPool,
    ToolCallFSM,
    Vocabulary,
    choice,
    ebnf,
    fill_masks,
    formats,
    json_schema,
    lark,
    openings,
    regex,
    structural_tag,
    tool_calls,
)
from ._core import version as __version__
from ._masks import apply_mask
from ._order_consistency import CallVote, Consensus, Model, ParameterVote, VotedValue, order_consistency
from ._types import Error, Note, RefusedText, StreamEvent, ToolCall

__all__ = [
    "CallStream",
    "CallVote",
    "Completions",
    "Consensus",
    "Constraint",
    "Error",
    "Model",
    "Note",
    "ParameterVote",
    "RefusedText",
    "State",
    "StreamEvent",
    "ThreadPool",
    "ToolCall",
    "ToolCallFSM",
    "Vocabulary",
    "VotedValue",
    "__version__",
    "apply_mask",
    "choice",
    "ebnf",
    "fill_masks",
    "formats",
    "json_schema",
    "lark",
    "openings",
    "order_consistency",
    "regex",
    "structural_tag",
    "tool_calls",
]
