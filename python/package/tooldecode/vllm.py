"""For vLLM 0.33: structured outputs with the backend `tooldecode`.

    vllm serve MODEL --structured-outputs-config.backend tooldecode

vLLM finds `register` through its entry point in every process. Optional settings are a dictionary under the key
"tooldecode" of --additional-config: `whitespace`, most bytes of optional white space in JSON (40), and `memory_bytes`,
the memory limit of masks and states (512 MiB); `prepare`, whether masks are computed ahead on a thread of their own
while a request's prompt is read (True).
"""
from __future__ import annotations

import functools
import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from . import Error, ThreadPool, formats
from ._engine import Answer, array_of, build, vocabulary_of
from ._known import KnownConstraints
from ._tools import ToolRequest

if TYPE_CHECKING:
    import torch

__all__ = ["NAME", "ToolDecodeBackend", "ToolDecodeGrammar", "register"]

NAME = "tooldecode"
VERSIONS = ("0.33.",)  # versions whose hooks are known
_MOST_KNOWN = 256  # constraints; requests often repeat them

logger = logging.getLogger("vllm.tooldecode")

_KINDS = {
    StructuredOutputOptions.JSON: "json",
    StructuredOutputOptions.JSON_OBJECT: "json",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}


class ToolDecodeGrammar(StructuredOutputGrammar):
    """The state of one request's answer.

    Where its constraint fails, as by the limit of a mask, nothing is raised, which would end vLLM's engine: masks allow the end
    alone and no token is accepted, and vLLM then ends this request with an error. raises: the failure, for callers that have
    one request.
    """

    def __init__(self, answer: Answer, drafts: int = 0, forced: dict[Any, list[int]] | None = None, raises: bool = False) -> None:
        self._answer = answer
        self._raises = raises
        self._forced = {} if forced is None else forced  # that requests of this constraint share
        self._drafts = drafts  # the longest draft, where the proposer of this package leaves forced text to the grammar

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advances by all tokens. If one is not allowed, the state does not change and the result is False. Tokens
        after an end are accepted."""
        answer = self._answer
        for i, token in enumerate(tokens):
            if not answer.accept(token):
                answer.rollback(i)
                if answer.failure is None:
                    logger.error("Token %s is not allowed in request %s", token, request_id)
                else:
                    logger.error("Request %s ends, as its constraint failed: %s", request_id, answer.failure)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        # Before the first token vLLM may ask behind guesses that end reasoning, which take some of its room, or whether a
        # token may begin the answer.
        if self._drafts and self._answer.has_begun:
            try:
                return self._answer.draft(tokens, self._drafts, self._forced)
            except Error as error:
                self._drafts = 0
                logger.warning("Forced tokens are not drafted any more for a request: %s", error)
        return tokens[: self._answer.allowed(tokens)]

    def rollback(self, num_tokens: int) -> None:
        self._answer.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self._answer.fill(array_of(bitmask), batch_index)
        if self._raises and self._answer.failure is not None:
            raise self._answer.failure

    def is_terminated(self) -> bool:
        return self._answer.is_terminated

    def reset(self) -> None:
        self._answer.reset()


def _drafts_of(config: Any) -> int:
    """The longest draft where the engine has this package's proposer and takes what a grammar makes of its drafts; else 0."""
    speculation = getattr(config, "speculative_config", None)
    if speculation is None or not str(getattr(speculation, "model", "")).startswith("tooldecode.vllm_proposer."):
        return 0
    # Otherwise places for drafts are scheduled before there are drafts.
    if config.scheduler_config.async_scheduling or config.parallel_config.pipeline_parallel_size > 1:
        logger.warning("Forced tokens are not drafted with asynchronous scheduling and pipeline parallelism")
        return 0
    return speculation.num_speculative_tokens or 0


