"""Tokens per step of vLLM or SGLang with drafts from jump-forward strings and history, by replay of BFCL's calls; see run.sh.

No model runs. A script decides the tokens that each row samples: the call of BFCL's row in the format hermes, in the
tokens of Qwen2.5, after the prompt that Qwen2.5's chat template makes from the row. vLLM's manager of structured
outputs, or SGLang's walk of draft trees, verifies drafts and makes masks, which must allow the script's tokens. A step
emits the drafts that agree with the script, and one more token. The first token of an answer comes from the prompt's
pass, as without drafts.

With --cached the row's calls are in the tool cache: each is announced to the proposer alone. Nothing is timed then, and
with --engine sglang.
"""
import argparse
import json
import logging
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

from measure import DATA, ROOT, record, tokenizer_of

FILES = ("simple_python.jsonl", "multiple.jsonl", "parallel.jsonl", "parallel_multiple.jsonl")
KINDS = ("none", "history", "forced", "both")
CACHED_KINDS = ("none", "both", "cached")
SYSTEM = """<|im_start|>system
You are Qwen, created by Alibaba Cloud. You are a helpful assistant.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call><|im_end|>
<|im_start|>user
{question}<|im_end|>
<|im_start|>assistant
"""


def rows_of(data, most):
    """The tools, question and calls of rows whose calls conform."""
    for file in FILES:
        path = pathlib.Path(data) / "bfcl" / file
        count = 0
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            row = json.loads(line)
            calls = row.get("call_json")
            calls = calls if isinstance(calls, list) else [calls] if calls else []
            if not calls or not row.get("call_valid") or count >= most:
                continue
            count += 1
            tools = [{"type": "function", "function": {key: one[key] for key in ("name", "description", "parameters")}}
                     for one in row["functions"]]
            yield file, tools, row["question"][-1]["content"], [(call["name"], call["arguments"]) for call in calls]


class Replay:
    """One engine: vLLM's manager over Qwen2.5's vocabulary, with this package's backend and proposer."""

    def __init__(self, folder, size, count):
        from vllm.config import DeviceConfig, ModelConfig, ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig
        from vllm.config.structured_outputs import StructuredOutputsConfig
        from vllm.plugins import load_general_plugins
        from vllm.v1.spec_decode.custom_class_proposer import create_custom_proposer
        from vllm.v1.structured_output import StructuredOutputManager

        load_general_plugins()
        model = ModelConfig(model=folder, tokenizer=folder, dtype="float32")
        self.config = VllmConfig(
            model_config=model, device_config=DeviceConfig(device="cpu"),
            scheduler_config=SchedulerConfig(max_num_seqs=8, max_model_len=8192, is_encoder_decoder=False,
                                             max_num_batched_tokens=8192, async_scheduling=False),
            structured_outputs_config=StructuredOutputsConfig(backend="tooldecode"),
            speculative_config=SpeculativeConfig(method="custom_class", model="tooldecode.vllm_proposer.ToolDecodeProposer",
                                                 num_speculative_tokens=count, target_model_config=model,
                                                 target_parallel_config=ParallelConfig()))
        self.manager = StructuredOutputManager(self.config)
        self.proposer = create_custom_proposer(self.config)
        self.tokenizer, self.count = self.manager.tokenizer, count
        # "again": both, after another request has used the same constraint.
        self.propose_us, self.judge_us, self.again_us = [], [], []

    def request(self, name, prompt, grammar):
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams
        from vllm.v1.request import Request

        params = SamplingParams(max_tokens=2000, structured_outputs=StructuredOutputsParams(grammar=grammar))
        params.update_from_generation_config(self.config.model_config.try_get_generation_config(), self.tokenizer.eos_token_id)
        params.verify(self.config.model_config, self.config.speculative_config, self.config.structured_outputs_config, self.tokenizer)
        request = Request(name, prompt, params, None)
        self.manager.grammar_init(request)
        while not request.structured_output_request.is_grammar_ready:
            time.sleep(0.001)
        return request

    def drafts(self, kind, request, tokens):
        if kind == "none":
            return []
        begin = time.perf_counter_ns()
        drafts = self.proposer.propose([[1]], np.array([len(tokens)]), tokens[None, :])[0]
        if kind == "both":
            self.propose_us.append((time.perf_counter_ns() - begin) / 1e3)
        # A draft that no constraint allows, if history is not used.
        drafts = drafts if kind != "forced" else [self.tokenizer.eos_token_id]
        grammar = request.structured_output_request.grammar
        grammar._drafts = self.count if kind != "history" else 0
        begin = time.perf_counter_ns()
        drafts = self.manager.validate_tokens(request, drafts)
        if kind == "again":
            self.again_us.append((time.perf_counter_ns() - begin) / 1e3)
        if kind == "both":
            self.judge_us.append((time.perf_counter_ns() - begin) / 1e3)
        assert len(drafts) <= self.count
        return drafts

    def steps(self, kind, request, prompt, script):
        """The numbers of steps, drafted tokens and accepted tokens."""
        at = steps = drafted = accepted = 0
        while at < len(script):
            tokens = np.array(prompt + script[:at], np.int32)
            drafts = self.drafts(kind, request, tokens) if at else []
            bitmask = self.manager.grammar_bitmask({"r": request}, ["r"], {"r": drafts} if drafts else {})
            new = []
            for row, draft in zip(bitmask, [*drafts, None]):
                token = script[at + len(new)]
                if not int(row[token >> 5]) >> (token & 31) & 1:
                    raise ValueError(f"token {token} of the script is masked")
                new.append(token)
                if token != draft or at + len(new) == len(script):
                    break
            drafted, accepted, steps, at = drafted + len(drafts), accepted + len(new) - 1, steps + 1, at + len(new)
            request.append_output_token_ids(new)
            assert self.manager.accept_tokens(request, new)
        return steps, drafted, accepted


