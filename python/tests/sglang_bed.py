"""SGLang's whole scheduler on a CPU, over a model that is a pure function of the tokens in its KV cache.

Import it in a process of its own: it makes SGLang believe in a CPU engine before SGLang is imported. What is replaced:

- the model's forward pass. It writes each token into the slot of the KV cache that SGLang gives it, reads the tokens that
  the request's slots hold, and makes logits of them. Whatever SGLang does with slots, it must not change an answer;
- six kernels of `sgl_kernel`, which is not installed without a GPU or a build for CPUs, stated here in plain Python;
- `setproctitle`, if it is not installed; the receiver of requests and the senders of answers;
- one option: SGLang turns overlap scheduling off where drafts meet a CPU, and it is turned on again.

All else is SGLang's own and unchanged: both event loops, schedule policy, chunked prefill, retraction, radix cache, pools,
grammar manager, sampling under masks, verification of drafts, processing of results, checks for leaks, output stream.
"""
import ctypes
import importlib.machinery
import importlib.util
import json
import os
import random
import sys
import types
from array import array
from collections import Counter
from unittest import mock

os.environ.update(SGLANG_USE_CPU_ENGINE="1", SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE="1",
                  SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY="1",
                  SGLANG_TEST_RETRACT="1", SGLANG_TEST_RETRACT_INTERVAL="20")  # besides where the cache is full

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)

# ------------------------------------------------------------------------------------------------------- SGLang's kernels


def assign_extend_cache_locs_cpu(requests, slots, begins, ends, out, _):
    rows = torch.cat([slots[request, begin:end] for request, begin, end in zip(requests.tolist(), begins.tolist(), ends.tolist())])
    out[: len(rows)] = rows


def assign_req_to_token_pool_cpu(requests, slots, begins, ends, given, _):
    at = 0
    for request, begin, end in zip(requests.tolist(), begins.tolist(), ends.tolist()):
        slots[request, begin:end] = given[at : at + end - begin].to(slots.dtype)
        at += end - begin


def fill_accept_out_cache_loc_cpu(accepted, given, out):
    kept = accepted.flatten()
    kept = kept[kept >= 0].long()
    out[: len(kept)] = given[kept]


def copy_all_layer_kv_cache_cpu(addresses, strides, targets, sources):
    pairs = [(target, source) for target, source in zip(targets.tolist(), sources.tolist()) if target != source]
    for address, stride in zip(addresses.tolist(), strides.tolist()):
        rows = [ctypes.string_at(address + source * stride, stride) for _, source in pairs]
        for (target, _), row in zip(pairs, rows):
            ctypes.memmove(address + target * stride, row, stride)


def verify_tree_greedy_cpu(predicts, accept_index, accept_token_num, candidates, retrive_index, retrive_next_token,
                           retrive_next_sibling, target_predict):
    """From the root on to the child that holds what the target chose, as long as there is one."""
    for row in range(len(candidates)):
        node, path = 0, [0]
        while True:
            chosen = int(target_predict[row, node])
            predicts[retrive_index[row, node]] = chosen
            child = int(retrive_next_token[row, node])
            while child >= 0 and int(candidates[row, child]) != chosen:
                child = int(retrive_next_sibling[row, child])
            if child < 0:
                break
            node = child
            path.append(node)
        accept_index[row, : len(path)] = retrive_index[row, path].to(accept_index.dtype)
        accept_token_num[row] = len(path) - 1


def reconstruct_indices_from_tree_mask(mask, lengths, positions, index, next_token, next_sibling, rows, nodes):
    mask = mask.view(rows, nodes, nodes)
    for row in range(rows):
        before = [[other for other in range(node) if mask[row, node, other]] for node in range(nodes)]
        parents = [one[-1] if one else -1 for one in before]
        for node in range(nodes):
            positions[row * nodes + node] = len(before[node]) + lengths[row]
            index[row, node] = row * nodes + node
            next_token[row, node] = next((one for one in range(nodes) if parents[one] == node), -1)
            next_sibling[row, node] = next((one for one in range(node + 1, nodes) if parents[one] == parents[node] >= 0), -1)


