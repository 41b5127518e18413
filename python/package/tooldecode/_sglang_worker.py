"""SGLang's worker for n-grams, with this package's drafts."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject
from sglang.srt.runtime_context import get_device, get_schedule, get_spec
from sglang.srt.speculative.base_spec_worker import BaseSpecWorker
from sglang.srt.speculative.ngram_worker import NGRAMWorker

from ._drafts import guess_of_history
from .sglang import ToolDecodeGrammar

__all__ = ["ToolDecodeWorker"]

logger = logging.getLogger("sglang.tooldecode")


class _NoCorpus:
    """In place of the trie of all requests' tokens."""

    def erase_match_state(self, request_ids: Sequence[str]) -> None:
        pass

    def reset(self) -> None:
        pass


def _grammar_of(request: Any) -> ToolDecodeGrammar | None:
    """The request's grammar, if it is of this package and holds for the next token."""
    grammar = request.grammar
    if isinstance(grammar, ReasonerGrammarObject):
        # As its _grammar_active, which is private.
        is_active = grammar.reasoning_in_grammar or grammar.tokens_after_end >= 0
        grammar = grammar.grammar if is_active else None
    return grammar if isinstance(grammar, ToolDecodeGrammar) else None


class ToolDecodeWorker(NGRAMWorker):
    """Drafts are all that is not NGRAMWorker's. A failure is a row without a draft; it is counted, and the first one is
    logged. Drafts depend on their request and its tokens only, so that they are the same on all ranks.

    Complexity O(L) for a request's L tokens in each step, and O(L) for each guess between fast-forward tokens."""

    def __init__(self, server_args: Any, gpu_id: int, nccl_port: int, target_worker: Any) -> None:
        BaseSpecWorker.__init__(self)  # NGRAMWorker's allocates a trie of ten million nodes
        spec = get_spec()
        self.server_args = server_args
        self.enable_overlap = not get_schedule().disable_overlap_schedule
        self.page_size = get_schedule().page_size
        self.device = get_device().device
        self._target_worker = target_worker
        self.model_runner = target_worker.model_runner
        self.draft_token_num = self.speculative_num_draft_tokens = spec.speculative_num_draft_tokens
        self.speculative_num_steps = spec.speculative_num_steps
        self.topk = spec.speculative_eagle_topk
        self.adaptive_controller = None
        self.grammar_tree_host = None
        self.ngram_corpus = _NoCorpus()
        self._prev_decode_rids: set[str] = set()
        self.failures = 0

    def _unprocessed(self, batch: Any) -> Sequence[Sequence[int]]:
        """[B]: the tokens of the last step, where overlap scheduling has not put them into the requests yet."""
        if not self.enable_overlap or batch.grammar_needs_sync():
            return [()] * len(batch.reqs)
        last = batch.spec_info
        rows = last.accept_tokens.reshape(len(batch.reqs), self.draft_token_num).tolist()
        return [row[:count] for row, count in zip(rows, last.accept_lens.tolist())]

    def _draft(self, request: Any, text: np.ndarray) -> list[int]:
        """What may follow the request's tokens. text [L + N - 1], of which the last are room for drafts."""
        room = self.draft_token_num - 1
        length = len(text) - room

        def guess(drafted: Sequence[int]) -> list[int]:
            text[length : length + len(drafted)] = drafted
            return guess_of_history(text[: length + len(drafted)], room - len(drafted))

        grammar = _grammar_of(request)
        return guess(()) if grammar is None else grammar.draft(room, guess)

    def _prepare_draft_tokens(self, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        """-> tokens [B * N], each row the last token and its drafts; which nodes precede each node [B * N * N]."""
        nodes = self.draft_token_num
        rows = np.empty((len(batch.reqs), nodes), np.int64)  # [B, N]
        room = np.zeros(nodes - 1, np.int32)
        for row, request, last in zip(rows, batch.reqs, self._unprocessed(batch)):
            parts = request.origin_input_ids_unpadded, request.output_ids, last, room
            text = np.concatenate([np.asarray(part, np.int32) for part in parts])
            row[0] = text[-nodes]
            # An end token fills the rest of the row. Any token would do; where this one is not allowed, or ends the answer,
            # the grammar looks no further.
            row[1:] = min(request.eos_token_ids) if request.eos_token_ids else row[0]
            try:
                draft = self._draft(request, text)
                row[1 : 1 + len(draft)] = draft
            except Exception:
                self.failures += 1
                if self.failures == 1:
                    logger.exception("A draft failed; its request goes on without one")
        before = np.tri(nodes, dtype=bool)  # [N, N]
        return rows.ravel(), np.tile(before.ravel(), len(rows))

    def _update_ngram_corpus(self, batch: Any) -> None:
        """There is none."""
