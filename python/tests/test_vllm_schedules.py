"""vLLM's own engine core, scheduler and manager under random schedules; an executor without a model samples at random.

Requests of every kind come, are aborted and are preempted while others run, with drafts and without, with reasoning, with
synchronous and asynchronous scheduling. Every answer conforms, every cut answer begins one that does, no request is lost,
and no block of the cache stays in use. TOOLDECODE_SCHEDULES says how many schedules run (40).
"""
import concurrent.futures
import os
import random
import time

import numpy as np
import pytest

vllm = pytest.importorskip("vllm", reason="SKIPPED: vLLM is not installed")
pytest.importorskip("vllm.v1.structured_output", reason="SKIPPED: what vLLM's structured outputs import is not installed")

from engine_scripts import FAILING, JUDGES, SCHEMA, allowed, tool_kinds  # noqa: E402
from test_vllm import KINDS  # noqa: E402
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.engine import FinishReason  # noqa: E402
from vllm.v1.engine.core import EngineCore  # noqa: E402
from vllm.v1.executor.abstract import Executor  # noqa: E402
from vllm.v1.kv_cache_interface import FullAttentionSpec  # noqa: E402
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput  # noqa: E402
from vllm.v1.request import Request  # noqa: E402
from vllm.v1.spec_decode.custom_class_proposer import create_custom_proposer  # noqa: E402

from tooldecode.vllm_proposer import draft_of_history  # noqa: E402

SCHEDULES = int(os.environ.get("TOOLDECODE_SCHEDULES", "40"))
DRAFTS = 4
BLOCK = 16


def kinds() -> dict:
    """What a request asks for, and whether a text is a whole answer to it."""
    made = {kind: (asked, JUDGES[kind]) for kind, asked in KINDS.items()}
    return made | {name: ({"grammar": text}, is_answer) for name, (text, is_answer) in tool_kinds().items()}


