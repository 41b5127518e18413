"""For SGLang 0.5: the grammar backend `tooldecode`.

    python -m sglang.launch_server --model-path MODEL --grammar-backend tooldecode

SGLang finds `register` through its entry point in every process. SGLang's options for white space in JSON apply. The
environment variable TOOLDECODE_THREADS sets how many threads write the masks of a batch (2).
"""
from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)

from . import Constraint, Error, ThreadPool, ToolCallFSM, Vocabulary, fill_masks, regex
from ._engine import CONFINED, Answer, array_of, build, vocabulary_of
from ._known import Known, shares_memory
from ._tools import ToolRequest, log_readings

__all__ = ["NAME", "ToolDecodeBackend", "ToolDecodeGrammar", "create", "register"]

NAME = "tooldecode"

logger = logging.getLogger("sglang.tooldecode")


class _Masks:
    """SGLang's operations on masks, for grammars and backends: int32 [B, ceil(V / 32)], 1 for allowed tokens."""

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow everything, in pinned memory for asynchronous copies to a GPU."""
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """logits [B, V]: set to minus infinity for tokens that are not allowed."""
        if logits.device.type in ("cuda", "xpu", "musa"):
            if torch.version.hip:
                from sgl_kernel import apply_token_bitmask_inplace_cuda as apply
            else:
                from sglang.kernels.ops.grammar.bitmask_ops import apply_token_bitmask_inplace_triton as apply
            apply(logits, vocab_mask)
        elif logits.device.type == "npu":
            import sgl_kernel_npu  # noqa: F401

            torch.ops.npu.apply_token_bitmask(logits, vocab_mask)
        else:
            bits = torch.arange(32, dtype=torch.int32, device=logits.device)
            allowed = ((vocab_mask[:, :, None] >> bits) & 1).flatten(1)[:, : logits.shape[1]]
            logits[:, : allowed.shape[1]].masked_fill_(allowed == 0, -float("inf"))


class _Text:
    """What a request asks for, and its constraint for all requests that ask for the same. SGLang keeps every text, so a
    constraint of memory that is full is given up, and built again when it is asked for."""

    def __init__(self, make: Callable[[], Constraint], keep: Callable[[_Text, Constraint], None]) -> None:
        self._make, self._keep = make, keep
        self._lock = threading.Lock()
        self._known: Known | None = None

    def constraint(self) -> Constraint:
        known = self._known
        if known is None:
            with self._lock:
                known = self._known
                if known is None:
                    known = self._known = Known(self._make())
                    self._keep(self, known.constraint)
        return known.constraint

    def give_up(self) -> None:
        self._known = None

    @property
    def is_given_up(self) -> bool:
        return self._known is None

    def renew(self) -> bool:
        known = self._known
        return known is not None and known.renew()


class ToolDecodeGrammar(_Masks, BaseGrammarObject):
    """The state of one request's answer.

    Where its constraint fails, as by the limit of a mask, nothing is raised where SGLang would end its scheduler: masks allow
    one token without text, and `accept_token` then raises the ValueError by which SGLang aborts this request alone. That
    token is no end, which SGLang would take for the answer's before it asks.

    is_guess: whether tokens are those of a draft tree.
    """

    is_guess = False

    def __init__(self, text: _Text, backend: ToolDecodeBackend, key: tuple[str, str], stats: GrammarStats) -> None:
        super().__init__()
        self._text = text
        self._backend = backend
        self._key = key
        self._can_force = True
        self._forced: dict[Any, list[int]] = {}  # not shared: each rank must draft the same
        self.grammar_stats = stats

    @functools.cached_property
    def _answer(self) -> Answer:
        # Made at first use: the grammars in SGLang's cache, which are only copied, keep no states.
        backend, failure = self._backend, None
        try:
            constraint = self._text.constraint()
        except CONFINED as error:  # it was built before, so that its request is known to be valid
            constraint, failure = regex(backend.vocabulary, ""), error
        answer = Answer(constraint, backend.vocabulary, size=backend.size, last_tokens=backend.silent_tokens)
        if failure is not None:
            answer.fail(failure)
        return answer

    def accept_token(self, token: int) -> None:
        """ValueError for a token that is not allowed. Tokens after the end change nothing."""
        if not self._answer.accept(token):
            failure = self._answer.failure
            if failure is None:
                raise ValueError(f"Token {token} is not allowed by the {self._key[0]} {self._key[1][:200]!r}")
            if not self.is_guess:
                raise ValueError(f"The {self._key[0]} {self._key[1][:200]!r} failed: {failure}") from failure
            self._answer.stay(token)
        self.current_token = token

    def rollback(self, k: int) -> None:
        self._answer.rollback(k)

    def is_terminated(self) -> bool:
        return self._answer.is_terminated

    def copy(self) -> ToolDecodeGrammar:
        """A new answer under the same constraint, for another request."""
        stats = dataclasses.replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
        self._backend.ask(self._text)
        return ToolDecodeGrammar(self._text, self._backend, self._key, stats)

    def draft(self, limit: int, guess: Callable[[list[int]], Sequence[int]]) -> list[int]:
        """At most `limit` tokens that may follow: those that the constraint forces, by the model's tokenizer, and between
        them what is guessed, as long as it is allowed. guess: gets the tokens that are drafted so far."""
        if self._can_force:
            try:
                return self._answer.draft((), limit, self._forced, guess)
            except Error as error:  # such as a vocabulary without a tokenizer
                self._can_force = False
                logger.warning("Forced tokens are not drafted any more for a request: %s", error)
        tokens = guess([])
        return list(tokens[: min(limit, self._answer.allowed(tokens))])

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self._answer.fill(array_of(vocab_mask), idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Writes the masks of a batch in one call, on several threads if the batch is large."""
        own = [entry for entry in entries if type(entry.grammar) is ToolDecodeGrammar and entry.grammar._answer.is_plain]
        done = set()
        if own:
            answers = [entry.grammar._answer for entry in own]
            array = array_of(vocab_mask)
            pool = own[0].grammar._backend.pool if len(own) >= 64 else None
            try:
                fill_masks([answer.constraint for answer in answers], [answer.state for answer in answers], array,
                           [entry.row for entry in own], pool)
                done = {entry.row for entry in own}
            except CONFINED as error:  # it does not say whose mask it is
                logger.warning("The masks of a batch are written one by one, as one of them fails: %s", error)
        for entry in entries:  # such as requests in a reasoning block
            if entry.row not in done:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    def __repr__(self) -> str:
        return f"ToolDecodeGrammar({self._key[0]}, {self._key[1][:80]!r})"


