"""Traces how an answer came about, as far as an engine's loop reveals it."""
from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import Vocabulary

__all__ = ["Tracer"]


class Tracer:
    """Records masks and tokens during generation, and writes them in the form of the program's traces.

    drafts_first: whether an assistant model requests masks before the model has read the prompt.
    """

    def __init__(self, drafts_first: bool = False) -> None:
        self._begin = self._end = self.now()
        self._drafts_first = drafts_first
        self._prompt: int | None = None  # time to read it
        self._masking = 0
        self._masks = 0
        self._allowed: dict[bytes, int] = {}  # by the previous tokens
        self._rounds: list[tuple[int, int]] = []  # tokens of a pass, and its time

    @staticmethod
    def now() -> int:
        """In nanoseconds."""
        return time.perf_counter_ns()

    def masked(self, begin: int) -> None:
        """Records that a mask, or those of a batch, took from `begin` until now. The first comes after the prompt."""
        if self._prompt is None and not self._drafts_first:
            self._prompt = begin - self._begin
        self._masking += self.now() - begin
        self._masks += 1

    def allow(self, before: bytes, words: Any) -> None:
        """Records how many tokens a mask allows. before: the answer's tokens, 8 bytes each."""
        self._allowed[before] = bin(int.from_bytes(words, "little")).count("1")

    def came(self, count: int) -> None:
        """Records that a pass returned `count` tokens."""
        self._end = self.now()
        if self._prompt is None:
            self._prompt = self._end - self._begin - self._masking
        self._rounds.append((count, self._end))

    def stop(self) -> None:
        self._end = self.now()

    def trace(self, tokens: Sequence[int], is_whole: bool, vocabulary: Vocabulary,
              name_of: Callable[[int], str]) -> dict[str, Any]:
        """tokens: of the answer, with the end token if `is_whole`."""
        kinds, times = ["sampled"] * len(tokens), None
        if sum(count for count, _ in self._rounds) >= len(tokens):
            times, last = [0.0] * len(tokens), self._begin
            at = 0
            for count, when in self._rounds:
                for i in range(at, min(at + count - 1, len(tokens))):
                    kinds[i] = "drafted"
                if at < len(tokens):
                    times[at] = (when - last) / 1000
                at, last = at + count, when
        whole = self._end - self._begin - self._masking
        prompt = whole if self._prompt is None else self._prompt
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        entries: list[dict[str, Any]] = []
        before = b""
        for i, token in enumerate(tokens):
            is_end = is_whole and i + 1 == len(tokens)
            written = vocabulary.decode([token])
            text = "" if is_end else decoder.decode(written)
            if is_end and entries:
                entries[-1]["text"] += decoder.decode(b"", True)
            entry: dict[str, Any] = {"id": token, "text": text}
            if not written:
                entry["name"] = name_of(token)
            allowed = self._allowed.get(before)
            entry["kind"] = "forced" if allowed == 1 else kinds[i]
            if text.encode() != written:
                entry["bytes"] = written.hex()
            if is_end:
                entry["end"] = True
            if allowed is not None:
                entry["allowed"] = allowed
            if times is not None:
                entry["microseconds"] = times[i]
            entries.append(entry)
            before += token.to_bytes(8, "little", signed=True)
        if entries and not is_whole:
            entries[-1]["text"] += decoder.decode(b"", True)
        written = [entry for entry in entries if "end" not in entry]
        totals = {
            "tokens": len(written),
            "forced_tokens": sum(entry["kind"] == "forced" for entry in written),
            "accepted_tokens": sum(kind == "drafted" for kind in kinds),
            "passes": len(self._rounds) or self._masks,
            "prefill_microseconds": prompt / 1000,
            "model_microseconds": (whole - prompt) / 1000,
            "constraint_microseconds": self._masking / 1000,
        }
        return {"text": "".join(entry["text"] for entry in written), "finish": "end" if is_whole else "length",
                "totals": totals, "tokens": entries}