class RandomExecutor(Executor):
    """A worker whose model is a die: it samples under the masks that it is given, and keeps its own record of each text."""

    dice: random.Random  # make_core sets these
    ends: list
    stop: int | None  # ends reasoning
    haste: float  # how likely a text ends where it may; run_schedule sets it
    blocks: int

    def _init_executor(self):
        self.tokens = {}
        self.scheduled = None
        self.drafted = {}
        config = self.vllm_config.speculative_config
        # vLLM runs custom proposers with synchronous scheduling only.
        self.proposer = create_custom_proposer(self.vllm_config) if config and config.method == "custom_class" else None
        self.drafts = config is not None
        self.tried = self.kept = self.resumed = 0

    def collective_rpc(self, method, timeout=None, args=(), kwargs=None, non_block=False):
        return [] if method == "compile_or_warm_up_model" else [None]  # there is no worker to tell

    def check_health(self):
        pass

    def get_kv_cache_specs(self):
        import torch

        self.spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=16, dtype=torch.float32)
        return [{"layer": self.spec}]

    def get_supported_kv_cache_layouts(self):
        return [["NHD"]]

    def determine_available_memory(self):
        return [self.spec.page_size_bytes * self.blocks]

    @property
    def supported_tasks(self):
        return ("generate",)

    def execute_model(self, scheduler_output, non_block=False):
        for name in scheduler_output.finished_req_ids:
            self.tokens.pop(name, None)
        for new in scheduler_output.scheduled_new_reqs:
            self.resumed += new.req_id in self.tokens
            self.tokens[new.req_id] = list(new.prefill_token_ids or new.prompt_token_ids)  # those that were read before too
        self.scheduled = scheduler_output
        done = concurrent.futures.Future()
        done.set_result(None if scheduler_output.total_num_scheduled_tokens else
                        ModelRunnerOutput(req_ids=[], req_id_to_index={}))
        return done if non_block else done.result()

    def sample_tokens(self, grammar_output, non_block=False):
        scheduled = self.scheduled
        computed = {new.req_id: new.num_computed_tokens for new in scheduled.scheduled_new_reqs}
        cached = scheduled.scheduled_cached_reqs
        self.resumed += len(cached.resumed_req_ids)
        computed |= dict(zip(cached.req_ids, cached.num_computed_tokens))
        rows = {}
        if grammar_output is not None:
            names = grammar_output.structured_output_request_ids
            stride = grammar_output.grammar_bitmask.shape[0] // len(names)
            rows = {name: grammar_output.grammar_bitmask[i * stride : (i + 1) * stride] for i, name in enumerate(names)}
        sampled = []
        drafted, self.drafted = self.drafted, {}
        for name, count in scheduled.num_scheduled_tokens.items():
            drafts = list(scheduled.scheduled_spec_decode_tokens.get(name, []))
            tokens = self.tokens[name]
            if drafts and name not in rows and all(draft == -1 for draft in drafts):  # the worker knows them, the scheduler not
                mine = drafted.get(name, [])[: len(drafts)]
                drafts = mine + drafts[len(mine) :]
            if computed[name] + count < len(tokens) + len(drafts):  # a part of the prompt, or of what is read again
                sampled.append([])
                continue
            # Ahead of the worker, the scheduler counts drafts as accepted.
            ahead = self.scheduler_config.async_scheduling and self.drafts
            assert ahead or computed[name] + count == len(tokens) + len(drafts), (name, computed[name], count, len(tokens), drafts)
            new = self.sample(rows.get(name), drafts)
            self.tried, self.kept = self.tried + len(drafts), self.kept + len(new) - 1
            tokens += new
            sampled.append(new)
            if self.drafts:
                self.drafted[name] = self.propose(tokens)
        names = list(scheduled.num_scheduled_tokens)
        output = ModelRunnerOutput(req_ids=names, req_id_to_index={name: i for i, name in enumerate(names)},
                                   sampled_token_ids=sampled)
        if not non_block:
            return output
        done = concurrent.futures.Future()
        done.set_result(output)
        return done

    def sample(self, rows, drafts):
        new = []
        for i, draft in enumerate([*drafts, None]):
            some = allowed(rows[i]) if rows is not None else np.arange(self.vllm_config.model_config.get_vocab_size())
            assert len(some), "nothing is allowed"
            may = set(some.tolist()) if draft is not None else ()
            if draft is not None and draft in may and self.dice.random() < 0.6:
                new.append(draft)
            else:
                new.append(self.draw(some))
            if new[-1] != draft or draft in self.ends:
                break
        return new

    def draw(self, some):
        ends = [token for token in self.ends if token in some]
        if len(some) > 0.9 * self.vllm_config.model_config.get_vocab_size() and self.stop is not None and self.dice.random() < 0.3:
            ends = [self.stop] if self.stop in some else ends  # reasoning ends
        if ends and self.dice.random() < self.haste:
            return ends[0]
        return int(self.dice.choice(some))

    def propose(self, tokens):
        row = np.array(tokens, np.int32)[None]
        if self.proposer:
            drafts = self.proposer.propose([[tokens[-1]]], np.array([row.shape[1]]), row)[0]
        else:
            drafts = draft_of_history(row[0], DRAFTS)
        kind = self.dice.random()
        if kind < 0.2:
            drafts = [self.dice.randrange(1000) for _ in range(self.dice.randrange(DRAFTS + 1))]
        elif kind < 0.3:
            drafts = [self.dice.choice([*self.ends, self.dice.randrange(1000)]) for _ in range(DRAFTS)]
        return drafts[:DRAFTS]

    def take_draft_token_ids(self):
        return DraftTokenIds(list(self.drafted), list(self.drafted.values())) if self.drafts else None


