"""Shared by the backends for engines: vocabularies, constraints of requests, and the state of an answer."""
from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from . import Constraint, Error, State, Vocabulary, choice, ebnf, json_schema, lark, regex, structural_tag
from ._tools import ToolRequest

__all__ = ["CONFINED", "Answer", "array_of", "build", "vocabulary_of"]

# Errors of one request's constraint, which must not end what serves the others too.
CONFINED = (Error, MemoryError)

logger = logging.getLogger("tooldecode")


def vocabulary_of(tokenizer: Any, size: int, end_tokens: Collection[int], memory_bytes: int = 0) -> Vocabulary:
    """The vocabulary of an engine's tokenizer, with at least `size` ids and these end tokens.

    Accepts fast tokenizers of transformers, tokenizers of mistral-common, tokenizers with a tiktoken encoding, and
    SentencePiece tokenizers with a file; Error malformed_vocabulary for any other.
    """
    ends = sorted(end_tokens)

    def options(count: int) -> dict[str, int]:
        return {"size": max(size, count), "memory_bytes": memory_bytes}

    if hasattr(tokenizer, "backend_tokenizer"):
        return Vocabulary.from_huggingface(tokenizer, ends, **options(len(tokenizer)))
    inner = getattr(tokenizer, "tokenizer", None)  # mistral-common's tokenizer inside vLLM's
    if hasattr(inner, "id_to_byte_piece") and hasattr(inner, "n_words"):
        control = [i for i in range(inner.n_words) if inner.is_special(i)]
        names = set(control)
        tokens = [inner.id_to_piece(i).encode() if i in names else inner.id_to_byte_piece(i, None)
                  for i in range(inner.n_words)]
        return Vocabulary.from_bytes(tokens, ends, control_tokens=control, **options(len(tokens)))
    for encoding in (getattr(tokenizer, "model", None), inner):
        if hasattr(encoding, "_mergeable_ranks"):
            return Vocabulary.from_tiktoken(encoding, ends, **options(encoding.n_vocab))
    path = str(getattr(tokenizer, "vocab_file", None) or "")
    if path.endswith(".model"):
        return Vocabulary.from_sentencepiece(path, ends, **options(len(tokenizer)))
    raise Error("malformed_vocabulary", "tokenizer",
                f"{type(tokenizer).__name__}: must be a fast tokenizer, or one of mistral-common, tiktoken or SentencePiece")


def _grammar(vocabulary: Vocabulary, text: str, whitespace: int) -> Constraint:
    if ToolRequest.is_text(text):  # of a tool parser of this package
        return ToolRequest.of_text(text).constraint(vocabulary)
    # vLLM distinguishes the two languages in the same way.
    return ebnf(vocabulary, text) if "::=" in text else lark(vocabulary, text, whitespace=whitespace)


def _choice(vocabulary: Vocabulary, text: str) -> Constraint:
    texts = json.loads(text)
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise Error("malformed_json", "", "must be a list of texts")
    return choice(vocabulary, texts)


def build(vocabulary: Vocabulary, kind: str, text: str, whitespace: int) -> Constraint:
    """The constraint of a request. kind: json, regex, grammar, choice or structural_tag. whitespace: most bytes of
    optional white space in JSON. Error, which is a ValueError, for invalid text."""
    if kind == "json":
        return json_schema(vocabulary, text, whitespace=whitespace)
    if kind == "structural_tag":
        return structural_tag(vocabulary, text, whitespace=whitespace)
    if kind == "grammar":
        return _grammar(vocabulary, text, whitespace)
    return {"regex": regex, "choice": _choice}[kind](vocabulary, text)


_last: tuple[Any, Any] = (None, None)


def array_of(tensor: Any) -> Any:
    """A NumPy view of a CPU tensor; anything else is returned unchanged. The last view is cached, because engines fill
    one tensor row by row."""
    global _last
    known, array = _last
    if known is not tensor:
        try:
            array = tensor.numpy()
        except (AttributeError, TypeError, RuntimeError):  # RuntimeError: torch without NumPy
            return tensor
        _last = tensor, array
    return array


