"""Measures tooldecode, XGrammar and llguidance through the interfaces of vLLM and SGLang, see run.sh."""
import argparse
import base64
import collections
import concurrent.futures
import gzip
import importlib.metadata
import json
import logging
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/peers")]
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from run_record import DATA, run_record  # noqa: E402
import workloads  # noqa: E402

OURS, PEERS = "tooldecode", ("xgrammar", "llguidance")
BATCHES, THREADS = (1, 32, 256), (1, 2)
PACKAGES = ("vllm", "sglang", "xgrammar", "llguidance", "torch", "transformers")


def tokenizer_of(path):
    """A tokenizer of transformers from a byte-level vocabulary of the shared data."""
    import tokenizers
    import transformers

    with gzip.open(path, "rt", encoding="utf-8") as file:
        data = json.load(file)
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    tokens = [base64.b64decode(token) for token in data["tokens_b64"]]
    kinds = data["token_types"]
    vocabulary = {"".join(letters[byte] for byte in token): i for i, token in enumerate(tokens) if kinds[i] == 1}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in data["merges"]]))
    splits = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(one), "isolated") for one in data["pre_tokenizer"]["regex"]]
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [*splits, tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = tokenizers.decoders.ByteLevel()
    for i, token in enumerate(tokens):
        if kinds[i] in (3, 4):
            added = tokenizers.AddedToken(token.decode(), special=kinds[i] == 3, normalized=False)
            (made.add_special_tokens if kinds[i] == 3 else made.add_tokens)([added])
            assert made.token_to_id(token.decode()) == i
    end = tokens[data["eos_id"]].decode()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=end), data.get("model_vocab_size") or 151_936


# ------------------------------------------------------------------------------------------------------- the two engines


class VLLM:
    """vLLM's classes of backends; 2 threads fill lots of 16, as its manager does for more than 128 requests."""
    name = "vllm"

    def __init__(self, folder, size):
        from vllm.config import DeviceConfig, ModelConfig, ParallelConfig, SpeculativeConfig, VllmConfig
        from vllm.plugins import load_general_plugins
        from vllm.v1.structured_output import StructuredOutputManager
        from vllm.v1.structured_output.backend_guidance import GuidanceBackend
        from vllm.v1.structured_output.backend_types import StructuredOutputOptions
        from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

        load_general_plugins()
        from tooldecode.vllm import ToolDecodeBackend

        model = ModelConfig(model=folder, tokenizer=folder, dtype="float32")
        drafts = SpeculativeConfig(method="ngram", num_speculative_tokens=4, prompt_lookup_max=3, target_model_config=model,
                                   target_parallel_config=ParallelConfig())
        # Preparation of masks in another thread would count as processor time of what is measured.
        config = VllmConfig(model_config=model, device_config=DeviceConfig(device="cpu"), speculative_config=drafts,
                            additional_config={OURS: {"prepare": False}})
        tokenizer = StructuredOutputManager(config).tokenizer
        made = {OURS: ToolDecodeBackend, "xgrammar": XgrammarBackend, "llguidance": GuidanceBackend}
        self.backends = {name: make(config, tokenizer=tokenizer, vocab_size=size) for name, make in made.items()}
        # A request's end tokens, as vLLM gives them: the model's configuration may have more than the tokenizer.
        ends = model.try_get_generation_config().get("eos_token_id") or ()
        self.ends = {tokenizer.eos_token_id, *([ends] if isinstance(ends, int) else ends)}
        self.kind = StructuredOutputOptions.JSON
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def compile(self, name, schema):
        return self.backends[name].compile_grammar(self.kind, schema, stop_token_ids=self.ends)

    def masks(self, name, rows):
        return self.backends[name].allocate_token_bitmask(rows)

    def fresh(self, name, schema):
        return self.compile(name, schema)

    @staticmethod
    def again(grammar):
        grammar.reset()
        return grammar

    @staticmethod
    def _fill(grammars, bitmask, first):
        for i, grammar in enumerate(grammars, first):
            grammar.fill_bitmask(bitmask, i)

    def fill(self, name, grammars, bitmask, threads):
        if threads == 1 or len(grammars) == 1:
            return self._fill(grammars, bitmask, 0)
        for job in [self.pool.submit(self._fill, grammars[i : i + 16], bitmask, i) for i in range(0, len(grammars), 16)]:
            job.result()

    @staticmethod
    def accept(grammar, token):
        return grammar.accept_tokens("r", [token])

    @staticmethod
    def draft(grammar, tokens):
        return grammar.validate_tokens(tokens)