def make_core(folder, dice, *, drafts, asynchronous, reasoning, blocks):
    load_general_plugins()
    model = ModelConfig(model=str(folder), tokenizer=str(folder), dtype="float32", max_model_len=256)
    config = VllmConfig(
        model_config=model, device_config=DeviceConfig(device="cpu"), cache_config=CacheConfig(block_size=BLOCK),
        scheduler_config=SchedulerConfig(max_num_seqs=8, max_model_len=256, is_encoder_decoder=False, max_num_batched_tokens=64,
                                         enable_chunked_prefill=True, async_scheduling=asynchronous),
        structured_outputs_config=StructuredOutputsConfig(backend="tooldecode", **({"reasoning_parser": "qwen3"} if reasoning else {})),
        **({"speculative_config": SpeculativeConfig(
            num_speculative_tokens=DRAFTS, target_model_config=model, target_parallel_config=ParallelConfig(),
            **({"method": "ngram_gpu", "prompt_lookup_max": 3} if asynchronous else
               {"method": "custom_class", "model": "tooldecode.vllm_proposer.ToolDecodeProposer"}))} if drafts else {}))
    RandomExecutor.dice, RandomExecutor.blocks = dice, blocks
    core = EngineCore(config, RandomExecutor, log_stats=False)
    tokenizer = core.structured_output_manager.tokenizer
    RandomExecutor.ends = [tokenizer.eos_token_id]
    RandomExecutor.stop = tokenizer.convert_tokens_to_ids("</think>") if reasoning else None
    return core


def run_schedule(core, dice, all_kinds, reasoning, counts):
    manager, tokenizer = core.structured_output_manager, core.structured_output_manager.tokenizer
    end = tokenizer.eos_token_id
    asked, texts, finished, aborted = {}, {}, {}, set()
    RandomExecutor.haste = dice.choice([0.02, 0.5])

    def make(name, kind, prompt, max_tokens):
        params = SamplingParams(max_tokens=max_tokens, **(
            {} if kind == "free" else {"structured_outputs": StructuredOutputsParams(**all_kinds[kind][0])}))
        params.update_from_generation_config(core.vllm_config.model_config.try_get_generation_config(), end)
        params.verify(core.vllm_config.model_config, core.vllm_config.speculative_config,
                      core.vllm_config.structured_outputs_config, tokenizer)
        request = Request(name, prompt, params, None, block_hasher=core.request_block_hasher)
        if request.use_structured_output:
            manager.grammar_init(request)
        return request

    waiting = [f"r{i}" for i in range(dice.randrange(6, 16))]
    left = set(waiting)
    for step in range(5000):
        while waiting and dice.random() < 0.4:
            name = waiting.pop()
            kind = dice.choice([*all_kinds, "free"])
            prompt = [7 + dice.randrange(90) for _ in range(dice.randrange(1, 60))]
            core.add_request(make(name, kind, prompt, dice.choice([3, 20, 150])))
            asked[name], texts[name] = kind, []
        if asked and dice.random() < 0.03:
            name = dice.choice(list(asked))
            core.abort_requests([name])
            if name not in finished:
                aborted.add(name)
                left.discard(name)
        if dice.random() < 0.01:
            core.reset_prefix_cache(reset_running_requests=True)  # what runs is read again
        outputs, executed = core.step_fn()
        core.post_step(executed)
        for some in (outputs or {}).values():
            for output in some.outputs:
                assert output.request_id not in finished
                texts[output.request_id] += output.new_token_ids
                if output.finish_reason is not None:
                    finished[output.request_id] = output.finish_reason
                    left.discard(output.request_id)
        if not left and not core.scheduler.has_requests() and not core.batch_queue:
            break
    assert not left, f"lost: {left} after {step} steps"
    for name, tokens in texts.items():
        kind, reason = asked[name], finished.get(name)
        counts[str(reason)] = counts.get(str(reason), 0) + 1
        assert reason is not None or name in aborted
        assert reason in (None, FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT), (name, kind, reason)
        if kind == "free":
            continue
        answer = list(tokens)
        if reasoning:
            if RandomExecutor.stop not in answer:
                assert reason is not FinishReason.STOP or answer[-1] == end
                continue
            answer = answer[answer.index(RandomExecutor.stop) + 1 :]
        if reason is FinishReason.STOP:
            text = tokenizer.decode(answer[:-1], skip_special_tokens=False)
            assert answer[-1] == end and all_kinds[kind][1](text), (kind, text)
        else:  # a beginning
            probe = make("probe", kind, [7], 9).structured_output_request
            until = time.monotonic() + 60
            while not probe.is_grammar_ready:
                assert time.monotonic() < until
            grammar = probe.grammar
            assert grammar.validate_tokens(answer) == answer, (kind, tokenizer.decode(answer))
    pool = core.scheduler.kv_cache_manager.block_pool
    assert pool.get_num_free_blocks() == pool.num_gpu_blocks - 1, "blocks stay in use"  # one is never used