def _put(words: Any, token: int, is_allowed: bool) -> None:
    """Allows or forbids a token in a mask [W]."""
    bit = 1 << (token & 31)
    word = int(words[token >> 5]) & (0xFFFF_FFFF ^ bit) | (bit if is_allowed else 0)
    is_signed = "uint" not in str(words.dtype)
    words[token >> 5] = word - (1 << 32) if is_signed and word >= 1 << 31 else word


class Answer:
    """The state of one request's answer, and earlier states for rollback.

    At least the last `most_kept` states are kept, so memory is bounded. end_tokens: replace the end tokens of the
    vocabulary. They are allowed exactly where the answer may end; other end tokens of the vocabulary are not allowed.
    size: the engine's logits, if they are fewer than the vocabulary's ids; masks are as wide as these then, and no draft has
    an id past them. last_tokens: what masks allow after a failure (the end tokens).

    failure: the error of a mask or a token, such as limit_exceeded, which is logged. From then on no token is accepted.
    """

    __slots__ = ("_added", "_constraint", "_dropped", "_end", "_ends", "_first", "_last_tokens", "_size", "_states", "_tokens",
                 "_vocabulary", "failure", "is_terminated", "state")

    most_kept = 1024
    _most_forced = 4096

    def __init__(self, constraint: Constraint, vocabulary: Vocabulary, end_tokens: Collection[int] | None = None, *,
                 size: int = 0, last_tokens: Collection[int] | None = None) -> None:
        usual = frozenset(vocabulary.end_tokens)
        ends = frozenset(end_tokens) if end_tokens else usual
        if any(token < 0 or token >= vocabulary.size for token in ends):
            raise Error("unknown_token", "end_tokens", f"must be ids below {vocabulary.size}")
        self._constraint = constraint
        self._vocabulary = vocabulary
        self._ends = ends
        self._added = sorted(ends - usual)
        self._dropped = sorted(usual - ends)
        self._end = vocabulary.end_tokens[0] if usual else None
        self._size = size or vocabulary.size
        self._last_tokens = [token for token in (ends if last_tokens is None else last_tokens) if token < self._size]
        self._first = constraint.initial()
        self.reset()

    def reset(self) -> None:
        self.state = self._first
        self._states: list[State] = []  # before each of the tokens
        self._tokens: list[int] = []
        self.is_terminated = False
        self.failure: Exception | None = None

    def fail(self, error: Exception) -> None:
        """Makes the request's constraint refuse all that follows."""
        if self.failure is None:
            self.failure = error.with_traceback(None)  # which would keep this object
            logger.error("The constraint of a request fails, and the request with it: %s", str(error) or type(error).__name__)

    def _next(self, state: State, token: int) -> State | None:
        if token in self._added:  # advances like the vocabulary's end token
            return self._constraint.advance(state, self._end) if self._end is not None else None
        return None if token in self._dropped else self._constraint.advance(state, token)

    def accept(self, token: int) -> bool:
        """Advances by a token; False if it is not allowed. Tokens after the end are accepted and change nothing."""
        if self.failure is not None:
            return False
        if self.is_terminated:
            self.stay(token)
            return True
        plain = not self._added and not self._dropped
        try:
            state = self._constraint.advance(self.state, token) if plain else self._next(self.state, token)
        except CONFINED as error:
            self.fail(error)
            return False
        if state is None:
            return False
        self.stay(token)
        if len(self._states) >= 2 * self.most_kept:
            del self._states[: -self.most_kept], self._tokens[: -self.most_kept]
        self.state = state
        self.is_terminated = token in self._ends
        return True

    def stay(self, token: int) -> None:
        """Counts a token that changes nothing, for rollback."""
        self._states.append(self.state)
        self._tokens.append(token)

    def allowed(self, tokens: Sequence[int]) -> int:
        """How many of a draft's tokens, from the first, are allowed, up to and including an end token."""
        if self.is_terminated or self.failure is not None:
            return 0
        try:
            return self._allowed(tokens)
        except CONFINED as error:
            self.fail(error)
            return 0

    def _allowed(self, tokens: Sequence[int]) -> int:
        if not self._added and not self._dropped:
            count = self._constraint.validate(self.state, tokens)
            for i in range(count):
                if tokens[i] in self._ends:
                    return i + 1
            return count
        state = self.state
        for i, token in enumerate(tokens):
            state = self._next(state, token)
            if state is None:
                return i
            if token in self._ends:
                return i + 1
        return len(tokens)

    def draft(self, tokens: Sequence[int], limit: int, known: dict[Any, list[int]],
              guess: Callable[[list[int]], Sequence[int]] | None = None) -> list[int]:
        """A draft of at most `limit` tokens: the forced tokens of each state, and between them, as long as they are allowed,
        the guessed `tokens`. A guess that differs from what is forced is dropped with what follows it.

        known: what was forced before, for requests of one constraint; bounded. guess: asked for more where no guess is left
        and nothing is forced, with what is drafted so far."""
        if self.is_terminated or self.failure is not None:
            return []
        state, guessed, drafted = self.state, list(tokens), []
        written = self._tokens[-64:]
        while len(drafted) < limit:
            # How the tokenizer goes on depends on what is written: on its end, as good as always, and it is a draft.
            key = state, *written[-2:]
            more = known.get(key)
            if more is None:
                if len(known) >= self._most_forced:
                    known.clear()
                more = known[key] = self._constraint.forced_tokens(state, self._vocabulary.decode(written))
            if more:
                guessed = guessed[len(more):] if guessed[: len(more)] == more else []
            else:
                guessed = guessed or (list(guess(drafted)) if guess is not None else [])
                if not guessed:
                    break
                more = [guessed.pop(0)]
            for token in more[: limit - len(drafted)]:
                after = self._next(state, token) if token < self._size else None
                if after is None:
                    return drafted
                state = after
                drafted.append(token)
                written.append(token)
                if token in self._ends:
                    return drafted
        return drafted

    def rollback(self, count: int) -> None:
        """Undoes the last tokens; Error invalid_option for more tokens than are kept."""
        if count <= 0:
            return
        if count > len(self._states):
            raise Error("invalid_option", "count", f"{count}: must be at most {len(self._states)}, the tokens that are kept")
        self.state = self._states[-count]
        del self._states[-count:], self._tokens[-count:]
        self.is_terminated = self._constraint.is_finished(self.state)

    def fill(self, array: Any, row: int) -> None:
        """Writes the mask of the next token into a row; after a failure that of the last tokens."""
        if self.failure is None:
            try:
                self._fill(array, row)
            except CONFINED as error:
                self.fail(error)
        if self.failure is not None:
            words = array[row]
            words[:] = 0 if self._last_tokens else -1
            for token in self._last_tokens:
                _put(words, token, True)

    def _fill(self, array: Any, row: int) -> None:
        if self._size >= self._vocabulary.size:
            self._constraint.fill_mask(self.state, array, row)
            if self._added or self._dropped:
                self._put_ends(array[row])
            return
        import numpy as np

        words = np.zeros(self._vocabulary.mask_words, np.int32)
        self._constraint.fill_mask(self.state, words)
        self._put_ends(words)
        edge = self._size >> 5
        words[edge + 1 :] = 0
        for token in range(self._size, 32 * (edge + 1)):
            _put(words, token, False)
        if not words.any():
            raise Error("limit_exceeded", "vocabulary", f"all tokens that may follow are past the model's {self._size} logits")
        array[row][:] = words[: len(array[row])]

    @property
    def is_plain(self) -> bool:
        """Whether the constraint's own masks are those of the answer."""
        return not self._added and not self._dropped and self._size >= self._vocabulary.size and self.failure is None

    def _put_ends(self, words: Any) -> None:
        """Replaces the vocabulary's end tokens in a mask by those of this request."""
        may_end = self._constraint.is_accepting(self.state)
        for token in self._dropped + self._added:
            _put(words, token, may_end and token in self._ends)

    @property
    def constraint(self) -> Constraint:
        return self._constraint

    @property
    def has_begun(self) -> bool:
        return bool(self._tokens)
