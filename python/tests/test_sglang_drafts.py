"""Drafts for SGLang: options, what is drafted for a request, and rows that fail."""
import json
import logging

import pytest

NODES = 9


def rows_of(worker, requests, last=None, has_grammar=True):
    """What the worker drafts for a batch: [B, N]. last: accepted tokens that are not in the requests yet."""
    import types

    import numpy as np
    import torch

    info = None
    if last is not None:
        accepted = torch.zeros(len(requests), NODES, dtype=torch.int32)
        for row, tokens in zip(accepted, last):
            row[: len(tokens)] = torch.tensor(tokens)
        info = types.SimpleNamespace(accept_tokens=accepted.flatten(), accept_lens=torch.tensor([len(one) for one in last]))
    batch = types.SimpleNamespace(reqs=requests, spec_info=info, grammar_needs_sync=lambda: has_grammar)
    rows, mask = worker._prepare_draft_tokens(batch)
    mask = mask.reshape(len(requests), NODES, NODES)
    assert rows.dtype == np.int64 and mask.dtype == bool and (mask == np.tri(NODES, dtype=bool)).all()
    return rows.reshape(len(requests), NODES).tolist()


class Case:
    """A worker without an engine, and requests with grammars of a backend."""

    def __init__(self, folder):
        import sglang_bed  # noqa: F401
        import transformers

        from tooldecode._engine import vocabulary_of
        from tooldecode._sglang_worker import ToolDecodeWorker
        from tooldecode.sglang import ToolDecodeBackend

        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.end = self.tokenizer.eos_token_id
        self.backend = ToolDecodeBackend(vocabulary_of(self.tokenizer, len(self.tokenizer), [self.end]))
        self.worker = ToolDecodeWorker.__new__(ToolDecodeWorker)
        self.worker.draft_token_num, self.worker.enable_overlap, self.worker.failures = NODES, False, 0

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def request(self, prompt, output=(), grammar=None):
        import types
        from array import array

        return types.SimpleNamespace(grammar=grammar, origin_input_ids_unpadded=array("q", prompt), eos_token_ids={self.end},
                                     output_ids=array("q", output))

    def calls(self):
        """A grammar and a call that it allows, in tokens. The first may be the opening or its letters; the next are forced."""
        from engine_scripts import tools_of

        from tooldecode._tools import ToolRequest

        asked = ToolRequest(json.dumps(tools_of()), "hermes", "named", "get_weather")
        call = asked.reader().write([("get_weather", {"city": "Rome", "days": 3})])
        return self.backend.dispatch_structural_tag(asked.text()), self.encode(call)


def forced(folder):
    """Drafts are what the constraint forces, whatever was guessed; a guess that is allowed stands between, also one that
    history gives behind forced tokens only."""
    case = Case(folder)
    grammar, tokens = case.calls()
    grammar.accept_token(tokens[0])
    constraint = grammar._answer.constraint
    count = 1 + len(constraint.forced_tokens(grammar._answer.state, case.backend.vocabulary.decode(tokens[:1])))
    assert count > NODES
    for request in (case.request([7], tokens[:1], grammar), case.request([tokens[0], 8, 9], tokens[:1], grammar)):
        assert rows_of(case.worker, [request]) == [tokens[:NODES]]
    other = grammar.copy()
    other.accept_token(tokens[0])
    assert rows_of(case.worker, [case.request([7], tokens[:1], other)]) == [tokens[:NODES]]
    at = count - 2
    for token in tokens[1:at]:
        grammar.accept_token(token)
    last, chosen = tokens[at - 1], tokens[count]  # the two before `chosen` are forced
    assert rows_of(case.worker, [case.request([7], tokens[:at], grammar)])[0][:4] == [last, *tokens[at:count], case.end]
    for prompt in ([*tokens, 7], [*tokens[count - 1 :], 7]):  # the whole call, and what stands behind the forced tokens
        assert rows_of(case.worker, [case.request(prompt, tokens[:at], grammar)])[0][:4] == [last, *tokens[at:count], chosen]
    for token in [*tokens[at:], case.end]:
        grammar.accept_token(token)
    assert rows_of(case.worker, [case.request([7], [*tokens, case.end], grammar)]) == [[case.end] * NODES]  # it has ended
    assert case.worker.failures == 0


def reasoning(folder):
    """In a reasoning block, and with a grammar of another backend, history alone is drafted."""
    case = Case(folder)
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject

    grammar, tokens = case.calls()
    stop = case.encode("</think>")
    wrapped = ReasonerGrammarObject(grammar, stop)
    wrapped.maybe_init_reasoning(True)
    thought = [20, 21, 22, 23, 20, 21]
    history = [21, 22, 23, 20, *[case.end] * (NODES - 4)]
    for one in (wrapped, BaseGrammarObject(), None):
        assert rows_of(case.worker, [case.request([7], thought, one)]) == [history], one
    for token in [*stop, tokens[0]]:
        wrapped.accept_token(token)
    assert rows_of(case.worker, [case.request([7], [*thought, *stop, tokens[0]], wrapped)]) == [tokens[:NODES]]
    assert case.worker.failures == 0