@pytest.mark.parametrize("drafts", [False, True], ids=["", "drafts"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["", "asynchronous"])
@pytest.mark.parametrize("reasoning", [False, True], ids=["", "reasoning"])
def test_schedules(tiny, thinking, drafts, asynchronous, reasoning):
    all_kinds, counts = kinds(), {}
    core = make_core(thinking if reasoning else tiny, random.Random(0), drafts=drafts, asynchronous=asynchronous,
                     reasoning=reasoning, blocks=18)
    try:
        for seed in range(max(1, SCHEDULES // 8)):
            dice = random.Random(seed)
            RandomExecutor.dice = dice
            try:
                run_schedule(core, dice, all_kinds, reasoning, counts)
            except BaseException:
                print(f"seed {seed}")
                raise
        executor = core.model_executor
        print(f"answers {counts}; drafts {executor.tried}, kept {executor.kept}; resumed {executor.resumed}")
        assert not drafts or executor.kept > 0
        assert SCHEDULES < 40 or executor.resumed > 0
    finally:
        core.structured_output_manager.clear_backend()


@pytest.mark.parametrize("place", FAILING)
@pytest.mark.parametrize("drafts, asynchronous", [(False, False), (True, False), (True, True)], ids=["", "drafts", "asynchronous"])
def test_request_whose_mask_passes_its_limit_ends_with_an_error_and_others_go_on(tiny, drafts, asynchronous, place):
    core = make_core(tiny, random.Random(1), drafts=drafts, asynchronous=asynchronous, reasoning=False, blocks=18)
    try:
        RandomExecutor.haste = 0.5
        asked = {"good": {"json": SCHEMA}, "bad": {"grammar": FAILING[place]}, "free": None}
        for name, outputs in asked.items():
            params = SamplingParams(max_tokens=100, structured_outputs=StructuredOutputsParams(**outputs) if outputs else None)
            tokenizer = core.structured_output_manager.tokenizer
            params.update_from_generation_config(core.vllm_config.model_config.try_get_generation_config(), tokenizer.eos_token_id)
            params.verify(core.vllm_config.model_config, core.vllm_config.speculative_config,
                          core.vllm_config.structured_outputs_config, tokenizer)
            request = Request(name, [7, 8, 9], params, None, block_hasher=core.request_block_hasher)
            if outputs:
                core.structured_output_manager.grammar_init(request)
            core.add_request(request)
        texts, reasons = {name: [] for name in asked}, {}
        for _ in range(1000):
            outputs, executed = core.step_fn()
            core.post_step(executed)
            for output in (one for some in (outputs or {}).values() for one in some.outputs):
                texts[output.request_id] += output.new_token_ids
                if output.finish_reason is not None:
                    reasons[output.request_id] = output.finish_reason
            if len(reasons) == len(asked) and not core.scheduler.has_requests() and not core.batch_queue:
                break
        assert reasons["bad"] is FinishReason.ERROR and len(texts["bad"]) <= 10
        assert reasons["good"] in (FinishReason.STOP, FinishReason.LENGTH) and reasons["free"] is not FinishReason.ERROR
        text = tokenizer.decode(texts["good"][:-1], skip_special_tokens=False)
        assert reasons["good"] is FinishReason.LENGTH or JUDGES["json"](text)
    finally:
        core.structured_output_manager.clear_backend()