@dataclass
class ToolDecodeBackend(StructuredOutputBackend):
    """Shared by an engine's requests: the vocabulary and recent constraints."""

    raises = False  # whether a grammar raises its failure, see ToolDecodeGrammar

    def __post_init__(self) -> None:
        config = getattr(self.vllm_config, "additional_config", None)
        options = dict((config.get(NAME) if isinstance(config, dict) else None) or {})
        self._whitespace = options.pop("whitespace", 40)
        memory_bytes = options.pop("memory_bytes", 0)
        # A thread of its own: masks are computed while the request's prompt is read.
        self._pool = ThreadPool(1) if options.pop("prepare", True) else None
        if options:
            raise ValueError(f"additional_config/{NAME}/{next(iter(options))}: unknown; "
                             "the options are whitespace, memory_bytes and prepare")
        self.vocabulary = vocabulary_of(self.tokenizer, self.vocab_size, self._end_tokens(), memory_bytes)
        self._known = KnownConstraints(_MOST_KNOWN)
        self._drafts = _drafts_of(self.vllm_config)

    def _end_tokens(self) -> set[int]:
        # The same as SamplingParams.all_stop_token_ids of a request that adds none.
        ends = {self.tokenizer.eos_token_id}
        more = self.vllm_config.model_config.try_get_generation_config().get("eos_token_id")
        ends.update([more] if isinstance(more, int) else more or ())
        return ends - {None}

    def compile_grammar(self, request_type: StructuredOutputOptions, grammar_spec: str,
                        stop_token_ids: set[int] | None = None) -> ToolDecodeGrammar:
        """Error, which is a ValueError, for an invalid specification; vLLM then fails this request."""
        if request_type is StructuredOutputOptions.JSON_OBJECT:
            grammar_spec = '{"type": "object"}'
        key = _KINDS[request_type], grammar_spec
        known = self._known.get(key)
        if known is None:
            constraint = build(self.vocabulary, *key, self._whitespace)
            if self._pool is not None:
                constraint.prepare(pool=self._pool)
            known = self._known.add(key, constraint)
        constraint, forced = known
        # A tokenizer may have ids past those that the model has logits for.
        answer = Answer(constraint, self.vocabulary, stop_token_ids, size=self.vocab_size)
        return ToolDecodeGrammar(answer, self._drafts, forced, self.raises)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        import torch

        return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        self._known.clear()


# -------------------------------------------------------------------------------------------------------- what is hooked


def _hook(owner: type, name: str) -> Any:
    """Replaces a method by a function that receives the original method and its arguments; only once."""
    def replace(function):
        before = getattr(owner, name)
        if not hasattr(before, "_tooldecode"):
            @functools.wraps(before)
            def hooked(*arguments, **named):
                return function(before, *arguments, **named)
            hooked._tooldecode = True
            setattr(owner, name, hooked)
        return function
    return replace


def _accept_name() -> None:
    """Makes `StructuredOutputsConfig.backend` accept the name."""
    import typing

    from pydantic.dataclasses import rebuild_dataclass
    from vllm.config import VllmConfig, structured_outputs

    known = typing.get_args(structured_outputs.StructuredOutputsBackend)
    if NAME in known:
        return
    names = typing.Literal[(*known, NAME)]
    config = structured_outputs.StructuredOutputsConfig
    structured_outputs.StructuredOutputsBackend = names
    config.__annotations__["backend"] = names
    config.__dataclass_fields__["backend"].type = names
    rebuild_dataclass(config, force=True)
    rebuild_dataclass(VllmConfig, force=True)


@functools.cache
def _warn_once(text: str) -> None:
    logger.warning(text)


def _without_backend(params: Any, tools: ToolRequest) -> None:
    """Takes the tool parser's constraint out of a request where the engine has another backend."""
    from vllm.exceptions import VLLMValidationError

    if tools.choice != "auto" or tools.text_schema:
        raise VLLMValidationError("tool_choice that requires a call, and tools beside a response_format, need "
                                  f"--structured-outputs-config.backend {NAME} with this tool parser", parameter="tool_choice")
    _warn_once("Strict tools are read and not enforced: that needs --structured-outputs-config.backend tooldecode")
    params.structured_outputs = None


