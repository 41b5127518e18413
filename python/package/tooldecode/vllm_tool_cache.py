"""For vLLM 0.33: a tool cache in front of its server.

    vllm serve MODEL --enable-auto-tool-choice --tool-call-parser tooldecode --api-server-count 1 \\
        --middleware tooldecode.vllm_tool_cache.ToolCache

The environment variable TOOLDECODE_TOOL_CACHE has options, the fields of `ToolCacheOptions` as a JSON object.
"""
from __future__ import annotations

from typing import Any

from . import _tool_cache
from ._tool_outputs import ToolCacheOptions
from ._vllm_drafts import CallDrafts

__all__ = ["ToolCache", "ToolCacheOptions"]


class ToolCache(_tool_cache.ToolCache):
    """The middleware. Its drafts are those of the proposer in vLLM's workers."""

    whole_calls = ("tool_calls", "stop")  # the second for a tool that `tool_choice` names

    def usages(self, app: Any, options: dict[str, Any]) -> tuple[bool, bool]:
        arguments = getattr(getattr(app, "state", None), "args", None)
        at_end = options.get("include_usage") is True or getattr(arguments, "enable_force_include_usage", False) is True
        return at_end, at_end and options.get("continuous_usage_stats", False)

    def make_drafts(self, app: Any) -> CallDrafts:
        return CallDrafts(app)
