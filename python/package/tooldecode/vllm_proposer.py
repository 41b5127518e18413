"""For vLLM 0.33: drafts of fast-forward tokens and of a request's own history, without a draft model.

    vllm serve MODEL --structured-outputs-config.backend tooldecode \\
        --speculative-config '{"method": "custom_class", "model": "tooldecode.vllm_proposer.ToolDecodeProposer",
                               "num_speculative_tokens": 8}'

The proposer runs in the worker, which has no constraints: it guesses from history. The grammar in the scheduler, which vLLM
asks which drafts are valid, answers with the tokens that the constraint forces, by the model's tokenizer, and keeps valid
guesses between them.

Calls whose outputs are cached (`tooldecode.vllm_tool_cache`) are drafted where the answer begins one of them. They reach
the proposer through vLLM's extension of workers:

    --worker-extension-cls tooldecode.vllm_proposer.AnnouncedCalls
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["AnnouncedCalls", "ToolDecodeProposer", "draft_of_calls", "draft_of_history"]

logger = logging.getLogger("vllm.tooldecode")

_LONGEST = 16  # tokens of history that are compared
_MOST_ANNOUNCED = 1024  # requests; their calls are dropped when they end


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


def _begun(tokens: np.ndarray, call: np.ndarray) -> int:
    """How many tokens of a call, from its first, the text ends with; not all of them."""
    last = len(tokens) - 1
    for length in np.flatnonzero(call[:-1] == tokens[last])[::-1] + 1:
        if length <= last + 1 and np.array_equal(tokens[last + 1 - length :], call[:length]):
            return int(length)
    return 0


def _is_made(tokens: np.ndarray, call: np.ndarray) -> bool:
    ends = np.flatnonzero(tokens == call[-1]) + 1
    return any(np.array_equal(tokens[end - len(call) : end], call) for end in ends if end >= len(call))


def draft_of_calls(tokens: np.ndarray, calls: Sequence[np.ndarray], room: int) -> list[int]:
    """The rest of the call that the text has begun to write, at most `room` tokens; empty where it has begun none. tokens
    [L]; calls [N][L]. Of several the one that agrees longest, then one that was not made yet, then the first.

    Complexity O(L + tokens of the calls), more where tokens repeat."""
    begun = [_begun(tokens, call) for call in calls]
    most = max(begun, default=0)
    if most == 0 or room <= 0:
        return []
    agree = [call for call, length in zip(calls, begun) if length == most]
    call = next((one for one in agree if not _is_made(tokens, one)), agree[0]) if len(agree) > 1 else agree[0]
    return call[most : most + room].tolist()


class ToolDecodeProposer:
    """vLLM's `custom_class` proposer. A failure is a row without a draft; it is counted, and the first one is logged."""

    def __init__(self, vllm_config: Any) -> None:
        self._most = vllm_config.speculative_config.num_speculative_tokens
        self._positions = vllm_config.model_config.max_model_len
        self.failures = 0
        self._announced: dict[str, list[np.ndarray]] = {}  # by request
        self._row_names: Callable[[], Sequence[str]] = tuple

    def announce(self, request: str, calls: Sequence[Sequence[int]], row_names: Callable[[], Sequence[str]]) -> None:
        """The calls that a request is expected to make, each as tokens, in place of those of before; none ends the request.
        row_names: gives the requests of a step, [B]. vLLM may add a suffix to the request's name there."""
        self._row_names = row_names
        self._announced.pop(request, None)
        known = [np.asarray(call, np.int32) for call in calls if len(call) > 1]
        if known:
            self._announced[request] = known
            while len(self._announced) > _MOST_ANNOUNCED:
                del self._announced[next(iter(self._announced))]

    def _calls_of(self, row: int) -> Sequence[np.ndarray]:
        name = self._row_names()[row]
        return self._announced.get(name) or self._announced.get(name.rpartition("-")[0]) or ()

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
                    tokens, room = token_ids_cpu[i, :count], min(self._most, self._positions - count - 1)
                    if self._announced:
                        draft = draft_of_calls(tokens, self._calls_of(i), room)
                    draft = draft or draft_of_history(tokens, room)
                except Exception:
                    self.failures += 1
                    if self.failures == 1:
                        logger.exception("A draft failed; its request goes on without one")
            drafts.append(draft)
        return drafts


class AnnouncedCalls:
    """vLLM's extension of workers, `--worker-extension-cls`: `collective_rpc` calls its methods in each worker."""

    def announce_tool_calls(self, request: str, calls: Sequence[Sequence[int]]) -> bool:
        """See ToolDecodeProposer.announce. False in workers that have no such proposer."""
        runner = self.model_runner
        proposer = getattr(runner, "drafter", None)
        if not isinstance(proposer, ToolDecodeProposer):
            return False
        proposer.announce(request, calls, lambda: runner.input_batch.req_ids)
        return True