class SglangReplay:
    """One engine: this package's backend over Qwen2.5's vocabulary; SGLang's walk of draft trees makes the masks."""

    def __init__(self, tokenizer, size, count):
        from tooldecode._engine import vocabulary_of
        from tooldecode.sglang import ToolDecodeBackend

        self.backend = ToolDecodeBackend(vocabulary_of(tokenizer, size, [tokenizer.eos_token_id]))
        self.size, self.count = size, count

    def request(self, name, prompt, grammar):
        return self.backend.dispatch_structural_tag(grammar)

    def drafts(self, kind, grammar, tokens):
        from tooldecode._drafts import guess_of_history

        def guess(drafted):
            return guess_of_history(np.array([*tokens, *drafted]), self.count) if kind != "forced" else []
        if kind == "none":
            return []
        grammar._can_force = kind != "history"
        return grammar.draft(self.count, guess)

    def steps(self, kind, grammar, prompt, script):
        """The numbers of steps, drafted tokens and accepted tokens."""
        import torch
        from sglang.srt.speculative.spec_utils import traverse_tree

        at = steps = drafted = accepted = 0
        while at < len(script):
            drafts = self.drafts(kind, grammar, prompt + script[:at]) if at else []
            count = 1 + len(drafts)
            masks = grammar.allocate_vocab_mask(self.size, count, "cpu")
            traverse_tree(torch.tensor([*range(1, count), -1]), torch.full((count,), -1), torch.tensor([0, *drafts]), grammar,
                          masks, self.size)
            new = []
            for row, draft in zip(masks.tolist(), [*drafts, None]):
                token = script[at + len(new)]
                if not row[token >> 5] >> (token & 31) & 1:
                    raise ValueError(f"token {token} of the script is masked")
                new.append(token)
                if token != draft or at + len(new) == len(script):
                    break
            drafted, accepted, steps, at = drafted + len(drafts), accepted + len(new) - 1, steps + 1, at + len(new)
            for token in new:
                grammar.accept_token(token)
        return steps, drafted, accepted


