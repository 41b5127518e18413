"""For vLLM 0.33: drafts of fast-forward tokens and of a request's own history, without a draft model.

    vllm serve MODEL --structured-outputs-config.backend tooldecode \\
        --speculative-config '{"method": "custom_class", "model": "tooldecode.vllm_proposer.ToolDecodeProposer",
                               "num_speculative_tokens": 8}'

The proposer runs in the worker, which has no constraints: it guesses from history. The grammar in the scheduler, which vLLM
asks which drafts are valid, answers with the tokens that the constraint forces, by the model's tokenizer, and keeps valid
guesses between them.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["ToolDecodeProposer", "draft_of_history"]

logger = logging.getLogger("vllm.tooldecode")

_LONGEST = 16  # tokens of history that are compared


def draft_of_history(tokens: np.ndarray, room: int) -> list[int]:
    """What followed the latest of the longest earlier occurrences of the last tokens, at most as many tokens as agree and
    one more. tokens [L]. Never empty for room > 0: without an occurrence it is the last token, so that the grammar is asked.

    Complexity O(L)."""
    last = len(tokens) - 1
    places = np.flatnonzero(tokens[:last] == tokens[last])  # of the last token, earlier
    if room <= 0:
        return []
    if len(places) == 0:
        return [int(tokens[last])]
    length = 1
    while length < _LONGEST:
        longer = places[places >= length]
        longer = longer[tokens[longer - length] == tokens[last - length]] if length <= last else longer[:0]
        if len(longer) == 0:
            break
        places, length = longer, length + 1
    begin = int(places[-1]) + 1
    size = min(room, length + 1 if length > 1 else 1)
    return tokens[begin : begin + size].tolist()


class ToolDecodeProposer:
    """vLLM's `custom_class` proposer. A failure is a row without a draft; it is counted, and the first one is logged."""

    def __init__(self, vllm_config: Any) -> None:
        self._most = vllm_config.speculative_config.num_speculative_tokens
        self._positions = vllm_config.model_config.max_model_len
        self.failures = 0

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: Sequence[Sequence[int]], num_tokens_no_spec: Any, token_ids_cpu: Any,
                slot_mappings: Any = None) -> list[list[int]]:
        """sampled_token_ids [B]; num_tokens_no_spec [B]; token_ids_cpu [B, L] -> drafts [B]; empty for prompts that are
        still read and for requests that have no room."""
        drafts: list[list[int]] = []
        for i, sampled in enumerate(sampled_token_ids):
            draft: list[int] = []
            if sampled:
                try:
                    count = int(num_tokens_no_spec[i])
                    draft = draft_of_history(token_ids_cpu[i, :count], min(self._most, self._positions - count - 1))
                except Exception:
                    self.failures += 1
                    if self.failures == 1:
                        logger.exception("A draft failed; its request goes on without one")
            drafts.append(draft)
        return drafts
