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

from ._drafts import draft_of_history

__all__ = ["AnnouncedCalls", "ToolDecodeProposer", "draft_of_calls", "draft_of_history"]

logger = logging.getLogger("vllm.tooldecode")

_LONGEST_CALL = 4096  # tokens of a call that are drafted
_BASE = 0x9E3779B97F4A7C15  # of hashes; odd
_MOST_ANNOUNCED = 1024  # requests; their calls are dropped when they end


def _hashes(tokens: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Of each prefix, the empty one first. tokens [L]; powers of the base, [L or more] -> [L + 1]."""
    sums = np.zeros(len(tokens) + 1, np.uint64)
    np.cumsum(tokens.astype(np.uint64) * powers[: len(tokens)], out=sums[1:])
    return sums


def _agree(tokens: np.ndarray, begins: np.ndarray, call: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Where `lengths` tokens behind `begins` are the first of the call, by hashes: a collision is a wrong draft, no more.
    tokens [L]; begins and lengths [N] -> [N].

    Complexity O(L + tokens of the call), where a comparison for each place is quadratic in tokens that repeat."""
    powers = np.full(max(len(tokens), len(call)) + 1, _BASE, np.uint64)
    powers[0] = 1
    powers = powers.cumprod(dtype=np.uint64)  # modulo 2**64
    sums = _hashes(tokens, powers)
    return sums[begins + lengths] - sums[begins] == _hashes(call, powers)[lengths] * powers[begins]


def _begun(tokens: np.ndarray, call: np.ndarray) -> int:
    """How many tokens of a call, from its first, the text ends with; not all of them."""
    tail = tokens[max(0, len(tokens) - len(call) + 1) :]
    if len(tail) == 0:
        return 0
    lengths = np.flatnonzero(call[: len(tail)] == tail[-1]) + 1
    lengths = lengths[tail[len(tail) - lengths] == call[0]]
    if len(lengths) > 0:
        lengths = lengths[_agree(tail, len(tail) - lengths, call, lengths)]
    return int(lengths[-1]) if len(lengths) > 0 else 0


def _is_made(tokens: np.ndarray, call: np.ndarray) -> bool:
    begins = np.flatnonzero(tokens == call[-1]) + 1 - len(call)
    begins = begins[begins >= 0]
    begins = begins[tokens[begins] == call[0]]
    return len(begins) > 0 and bool(_agree(tokens, begins, call, np.full(len(begins), len(call))).any())


def draft_of_calls(tokens: np.ndarray, calls: Sequence[np.ndarray], room: int) -> list[int]:
    """The rest of the call that the text has begun to write, at most `room` tokens; empty where it has begun none. tokens
    [L]; calls [N][L]. Of several the one that agrees longest, then one that was not made yet, then the first.

    Complexity O(tokens of the calls), and O(L) for each of several calls that agree alike."""
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
        known = [np.asarray(call[:_LONGEST_CALL], np.int32) for call in calls if len(call) > 1]
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
