"""Tells the proposer in vLLM's workers which calls a request is expected to make, as tokens of the model's own format."""
from __future__ import annotations

import asyncio
import copy
import json
import logging
import threading
from collections.abc import Sequence
from typing import Any

from . import Error
from ._tools import ToolRequest, format_for

__all__ = ["CallDrafts"]

logger = logging.getLogger("vllm.tooldecode")

_EXTENSION = "tooldecode.vllm_proposer.AnnouncedCalls"


class CallDrafts:
    """Over the state of vLLM's application. `is_on`: whether its engine has this package's proposer and its extension of
    workers; if not, nothing is told."""

    def __init__(self, app: Any) -> None:
        state = getattr(app, "state", None)
        self._engine = getattr(state, "engine_client", None)
        parser = getattr(getattr(state, "args", None), "tool_call_parser", None) or ""
        self._format = parser[len("tooldecode-"):] if parser.startswith("tooldecode-") else ""
        config = getattr(self._engine, "vllm_config", None)
        speculation = getattr(config, "speculative_config", None)
        extension = getattr(getattr(config, "parallel_config", None), "worker_extension_cls", "")
        self.is_on = extension == _EXTENSION and str(getattr(speculation, "model", "")).startswith("tooldecode.vllm_proposer.")
        self.failures = 0
        self._tokenizer: Any = None
        self._lock = threading.Lock()

    async def tell(self, name: str, request: dict[str, Any], calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """name: of the request, as its X-Request-Id. No calls end it. The first failure is logged; drafts change no answer."""
        if not self.is_on:
            return
        try:
            drafts = await asyncio.to_thread(self._tokens, request, calls) if calls else []
            await self._engine.collective_rpc("announce_tool_calls", args=(f"chatcmpl-{name}", drafts))
        except Exception as error:
            self.failures += 1
            if self.failures == 1:
                logger.exception("Cached calls are not drafted for a request")
            if isinstance(error, Error) and error.code == "unknown_format":
                self.is_on = False

    def _tokens(self, request: dict[str, Any], calls: Sequence[tuple[str, dict[str, Any]]]) -> list[list[int]]:
        """Each call as the model writes it; those that its format cannot write are left out."""
        with self._lock:
            shared = self._engine.get_tokenizer()
            if self._tokenizer is None:
                self._tokenizer = copy.deepcopy(shared)  # other threads use the engine's
            tools = [tool for tool in request.get("tools") or () if isinstance(tool, dict)]
            asked = ToolRequest(json.dumps(tools, ensure_ascii=False), format_for(shared, self._format))
            writer = asked.without_schemas().reader()
            drafts = []
            for call in calls:
                try:
                    drafts.append(list(self._tokenizer.encode(writer.write([call]), add_special_tokens=False)))
                except Error:
                    continue
            return drafts