def measure(options):
    from tooldecode._tools import ToolRequest

    tokenizer, size = tokenizer_of(pathlib.Path(options.data) / "vocab/qwen2.json.gz")
    results = {"draft_tokens": options.drafts, "rows": {}, "refused": 0, "files": {}}
    kinds = CACHED_KINDS if options.cached else KINDS
    is_vllm = options.engine == "vllm"
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        config = json.loads((ROOT / "examples/data/tiny/config.json").read_text())
        pathlib.Path(folder, "config.json").write_text(json.dumps(config | {"vocab_size": size, "max_position_embeddings": 8192}))
        logging.disable(logging.ERROR)
        replay = Replay(folder, size, options.drafts) if is_vllm else SglangReplay(tokenizer, size, options.drafts)
        totals = {}
        for file, tools, question, calls in rows_of(options.data, options.rows):
            asked = ToolRequest(json.dumps(tools), "hermes")
            try:
                text = asked.reader().write(calls)
            except ValueError:
                results["refused"] += 1
                continue
            prompt = tokenizer.encode(SYSTEM.format(tools="\n".join(map(json.dumps, tools)), question=question))
            script = tokenizer.encode(text, add_special_tokens=False) + [tokenizer.eos_token_id]
            try:
                for kind in kinds if options.cached or not is_vllm else (*KINDS, "again"):
                    if is_vllm and kind == "both":  # a constraint that no request has used
                        replay.manager.backend._known.clear()
                    cached = [asked.reader().write([call]) for call in calls] if kind == "cached" else []
                    tokens = [tokenizer.encode(call, add_special_tokens=False) for call in cached]
                    if is_vllm:
                        replay.proposer.announce("r", tokens, lambda: ["r"])
                    request = replay.request("r", prompt, asked.text())
                    found = replay.steps(kind, request, prompt, script)
                    if kind == "again":
                        continue
                    row = totals.setdefault((file, kind), [0, 0, 0, 0])
                    for i, value in enumerate((len(script), *found)):
                        row[i] += value
            except ValueError:
                results["refused"] += 1
                continue
            results["rows"][file] = results["rows"].get(file, 0) + 1
        for (file, kind), (tokens, steps, drafted, accepted) in totals.items():
            results["files"].setdefault(file, {})[kind] = {
                "tokens_per_step": round(tokens / steps, 3), "accepted": round(accepted / drafted, 3) if drafted else None}
        for kind in kinds:
            tokens, steps, drafted, accepted = (sum(row[i] for (_, one), row in totals.items() if one == kind) for i in range(4))
            results.setdefault("all", {})[kind] = {"tokens_per_step": round(tokens / steps, 3),
                                                   "accepted": round(accepted / drafted, 3) if drafted else None}
        if not is_vllm:
            return results
        assert replay.proposer.failures == 0
        if options.cached:
            return results
        results["propose_us"] = round(statistics.median(replay.propose_us), 1)
        results["judge_us"] = round(statistics.median(replay.judge_us), 1)
        results["judge_us_mean"] = round(statistics.fmean(replay.judge_us), 1)
        results["judge_us_p99"] = round(sorted(replay.judge_us)[len(replay.judge_us) * 99 // 100], 1)
        results["judge_again_us"] = round(statistics.median(replay.again_us), 1)
        results["judge_again_us_mean"] = round(statistics.fmean(replay.again_us), 1)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--rows", type=int, default=60, help="rows of each file (60)")
    parser.add_argument("--drafts", type=int, default=8, help="the longest draft (8)")
    parser.add_argument("--engine", choices=("vllm", "sglang"), default="vllm")
    parser.add_argument("--cached", action="store_true", help="with the calls in the tool cache")
    parser.add_argument("--program", default=str(ROOT / "build/release/examples/tooldecode"))
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.cached and options.engine == "sglang":
        parser.error("--cached: vLLM's proposer alone drafts cached calls")
    results = measure(options)
    print(json.dumps(results, indent=1))
    if options.json:
        made_by = record(options.program, [options.engine, "torch", "transformers"], ["drafts", *sys.argv[1:]])
        pathlib.Path(options.json).write_text(json.dumps({"made_by": made_by, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
