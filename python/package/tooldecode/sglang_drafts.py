"""For SGLang 0.5: drafts of fast-forward tokens and of a request's own history, without a draft model.

    python -m sglang.launch_server --model-path MODEL --grammar-backend tooldecode \\
        --speculative-algorithm TOOLDECODE --speculative-num-draft-tokens 9

Where a request has a grammar of this package, the tokens that it forces are drafted, by the model's tokenizer, and between
them what followed the request's last tokens before, as long as it is allowed; where it has none, the latter alone. SGLang's
worker for n-grams verifies them as one row of `--speculative-num-draft-tokens` nodes, of which the first is the answer's last
token.
"""
from __future__ import annotations

import logging
from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_registry import CustomSpecAlgo

from . import Error

__all__ = ["NAME", "ToolDecodeAlgorithm", "register_algorithm"]

NAME = "TOOLDECODE"
_NODES = 12  # as SGLang's own n-grams

logger = logging.getLogger("sglang.tooldecode")


class ToolDecodeAlgorithm(CustomSpecAlgo):
    """What SGLang's scheduler asks of a speculative algorithm: the answers of NGRAM, whose worker this one's is."""

    def is_ngram(self) -> bool:
        return True

    def has_draft_kv(self) -> bool:
        return False

    # SGLang 0.5.23 asks these two of every algorithm, and its class for plugins has neither.
    def carries_draft_hidden_states(self) -> bool:
        return False

    def create_future_map(self, device: Any, req_to_token_pool: Any, needs_cpu_seq_lens: bool = True,
                          needs_confidence_relay: bool = False) -> Any:
        from sglang.srt.managers.overlap_utils import FutureMap

        return FutureMap(device, self, req_to_token_pool, needs_cpu_seq_lens, needs_confidence_relay)

    def handle_server_args(self, server_args: Any) -> None:
        """What SGLang sets for NGRAM, for one row of drafts instead of a tree."""
        nodes = server_args.speculative_num_draft_tokens or _NODES
        server_args.speculative_num_draft_tokens = nodes
        server_args.speculative_eagle_topk = 1
        server_args.speculative_num_steps = nodes - 1
        server_args.speculative_ngram_min_bfs_breadth = server_args.speculative_ngram_max_bfs_breadth = 1
        if server_args.max_running_requests is None:
            server_args.max_running_requests = 48
            logger.warning("At most 48 requests run at once with drafts; set --max-running-requests for another number")
        if server_args.enable_mixed_chunk:
            server_args.enable_mixed_chunk = False
            logger.warning("--enable-mixed-chunk is off with drafts")
        if server_args.device == "cpu" and not server_args.disable_overlap_schedule:
            server_args.disable_overlap_schedule = True
            logger.warning("SGLang has no overlap scheduling for drafts on a CPU")


def _check(server_args: Any) -> None:
    """Error invalid_option, which is a ValueError, before the server starts."""
    def refuse(option: str, why: str) -> None:
        flag = "--" + option.replace("_", "-")
        raise Error("invalid_option", flag, f"{flag}: {why} with --speculative-algorithm {NAME}")

    nodes = server_args.speculative_num_draft_tokens
    if nodes is not None and nodes < 2:
        refuse("speculative_num_draft_tokens", f"{nodes}: must be 2 or more")
    for option, only in (("speculative_eagle_topk", 1), ("speculative_num_steps", (nodes or _NODES) - 1)):
        value = getattr(server_args, option)
        if value not in (None, only):
            refuse(option, f"{value}: must be {only} or left out")
    if server_args.device not in ("cuda", "cpu", "xpu"):
        refuse("device", f"{server_args.device}: must be cuda, cpu or xpu")
    for option in ("speculative_draft_model_path", "speculative_ngram_external_corpus_path"):
        if getattr(server_args, option) is not None:
            refuse(option, "must be left out")
    if server_args.attn_dp_size > 1:
        refuse("attn_dp_size", f"{server_args.attn_dp_size}: must be 1")
    if server_args.speculative_use_rejection_sampling:
        refuse("speculative_use_rejection_sampling", "must be left out")


def register_algorithm() -> None:
    """Registers the algorithm with SGLang in this process; further calls have no effect."""
    try:
        SpeculativeAlgorithm.from_string(NAME)
    except ValueError:
        @SpeculativeAlgorithm.register(NAME, supports_overlap=True, validate_server_args=_check,
                                       spec_class=ToolDecodeAlgorithm)
        def worker_class(server_args: Any) -> type:
            from ._sglang_worker import ToolDecodeWorker

            return ToolDecodeWorker