class SGLang:
    """SGLang's classes of backends, with its batched fill if a backend has one."""
    name = "sglang"

    def __init__(self, folder, size):
        import transformers
        from llguidance import LLExecutor
        from sglang.srt.constrained import llguidance_backend
        from sglang.srt.constrained.base_grammar_backend import GrammarRow
        from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
        from tooldecode._engine import vocabulary_of
        from tooldecode.sglang import ToolDecodeBackend

        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        end = tokenizer.eos_token_id
        vocabulary = vocabulary_of(tokenizer, size, [end])
        self.backends = {OURS: ToolDecodeBackend(vocabulary), "xgrammar": XGrammarGrammarBackend(tokenizer, size, [end]),
                         "llguidance": llguidance_backend.GuidanceBackend(tokenizer, n_vocab=size, eos_token_ids=[end])}
        self.row, self.size, self.cache = GrammarRow, size, {}
        self.own_pool = self.backends[OURS].pool
        self.executors = {threads: LLExecutor(num_threads=threads) for threads in THREADS}
        self.guidance = llguidance_backend

    def compile(self, name, schema):
        self.backends[OURS].pool = None  # which would prepare masks
        grammar = self.backends[name].dispatch_json(schema)
        if hasattr(grammar, "error_message"):
            raise ValueError(grammar.error_message)
        return grammar

    def masks(self, name, rows):
        return self.cache.setdefault(name, self.compile(name, '{"type": "null"}')).allocate_vocab_mask(self.size, rows, "cpu")

    def fresh(self, name, schema):
        known = self.cache.setdefault((name, schema), None) or self.compile(name, schema)
        self.cache[name, schema] = known
        return known.copy()

    @staticmethod
    def again(grammar):
        return grammar.copy()

    def fill(self, name, grammars, bitmask, threads):
        self.backends[OURS].pool = self.own_pool if threads > 1 else None
        self.guidance._get_or_init_mask_executor = lambda: self.executors[threads]
        grammars[0].fill_vocab_mask_batched([self.row(i, grammar) for i, grammar in enumerate(grammars)], bitmask)

    @staticmethod
    def accept(grammar, token):
        grammar.accept_token(token)
        return True

    @staticmethod
    def draft(grammar, tokens):  # as its walk of draft trees does
        for token in tokens:
            grammar.accept_token(token)
        grammar.rollback(len(tokens))
        return tokens


# --------------------------------------------------------------------------------------------------------- measurements


def timed(function, *arguments, clock=time.process_time_ns):
    """Microseconds of processor time, which other work on the machine affects little."""
    begin = clock()
    result = function(*arguments)
    return max(0, clock() - begin - EMPTY.get(clock, 0)) / 1e3, result


EMPTY = {}
EMPTY.update({clock: statistics.median(timed(lambda: None, clock=clock)[0] * 1e3 for _ in range(1000))
              for clock in (time.process_time_ns, time.perf_counter_ns)})