def overlap(folder):
    """Tokens that overlap scheduling has not put into a request are drafted behind, where nothing makes it wait."""
    case = Case(folder)
    case.worker.enable_overlap = True
    requests = [case.request([5, 6, 7, 8, 9]), case.request([30, 31], [30])]
    rows = rows_of(case.worker, requests, [[6, 7], [31]], has_grammar=False)
    assert rows == [[7, 8, 9, 6, *[case.end] * (NODES - 4)], [31, 30, 31, *[case.end] * (NODES - 3)]]
    rows = rows_of(case.worker, requests, [[6, 7], [31]], has_grammar=True)  # they are in already
    assert [row[:2] for row in rows] == [[9, case.end], [30, 31]]


def failures(folder):
    """A row that fails alone has no draft; a vocabulary without a tokenizer has no forced tokens."""
    case = Case(folder)
    import tooldecode as td
    from tooldecode.sglang import ToolDecodeBackend

    grammar, tokens = case.calls()
    grammar.accept_token(tokens[0])
    broken = grammar.copy()
    broken._answer = None
    told = []
    logging.getLogger("sglang.tooldecode").addFilter(lambda record: bool(told.append(record.levelname)))
    requests = [case.request([7], grammar=broken), case.request([7], tokens[:1], grammar)]
    for _ in range(2):
        assert rows_of(case.worker, requests) == [[7, *[case.end] * (NODES - 1)], tokens[:NODES]]
    assert case.worker.failures == 2 and told == ["ERROR"]

    plain = td.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256])
    grammar = ToolDecodeBackend(plain).dispatch_regex("abcab[xy]")
    for token in b"ab":
        grammar.accept_token(token)
    for _ in range(2):
        assert rows_of(case.worker, [case.request([*b"abcaq"], [*b"ab"], grammar)])[0][:4] == [*b"bca", case.end]
    assert case.worker.failures == 2 and told == ["ERROR", "WARNING"]


@pytest.mark.parametrize("case", [forced, reasoning, overlap, failures], ids=lambda case: case.__name__)
def test_drafts(tiny, sglang_process, case):
    sglang_process(case, tiny)


def settled(folder, options):
    """What SGLang makes of a server's options: the resolved ones, or the error that refuses them."""
    from sglang_bed import ServerArgs, load_plugins

    load_plugins()
    from sglang.srt.arg_groups.overrides import resolved_view
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    from tooldecode.sglang_drafts import ToolDecodeAlgorithm, register_algorithm

    register_algorithm()  # again
    assert isinstance(SpeculativeAlgorithm.from_string("tooldecode"), ToolDecodeAlgorithm)
    try:
        arguments = ServerArgs(model_path=str(folder), device="cpu", attention_backend="torch_native",
                               speculative_algorithm="tooldecode", **options)
        arguments.resolve_once()
    except ValueError as error:
        return getattr(error, "code", ""), getattr(error, "where", ""), str(error)
    return {name: getattr(resolved_view(arguments), name) for name in (
        "speculative_algorithm", "speculative_num_draft_tokens", "speculative_num_steps", "speculative_eagle_topk",
        "speculative_ngram_max_bfs_breadth", "max_running_requests", "enable_mixed_chunk", "disable_overlap_schedule")}


def test_options(tiny, sglang_process):
    assert sglang_process(settled, tiny, {"enable_mixed_chunk": True}) == {
        "speculative_algorithm": "TOOLDECODE", "speculative_num_draft_tokens": 12, "speculative_num_steps": 11,
        "speculative_eagle_topk": 1, "speculative_ngram_max_bfs_breadth": 1, "max_running_requests": 48,
        "enable_mixed_chunk": False, "disable_overlap_schedule": True}
    own = sglang_process(settled, tiny, {"speculative_num_draft_tokens": 4, "max_running_requests": 3})
    assert (own["speculative_num_draft_tokens"], own["speculative_num_steps"], own["max_running_requests"]) == (4, 3, 3)


@pytest.mark.parametrize("option, value", [("speculative_num_draft_tokens", 1), ("speculative_num_draft_tokens", -3),
                                           ("speculative_eagle_topk", 2), ("speculative_num_steps", 3),
                                           ("speculative_use_rejection_sampling", True),
                                           ("speculative_draft_model_path", "tiny"),
                                           ("speculative_ngram_external_corpus_path", "corpus.jsonl")])
def test_bad_options(tiny, sglang_process, option, value):
    value = str(tiny) if value == "tiny" else value
    code, where, message = sglang_process(settled, tiny, {option: value})
    assert code == "invalid_option" and where == "--" + option.replace("_", "-") and message.startswith(where)