def install(name, **members):
    """A module in place of one that is not installed; what it lacks cannot be called."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    module.__dict__.update(members)

    def missing(member):
        if member.startswith("__"):
            raise AttributeError(member)
        return mock.MagicMock(name=f"{name}.{member}", side_effect=NotImplementedError(f"{name}.{member}"))
    module.__getattr__ = missing
    sys.modules[name] = module


KERNELS = (assign_extend_cache_locs_cpu, assign_req_to_token_pool_cpu, fill_accept_out_cache_loc_cpu, copy_all_layer_kv_cache_cpu,
           verify_tree_greedy_cpu)
install("sgl_kernel", **{kernel.__name__: kernel for kernel in KERNELS})
install("sgl_kernel.scalar_type")
install("sgl_kernel.speculative", reconstruct_indices_from_tree_mask=reconstruct_indices_from_tree_mask)
if importlib.util.find_spec("setproctitle") is None:
    install("setproctitle")

from engine_scripts import EBNF, JUDGES, REGEX, SCHEMA, TAG, allowed, tool_kinds  # noqa: E402
from sglang.srt.layers.logits_processor import LogitsProcessorOutput  # noqa: E402
from sglang.srt.managers.io_struct import AbortReq, BatchTokenIDOutput, TokenizedGenerateReqInput  # noqa: E402
from sglang.srt.managers.scheduler import Scheduler  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402
from sglang.srt.runtime_context import SpawnRanks, get_context, publish  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402
from sglang.srt.server_args import PortArgs, ServerArgs  # noqa: E402
from tooldecode._engine import build, vocabulary_of  # noqa: E402

NODES = 5  # the last token and four drafts
SLOTS = 180  # of the KV cache: too few for all that run
SMALL = {"context_length": 256, "chunked_prefill_size": 64, "max_total_tokens": SLOTS, "max_running_requests": 8}


def kinds() -> dict:
    """By name: what a request asks for; kind and text of its constraint; whether a text is a whole answer to it."""
    asked = {"json": ("json_schema", "json", json.dumps(SCHEMA)), "regex": ("regex", "regex", REGEX),
             "ebnf": ("ebnf", "grammar", EBNF), "structural_tag": ("structural_tag", "structural_tag", json.dumps(TAG))}
    made = {name: ({field: text}, (kind, text), JUDGES[name]) for name, (field, kind, text) in asked.items()}
    for name, (text, is_answer) in tool_kinds().items():
        made[name] = ({"structural_tag": text}, ("grammar", text), is_answer)
    return made


class Model:
    """Logits as a function of a text's last tokens: of one, of two or of all, as the first token says, so that texts repeat
    themselves and drafts of history are kept."""

    def __init__(self, size, end, stop):
        self.size, self.end, self.stop = size, end, stop
        self.seed = 0
        self.haste = 0.0  # how likely a text ends where it may

    def logits(self, text):
        order = (1, 2, len(text))[text[0] % 3]
        dice = np.random.default_rng(abs(hash((self.seed, tuple(text[-order:])))))
        row = dice.permutation(self.size).astype(np.float32)
        if dice.random() < self.haste:
            row[self.end] += 2 * self.size
        if self.stop is not None and dice.random() < 0.1:  # reasoning ends
            row[self.stop] += 4 * self.size
        return row

    def answer(self, prompt, constraint, limit, reasoning):
        """What a request must get: the model alone under the masks, without an engine."""
        state = constraint.initial() if constraint is not None and not reasoning else None
        text = list(prompt)
        while len(text) < len(prompt) + limit:
            row = self.logits(text)
            if state is not None:
                words = np.zeros(constraint.mask_words, np.int32)
                constraint.fill_mask(state, words)
                tokens = allowed(words)
                token = int(tokens[row[tokens].argmax()])
                state = constraint.advance(state, token)
            else:
                token = int(row.argmax())
                if token == self.stop and reasoning and constraint is not None:
                    state, reasoning = constraint.initial(), False
            text.append(token)
            if token == self.end:
                break
        return text[len(prompt):]


class Bed:
    """One scheduler. folder: of the model; its weights are not read."""

    def __init__(self, folder, reasoning, overlap, drafts, **more):
        load_plugins()
        options = {"speculative_algorithm": "TOOLDECODE", "speculative_num_draft_tokens": NODES} if drafts else {}
        arguments = ServerArgs(
            model_path=str(folder), device="cpu", load_format="dummy", attention_backend="torch_native", dtype="float32",
            grammar_backend="tooldecode", disable_cuda_graph=True, disable_overlap_schedule=not overlap, random_seed=1,
            log_level="error", schedule_conservativeness=0.02, **SMALL, **options, **more,
            **({"reasoning_parser": "qwen3"} if reasoning else {}))
        publish(arguments, role="scheduler", ranks=SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0))
        if overlap:  # SGLang turns it off where drafts meet a CPU
            get_context().override("test", disable_overlap_schedule=False)
        self.scheduler = scheduler = Scheduler(arguments, PortArgs.init_new(arguments))
        assert scheduler.enable_overlap == overlap
        self.runner = scheduler.tp_worker.model_runner
        self.runner.model.forward = self.forward
        tokenizer = self.tokenizer = scheduler.tokenizer
        self.end = tokenizer.eos_token_id
        self.size = scheduler.model_config.vocab_size
        self.model = Model(self.size, self.end, tokenizer.convert_tokens_to_ids("</think>") if reasoning else None)
        self.vocabulary = vocabulary_of(tokenizer, self.size, [self.end])
        self.constraints = {name: build(self.vocabulary, *one[1], 40) for name, one in kinds().items()}
        self.reasoning = reasoning
        self.counts = Counter()
        self.dice = random.Random(0)
        for sender in (scheduler.ipc_channels.send_to_detokenizer, scheduler.ipc_channels.send_to_tokenizer):
            sender.send_output = self.receive
        scheduler.request_receiver = types.SimpleNamespace(recv_requests=self.step)
        queue = scheduler._add_request_to_queue

        def add_to_queue(request, is_retracted=False):
            self.counts["retracted"] += is_retracted
            queue(request, is_retracted)
        scheduler._add_request_to_queue = add_to_queue
        if drafts:
            self.watch_drafts(scheduler.draft_worker)

    def watch_drafts(self, worker):
        """Counts drafts, and puts wrong ones among them."""
        draft, verified = worker._draft, worker.on_verify_complete_cpu

        def drafted(request, tokens):
            made = draft(request, tokens)
            if self.dice.random() < 0.2:
                made = [self.dice.choice([self.end, self.dice.randrange(self.size)]) for _ in range(self.dice.randrange(NODES))]
            self.counts["drafted"] += len(made)
            return made

        def verify(kept, batch_size=0):
            self.counts["kept"] += sum(kept)
            verified(kept, batch_size)
        worker._draft, worker.on_verify_complete_cpu = drafted, verify

    def forward(self, input_ids, positions, batch, **_):
        keys = self.runner.token_to_kv_pool.k_buffer[0]  # [slots, heads, size]
        keys[batch.out_cache_loc.long(), 0, 0] = input_ids.to(keys.dtype)
        slots = self.runner.req_to_token_pool.req_to_token
        verifies = batch.forward_mode.is_target_verify()
        width = NODES if verifies else 0
        rows, at = [], 0
        for row, (request, length) in enumerate(zip(batch.req_pool_indices.tolist(), batch.seq_lens.tolist())):
            text = keys[slots[request, : length + width].long(), 0, 0].int().tolist()
            if verifies:
                assert positions[at : at + width].tolist() == list(range(length, length + width))
                assert text[length:] == input_ids[at : at + width].tolist()
                rows += [self.model.logits(text[: length + 1 + node]) for node in range(width)]
                at += width
            else:
                rows.append(self.model.logits(text))
        return LogitsProcessorOutput(next_token_logits=torch.from_numpy(np.stack(rows)))

    def receive(self, output, _=None):
        if isinstance(output, BatchTokenIDOutput):
            for name, tokens, reason in zip(output.rids, output.output_ids, output.finished_reasons):
                assert name not in self.finished, name
                self.texts[name] += tokens
                self.counts["tokens"] += len(tokens)
                if reason is not None:
                    self.finished[name] = reason
        elif isinstance(output, AbortReq):  # of one that waited
            self.finished.setdefault(output.rid, {"type": "abort", "message": "waiting"})

    def request(self, name, asked, prompt, limit, reasoning):
        params = SamplingParams(max_new_tokens=limit, temperature=0, **asked)
        params.normalize(self.tokenizer)
        return TokenizedGenerateReqInput(
            rid=name, input_text="", input_ids=array("q", prompt), input_embeds=None, mm_inputs=None,
            token_type_ids=None, sampling_params=params, return_logprob=False, logprob_start_len=-1, top_logprobs_num=0,
            token_ids_logprob=None, stream=self.dice.random() < 0.7, require_reasoning=reasoning)

    def step(self, local_reqs=None):
        """What comes before a step of SGLang's event loop."""
        dice, coming = self.dice, list(local_reqs or ())
        self.steps += 1
        assert self.steps < 20000, f"lost: {set(self.asked) - set(self.finished)}"
        while self.waiting and dice.random() < 0.6:
            kind = "free" if dice.random() < self.freedom else dice.choice(list(self.constraints))
            reasoning = self.reasoning and dice.random() < 0.7
            prompt = [7 + dice.randrange(90) for _ in range(dice.randrange(1, 60))]
            limit = dice.choice([3, 20, 100])
            for copy in range(dice.choice([1, 1, 1, 3])):  # as for n of 3
                name = f"{self.waiting[-1]}.{copy}"
                self.asked[name], self.texts[name] = (kind, prompt, limit, reasoning), []
                coming.append(self.request(name, {} if kind == "free" else self.kinds[kind][0], prompt, limit, reasoning))
            self.waiting.pop()
        others = [name for name in self.asked if name not in self.aborted]
        if others and dice.random() < 0.03:
            name = dice.choice(others)
            coming.append(AbortReq(rid=name))
            self.aborted.add(name)
        idle = not self.waiting and not coming and len(self.finished) == len(self.asked)
        if idle and self.scheduler.is_fully_idle() and not self.scheduler.last_batch:
            self.scheduler.gracefully_exit = True
        return coming

    def run(self, seed):
        """One schedule, and what it must have led to."""
        scheduler, self.dice = self.scheduler, random.Random(seed)
        self.model.seed, self.model.haste = seed, self.dice.choice([0.02, 0.3])
        self.freedom = self.dice.choice([0.1, 0.1, 0.6, 1.0])  # SGLang waits for results where one of a batch has a grammar
        self.kinds, self.waiting = kinds(), [f"r{i}" for i in range(self.dice.randrange(4, 14))]
        self.asked, self.texts, self.finished, self.aborted, self.steps = {}, {}, {}, set(), 0
        scheduler.gracefully_exit = False
        scheduler.run_event_loop()
        for name, (kind, prompt, limit, reasoning) in self.asked.items():
            self.check(name, kind, prompt, limit, reasoning)
        assert scheduler.flush_cache(empty_cache=False) is not False
        pool = scheduler.token_to_kv_pool_allocator
        assert pool.available_size() == scheduler.max_total_num_tokens, "slots of the KV cache stay in use"
        assert scheduler.req_to_token_pool.available_size() == scheduler.req_to_token_pool.size, "requests' rows stay in use"
        self.counts["schedules"] += 1

    def check(self, name, kind, prompt, limit, reasoning):
        tokens, reason = self.texts[name], self.finished[name]
        constraint = self.constraints.get(kind)
        whole = self.model.answer(prompt, constraint, limit, reasoning)
        self.counts[reason["type"]] += 1
        told = (name, kind, reason, self.tokenizer.decode(tokens), self.tokenizer.decode(whole))
        if reason["type"] == "abort":
            # One that is aborted before its first step gets a step of its own, without its prompt and its grammar.
            never_ran = reason["message"] == "Aborted by AbortReq." and len(tokens) <= 1
            # With drafts SGLang leaves what a last step accepted behind an end or past the limit in an answer that is aborted
            # before it is read.
            cut = tokens[: tokens.index(self.end) + 1 if self.end in tokens else limit][:limit]
            assert name in self.aborted and (never_ran or cut == whole[: len(cut)]), told
            return
        assert tokens == whole and reason["type"] == ("stop" if tokens[-1] == self.end else "length"), told
        answer = tokens
        if reasoning and constraint is not None:
            answer = tokens[tokens.index(self.model.stop) + 1 :] if self.model.stop in tokens else []
        if constraint is None or not answer:
            return
        if reason["type"] == "stop":
            text = self.tokenizer.decode(answer[:-1], skip_special_tokens=False)
            assert self.kinds[kind][2](text), told
        else:
            assert constraint.advance_tokens(constraint.initial(), answer) is not None, told
