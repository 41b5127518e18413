"""For SGLang 0.5: a tool cache in front of its server.

    TOOLDECODE_TOOL_CACHE='{}' python -m sglang.launch_server --model-path MODEL --tool-call-parser tooldecode

The environment variable turns it on and has its options, the fields of `ToolCacheOptions` as a JSON object.
"""
from __future__ import annotations

import importlib
import logging
import multiprocessing
import sys
from typing import Any

from . import _tool_cache
from ._tool_outputs import ToolCacheOptions

__all__ = ["ToolCache", "ToolCacheOptions", "add_to_server"]

logger = logging.getLogger("sglang.tooldecode")

_SERVER = "sglang.srt.entrypoints.http_server"


class ToolCache(_tool_cache.ToolCache):
    """The middleware. SGLang puts its check of API keys in front of it."""

    # A prompt in tokens does not grow with the messages, and a router prepares the memory of one prompt.
    one_prompt = ("input_ids", "bootstrap_room")
    # Two seconds after a stream SGLang aborts what has its name.
    first_round = ("rid",)

    def __init__(self, app: Any, options: ToolCacheOptions | None = None) -> None:
        super().__init__(app, options)
        logger.info("The tool cache is in front of the server: POST /cache-tool-output/{response_id}")

    def usages(self, app: Any, options: dict[str, Any]) -> tuple[bool, bool]:
        from sglang.srt.runtime_context import get_serving

        at_end = options.get("include_usage") is True or get_serving().stream_response_default_include_usage
        return at_end, options.get("continuous_usage_stats") is True


def add_to_server() -> None:
    """Puts the cache in front of the HTTP server of this process, once: of the main process, and of a child that has imported the
    server; schedulers have not. A wrong option ends the process, because SGLang would log an exception and go on."""
    if multiprocessing.parent_process() is not None and _SERVER not in sys.modules:
        return
    try:
        options = ToolCacheOptions.of_environment()
    except ValueError as error:
        raise SystemExit(str(error)) from None
    app = importlib.import_module(_SERVER).app
    if all(middleware.cls is not ToolCache for middleware in app.user_middleware):
        app.add_middleware(ToolCache, options=options)