def _hook_requests() -> None:
    """Makes a front end assign the backend to its requests, after the checks that vLLM makes for every backend."""
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams, check_json_nesting

    @_hook(SamplingParams, "_validate_structured_outputs")
    def validate(before, self, model_config, structured_outputs_config, tokenizer):
        asked = self.structured_outputs
        if structured_outputs_config is None or asked is None or structured_outputs_config.backend != NAME:
            if asked is not None and ToolRequest.is_text(asked.grammar):
                _without_backend(self, ToolRequest.of_text(asked.grammar))
            return before(self, model_config, structured_outputs_config, tokenizer)

        def refuse(why: str):
            raise VLLMValidationError(f"Structured outputs {why}")

        if model_config.is_diffusion:
            refuse("are not supported for diffusion language models")
        if tokenizer is None:
            refuse("need a tokenizer, and cannot be used with 'skip_tokenizer_init'")
        if asked._backend not in (None, NAME):
            refuse(f"of a request cannot have a backend of their own ('{asked._backend}'; the engine has '{NAME}')")
        if isinstance(asked.choice, list) and not asked.choice:
            refuse("choice: cannot be an empty list")
        if asked.json_object is False:
            refuse("json_object: must be true where it is given")
        for field in ("json", "grammar", "structural_tag"):
            value = getattr(asked, field)
            if isinstance(value, str) and not value.strip():
                refuse(f"{field}: cannot be an empty text")
        check_json_nesting(asked.json)
        check_json_nesting(asked.structural_tag, structural_tag=True)
        asked._backend = NAME


def _hook_engine() -> None:
    """Makes the engine's manager and offline beam search use this backend for requests with its name."""
    from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.request import get_structured_output_key

    @_hook(StructuredOutputManager, "grammar_init")
    def grammar_init(before, self, request):
        asked = request.structured_output_request
        if asked is not None and self.backend is None and asked.params._backend == NAME:
            self.backend = ToolDecodeBackend(self.vllm_config, tokenizer=self.tokenizer,
                                             vocab_size=self.vllm_config.model_config.get_vocab_size())
            self.backend_name = NAME
        return before(self, request)

    @_hook(BeamSearchOfflineMixin, "_init_beam_search_structured_output")
    def init_beam_search(before, self, structured_outputs, tokenizer):
        config = self.llm_engine.vllm_config
        if (structured_outputs._backend or config.structured_outputs_config.backend) != NAME:
            return before(self, structured_outputs, tokenizer)
        backend = ToolDecodeBackend(config, tokenizer=tokenizer, vocab_size=self.model_config.get_vocab_size())
        backend.raises = True  # beam search would take the end for the answer's
        return backend, get_structured_output_key(structured_outputs), backend.allocate_token_bitmask(1)


def _register_tool_parsers() -> None:
    """`tooldecode`, and one for each format; imported when a server asks for it."""
    from vllm.tool_parsers import ToolParserManager

    ToolParserManager.register_lazy_module(NAME, "tooldecode.vllm_parser", "ToolDecodeToolParser")
    for name in formats():
        ToolParserManager.register_lazy_module(f"{NAME}-{name}", "tooldecode.vllm_parser", f"{NAME}-{name}")


def register() -> None:
    """Registers the backend with vLLM in this process; further calls have no effect.

    Under an unknown version of vLLM it changes nothing, and logs an error if the command line names this package: vLLM
    calls this in every process of every model where the package is installed.
    """
    from vllm.version import __version__ as version

    if not version.startswith(VERSIONS):
        is_asked = any(NAME in argument for argument in sys.argv[1:])
        logger.log(logging.ERROR if is_asked else logging.DEBUG,
                   "Structured outputs backend '%s' is not available: it is for vLLM %s, and this is %s", NAME,
                   " and ".join(one + "x" for one in VERSIONS), version)
        return
    _accept_name()
    _hook_requests()
    _hook_engine()
    _register_tool_parsers()