def _with_schemas(tag: Any) -> Any:
    """Replaces null schemas of a structural tag by schemas for any value, as SGLang interprets them."""
    if isinstance(tag, list):
        return [_with_schemas(one) for one in tag]
    if not isinstance(tag, dict):
        return tag
    tag = {key: value if key in ("schema", "json_schema") else _with_schemas(value) for key, value in tag.items()}
    for key in ("schema", "json_schema"):
        if key in tag and tag[key] is None:
            tag[key] = {}
    return tag


class ToolDecodeBackend(_Masks, BaseGrammarBackend):
    """Shared by a scheduler's requests: the vocabulary and recent constraints.

    whitespace: most bytes of optional white space in JSON. threads: number of threads that write the masks of a large
    batch. size: the model's logits, which may be fewer than the vocabulary's ids.
    """

    def __init__(self, vocabulary: Vocabulary, *, whitespace: int = 40, threads: int = 2, size: int = 0) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.size = size or vocabulary.size
        self._lock = threading.Lock()  # several threads compile
        self._texts: weakref.WeakSet[_Text] = weakref.WeakSet()
        self._newest: Constraint | None = None
        self.pool = ThreadPool(threads - 1) if threads > 1 else None
        self._whitespace = whitespace

    def _dispatch(self, kind: str, text: str, name: str) -> BaseGrammarObject:
        asked = _Text(lambda: self._build(kind, text), self._keep)
        try:
            asked.constraint()
        except ValueError as error:  # includes tooldecode.Error
            return InvalidGrammarObject(str(error))
        return ToolDecodeGrammar(asked, self, (kind, text), GrammarStats(dispatch_type=name))

    def _build(self, kind: str, text: str) -> Constraint:
        constraint = build(self.vocabulary, kind, text, self._whitespace)
        if isinstance(constraint, ToolCallFSM):
            log_readings(ToolRequest.of_text(text), constraint)
        if self.pool is not None:  # while the prompt is read
            constraint.prepare(pool=self.pool)
        return constraint

    @functools.cached_property
    def silent_tokens(self) -> list[int]:
        """A token that writes nothing and ends nothing, or else any that ends nothing."""
        ends = set(self.vocabulary.end_tokens)
        others = [token for token in range(min(self.size, self.vocabulary.size)) if token not in ends]
        return [next((token for token in others if not self.vocabulary.decode([token])), others[0])]

    def _keep(self, text: _Text, constraint: Constraint) -> None:
        """Where a constraint is the first in new memory, the others give up theirs."""
        with self._lock:
            if self._newest is not None and not shares_memory(self._newest, constraint):
                for other in list(self._texts):
                    if other is not text:
                        other.give_up()
            self._newest = constraint
            self._texts.add(text)

    def ask(self, text: _Text) -> None:
        """For a new request, whose prompt is read meanwhile."""
        if text.is_given_up:
            self.executor.submit(text.constraint)  # who needs it gets the error
        elif text.renew():
            self.executor.submit(self._renew_all)

    def _renew_all(self) -> None:
        """One that is not asked for again would keep the old memory."""
        with self._lock:
            for text in list(self._texts):
                text.renew()
            if self._newest is not None:
                self._newest = self._newest.renew()

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("json", "{}" if key_string == "$$ANY$$" else key_string, "json")

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("regex", key_string, "regex")

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("grammar", key_string, "ebnf")

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        if ToolRequest.is_text(key_string):  # of this package's tool-call parser
            return self._dispatch("grammar", key_string, "structural_tag")
        try:
            text = json.dumps(_with_schemas(json.loads(key_string)), ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            return InvalidGrammarObject(f"structural tag: {error}")
        return self._dispatch("structural_tag", text, "structural_tag")

    @property
    def is_support_token_filter(self) -> bool:
        return True

    @staticmethod
    def set_token_filter(vocab_mask: torch.Tensor, token_ids: Sequence[int], batch_idx: int, is_allowed: bool = True,
                         reset_vocab_mask: bool = True) -> None:
        """Allows or forbids tokens in a row. With `reset_vocab_mask` all other tokens get the opposite."""
        from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

        set_token_filter_torch(vocab_mask, list(token_ids), batch_idx, is_allowed=is_allowed,
                               reset_vocab_mask=reset_vocab_mask)


def _mark_guesses() -> None:
    """Tells grammars that they are in a draft tree, where SGLang lets an error end its scheduler."""
    from sglang.srt.speculative import spec_utils

    before = getattr(spec_utils, "traverse_tree", None)
    if before is None or hasattr(before, "_tooldecode"):
        if before is None:
            logger.warning("With this version of SGLang a constraint that fails in a draft ends the scheduler")
        return

    @functools.wraps(before)
    def traverse_tree(next_token: Any, next_sibling: Any, tokens: Any, grammar: Any, *arguments: Any, **named: Any) -> Any:
        own = getattr(grammar, "grammar", grammar)  # inside SGLang's wrapper for reasoning
        if not isinstance(own, ToolDecodeGrammar):
            return before(next_token, next_sibling, tokens, grammar, *arguments, **named)
        own.is_guess = True
        try:
            return before(next_token, next_sibling, tokens, grammar, *arguments, **named)
        finally:
            own.is_guess = False

    traverse_tree._tooldecode = True
    spec_utils.traverse_tree = traverse_tree


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Collection[int] | None) -> BaseGrammarBackend:
    """The backend of a scheduler, inside SGLang's wrapper for reasoning if the server has a reasoning parser."""
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    most = serving.constrained_json_max_whitespace_cnt
    whitespace = 0 if serving.constrained_json_disable_any_whitespace else 40 if most is None else most
    ends = set(eos_token_ids or ()) or {tokenizer.eos_token_id}
    backend: BaseGrammarBackend = ToolDecodeBackend(
        vocabulary_of(tokenizer, vocab_size, ends), whitespace=whitespace,
        threads=int(os.environ.get("TOOLDECODE_THREADS", "2")), size=vocab_size)
    _mark_guesses()
    # SGLang wraps only its own backends.
    if serving.reasoning_parser:
        from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
        from sglang.srt.parser.reasoning_parser import ReasoningParser

        parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
        if parser.detector.get_think_end_token_ids(tokenizer):
            backend = ReasonerGrammarBackend(backend, parser, tokenizer,
                                             enable_strict_thinking=serving.enable_strict_thinking)
    return backend


def register() -> None:
    """Registers the backend, the tool-call parsers and the drafts with SGLang in this process; further calls have no effect."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    register_grammar_backend(NAME, create)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    from .sglang_detector import register_detectors

    register_detectors()
    if os.environ.get("TOOLDECODE_TOOL_CACHE"):
        from .sglang_tool_cache import add_to_server

        add_to_server()
    try:  # another version may ask more of an algorithm
        from .sglang_drafts import register_algorithm

        register_algorithm()
    except Exception:
        logger.exception("--speculative-algorithm TOOLDECODE is not available with this version of SGLang")