def of(times):
    times = sorted(times)
    return {"median": round(statistics.median(times), 2), "mean": round(statistics.fmean(times), 2),
            "p99": round(times[min(len(times) - 1, len(times) * 99 // 100)], 2), "count": len(times)}


def with_ratio(cell):
    """tooldecode's time divided by the better peer's."""
    for figure in ("median", "mean"):
        cell[f"{figure}_ratio"] = round(cell[OURS][figure] / min(cell[peer][figure] for peer in PEERS), 4)
    return cell


def first_masks(engine, rows, dice):
    """Times from a schema's text to the first mask, for new schemas, and the rows that all contenders can do."""
    times, kept, refused = collections.defaultdict(list), [], collections.Counter()
    bitmasks = {name: engine.masks(name, 1) for name in (OURS, *PEERS)}
    for row in rows:
        schema, took = json.dumps(row["schema"]), {}
        for name in dice.sample((OURS, *PEERS), 3):
            def make():
                grammar = engine.compile(name, schema)
                engine.fill(name, [grammar], bitmasks[name], 1)
            try:
                took[name], _ = timed(make)
            except Exception:
                refused[name] += 1
        if len(took) == 3:
            for name, one in took.items():
                times[name].append(one)
            kept.append((schema, row["tokens"]))
    return with_ratio({name: of(times[name]) for name in (OURS, *PEERS)}) | {"refused": dict(refused)}, kept


def agreed(engine, kept):
    """The rows whose text every contender accepts; makes no mask."""
    def accepts(name, schema, tokens):
        grammar = engine.fresh(name, schema)
        try:
            return all(engine.accept(grammar, token) for token in tokens)
        except ValueError:
            return False
    return [(schema, tokens) for schema, tokens in kept if all(accepts(name, schema, tokens) for name in (OURS, *PEERS))]


def first_visits(engine, pairs, templates):
    """Times the masks of states that no text has reached before."""
    fills = collections.defaultdict(list)
    bitmasks = {name: engine.masks(name, 1) for name in templates}
    known = set()
    for i, (schema, tokens) in enumerate(pairs):
        if schema in known:
            continue
        known.add(schema)
        grammars = {name: engine.again(mine[i]) for name, mine in templates.items()}
        for token in tokens:
            for name, grammar in grammars.items():
                engine.accept(grammar, token)
                fills[name].append(timed(engine.fill, name, [grammar], bitmasks[name], 1)[0])
    return with_ratio({name: of(fills[name]) for name in templates})


def copies(bitmask):
    """Copies the masks of a batch with one call per row, from one place per distinct mask: the floor of a fill in an
    engine that makes one call per row."""
    import numpy as np

    rows = bitmask.numpy()
    kept = {row.tobytes(): row.copy() for row in rows}
    pairs = [(target, kept[row.tobytes()]) for target, row in zip(np.empty_like(rows), rows)]

    def copy():
        for target, source in pairs:
            np.copyto(target, source)
    copy()
    return timed(copy)[0]


def batches(engine, own, templates, threads, steps, dice):
    """Times the masks of a batch along texts; a request that has ended starts again."""
    size = len(own)
    bitmasks = {name: engine.masks(name, size) for name in templates}
    grammars = {name: [engine.again(grammar) for grammar in mine[:size]] for name, mine in templates.items()}
    at = [dice.randrange(len(tokens)) for _, tokens in own]
    for name, mine in grammars.items():
        for grammar, start, (_, tokens) in zip(mine, at, own):
            for token in tokens[:start]:
                engine.accept(grammar, token)
    fills, accepts, drafts = (collections.defaultdict(list) for _ in range(3))
    floors = []
    for _ in range(steps):
        for name in dice.sample((OURS, *PEERS), 3):
            took, _ = timed(engine.fill, name, grammars[name], bitmasks[name], threads,
                            clock=time.process_time_ns if threads == 1 else time.perf_counter_ns)
            fills[name].append(took / size)
            if name == OURS and threads == 1:
                floors.append(copies(bitmasks[name]) / size)

            def go(step):
                for grammar, place, (_, tokens) in zip(grammars[name], at, own):
                    step(grammar, tokens, place)
            if threads == 1:
                took, _ = timed(go, lambda grammar, tokens, place: engine.draft(grammar, tokens[place : place + 4]))
                drafts[name].append(took / size)
            took, _ = timed(go, lambda grammar, tokens, place: engine.accept(grammar, tokens[place]))
            accepts[name].append(took / size)
        for i, (_, tokens) in enumerate(own):
            at[i] += 1
            if at[i] == len(tokens):
                at[i] = 0
                for name in grammars:
                    grammars[name][i] = engine.again(templates[name][i])
    result = {"fill": with_ratio({name: of(fills[name]) for name in grammars})}
    if threads == 1:
        result["fill"]["copies"] = of(floors)
        result |= {"accept": with_ratio({name: of(accepts[name]) for name in grammars}),
                   "draft_of_4": with_ratio({name: of(drafts[name]) for name in grammars})}
    return result


def overheads(engine):
    """Times calls of tooldecode that do next to nothing, and a copy of a mask."""
    import numpy as np
    import tooldecode
    from tooldecode._engine import Answer

    vocabulary = tooldecode.Vocabulary.from_bytes([bytes([i]) for i in range(31)] + [b"<end>"], [31])
    answer = Answer(tooldecode.regex(vocabulary, "[\\x00-\\x1e]*"), vocabulary)
    wrapped = type(engine.compile(OURS, "{}"))(answer)
    import torch
    tensor = torch.zeros((1, 1), dtype=torch.int32)
    calls = {"fill": lambda: wrapped.fill_bitmask(tensor, 0), "accept": lambda: wrapped.accept_tokens("r", [1]),
             "validate_4": lambda: wrapped.validate_tokens([1, 2, 3, 4]), "is_terminated": wrapped.is_terminated}
    result = {}
    for name, call in calls.items():
        call()
        result[name] = round(min(timed(lambda: [call() for _ in range(1000)])[0] for _ in range(30)) / 1000, 3)
    words = (151_936 + 31) // 32
    source, target = np.zeros((256, words), np.int32), np.zeros((256, words), np.int32)
    result["copy_of_a_mask"] = round(min(timed(np.copyto, target, source)[0] for _ in range(200)) / 256, 3)
    return result


def imports():
    def run(code):
        return min(timed(subprocess.run, [sys.executable, "-c", code], clock=time.perf_counter_ns)[0] for _ in range(9)) / 1e3
    return round(run("import tooldecode") - run("pass"), 1)


def measure(options):
    dice = random.Random(1)
    data = pathlib.Path(options.data)
    tokenizer, size = tokenizer_of(data / "vocab/qwen2.json.gz")
    sample = {"bfcl": workloads.bfcl(data)[: options.rows], "tools_200": workloads.tools_of(200, 2)(data),
              "jsonschemabench": [row for row in workloads.jsonschemabench(data)
                                  if len(json.dumps(row["schema"])) < 4000][: options.rows]}
    for rows in sample.values():
        for row in rows:
            text = next((test["text"] for test in row["tests"] if test["valid"]), "")
            row["tokens"] = tokenizer.encode(text, add_special_tokens=False) if len(text) < 4000 else []
    sample["tools_200"] = [row | {"tokens": tokenizer.encode(test["text"], add_special_tokens=False)}
                           for row in sample["tools_200"] for test in row["tests"][:1]]
    results = {"vocabulary": size, "overhead_us": None}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        pathlib.Path(folder, "config.json").write_text(json.dumps(
            json.loads((ROOT / "examples/data/tiny/config.json").read_text()) | {"vocab_size": size}))
        logging.disable(logging.ERROR)
        for make in (VLLM, SGLang):
            engine = make(folder, size)
            for name in (OURS, *PEERS):  # every kind of value, so that no contender pays for its first schema
                engine.fill(name, [engine.compile(name, json.dumps(workloads.WARM["schema"]))], engine.masks(name, 1), 1)
            if make is VLLM:
                results["overhead_us"] = overheads(engine)
            own = results[make.name] = {}
            for workload, rows in sample.items():
                print(f"{make.name} {workload}", file=sys.stderr, flush=True)
                first, kept = first_masks(engine, rows, dice)
                own[workload] = {"first_mask": first}
                pairs = [(schema, tokens) for schema, tokens in agreed(engine, kept) if tokens]
                own[workload]["texts"] = len(pairs)
                pairs = [pairs[i % len(pairs)] for i in range(max(BATCHES))]
                templates = {name: [engine.fresh(name, schema) for schema, _ in pairs] for name in (OURS, *PEERS)}
                own[workload]["first_visits"] = {"fill": first_visits(engine, pairs, templates)}
                for count in BATCHES:
                    for threads in THREADS if count > 1 else (1,):
                        cells = batches(engine, pairs[:count], templates, threads,
                                        options.steps * (8 if count == 1 else 1), dice)
                        own[workload][f"{count} rows, {threads} threads"] = cells
                print(table({make.name: {workload: own[workload]}}), file=sys.stderr, flush=True)
    return results


def table(results):
    lines = ["| engine | workload | what, µs | tooldecode | XGrammar | llguidance | ours / better |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for engine in ("vllm", "sglang"):
        for workload, cells in results.get(engine, {}).items():
            for what, cell in cells.items():
                named = {"first mask": cell} if what == "first_mask" else {
                    f"{key.replace('_', ' ')}, {what.replace('_', ' ')}": value for key, value in cell.items()} if isinstance(cell, dict) else {}
                for name, one in named.items():
                    figures = " | ".join(f"{one[who]['median']:,.2f}" for who in (OURS, *PEERS))
                    lines.append(f"| {engine} | {workload} | {name} | {figures} | {one['median_ratio']:.3f} |")
    return "\n".join(lines)


def record(program, packages, arguments):
    """The record of how a file of results was made."""
    made_by = run_record([program, "--made-by"], packages, ["bash", "benchmarks/engines/run.sh", *arguments])
    # The wheel is measured, not the program.
    made_by["flags"] = "-O3 -DNDEBUG"
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout
    changes = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "include", "python"], check=False).returncode
    made_by["commit"] = commit.strip() + ("+changes" if changes else "")
    return made_by


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--rows", type=int, default=30, help="schemas of BFCL, and of JSONSchemaBench (30)")
    parser.add_argument("--steps", type=int, default=20, help="tokens of each batch (20)")
    parser.add_argument("--program", default=str(ROOT / "build/release/examples/tooldecode"),
                        help="tooldecode's, whose record of the machine goes into --json")
    parser.add_argument("--wheel")
    parser.add_argument("--json")
    options = parser.parse_args()
    results = measure(options)
    results["import_ms"] = imports()
    if options.wheel:
        results["wheel_bytes"] = os.path.getsize(options.wheel)
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    print(" ".join(f"{name} {version}" for name, version in versions.items()))
    print(table(results))
    print(json.dumps({key: results[key] for key in ("overhead_us", "import_ms", "wheel_bytes") if key in results}))
    if options.json:
        made_by = record(options.program, PACKAGES, sys.argv[1:])
        pathlib.Path(options.json).write_text(json.dumps({"made_by": made_by, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
