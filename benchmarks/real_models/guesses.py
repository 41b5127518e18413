"""How often a smaller model's guesses contain the call of a larger model of its family: the paper's alpha and lambda.

    LLAMA_CPP_LIB_PATH=FOLDER python3 benchmarks/real_models/guesses.py --model FILE.gguf --speculator FILE.gguf
                                                                        --shared DATA [--json OUT]

Needs llama-cpp-python and tooldecode. The tasks are rows of BFCL that are answered by one call. The model writes a
sentence and then its call, greedily; the speculator writes nine calls at once, at temperature 0.7, and one greedily. All
calls are constrained. A guess hits if it has the same key as the model's call (`call_key`).

alpha(n) is the share of tasks in which at least one of n guesses hits: the mean over all subsets of n of the nine. The
formula 1 - (1 - alpha)^n takes hits as independent of the task. The intervals are a bootstrap over tasks, for these nine guesses. No time
is measured and no tool runs.
"""
import argparse
import json
import math
import pathlib
import random
import sys

import llama_cpp
import numpy as np
import tooldecode
from tooldecode import _core, apply_mask
from tooldecode.llama_cpp import BatchedLlama, generate_with_tools, prompt_tokens, read_answer, vocabulary_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_record  # noqa: E402

FILES = ("simple_python", "multiple", "live_simple")
GUESSES = 9
COUNTS = (1, 3, 5, 7, 9)
TEMPERATURE = 0.7
FORMAT = "auto:qwen"
MAX_TOKENS = 192
MAX_SENTENCE = 48
REASON = "First write one sentence about what the user needs. Then call the function that gives it."
SAMPLES, SEED = 10_000, 1


def read(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_tasks(folder: pathlib.Path, each: int) -> list[dict]:
    """The first tasks of each file that fit the context."""
    tasks = []
    for name in FILES:
        some = [row for row in read(folder / f"{name}.jsonl")
                if len(row["answers"]) == 1 and len(json.dumps(row["functions"])) < 6000]
        tasks += some[:each]
    return tasks


def tools_of(task: dict) -> list[dict]:
    return [{"type": "function", "function": {part: one[part] for part in ("name", "description", "parameters")}}
            for one in task["functions"]]


def sentence(llama: llama_cpp.Llama, prompt: list[int]) -> list[int]:
    """What the model writes first, up to the end of a line or of the answer."""
    tokens: list[int] = []
    for token in llama.generate(prompt, temp=0.0, repeat_penalty=1.0):
        if llama_cpp.llama_vocab_is_eog(llama._model.vocab, token) or b"\n" in llama.detokenize([token]):
            break
        tokens.append(token)
        if len(tokens) == MAX_SENTENCE:
            break
    return tokens + llama.tokenize(b"\n", add_bos=False)


def key_of(call: tooldecode.ToolCall, functions: list[dict]) -> str:
    schema = next(one["parameters"] for one in functions if one["name"] == call.name)
    return _core.call_key(call.name, call.arguments, schema)


def sample(batch: BatchedLlama, prompt: list[int], fsm: tooldecode.ToolCallFSM, generator: np.random.Generator,
           ends: set[int]) -> list[tooldecode.ToolCall | None]:
    """The calls of GUESSES answers that share a prompt and are sampled in one batch; None for an answer without a call."""
    first = batch.make_cache()
    scores = batch.forward([first], [prompt])
    caches = [first, *(batch.fork(first) for _ in range(GUESSES - 1))]
    logits = np.repeat(scores, GUESSES, axis=0)
    states = [fsm.initial() for _ in caches]
    written: list[list[int]] = [[] for _ in caches]
    open_rows = list(range(GUESSES))
    mask = np.zeros(fsm.mask_words, np.int32)
    for _ in range(MAX_TOKENS):
        going = []
        for at, row in enumerate(open_rows):
            fsm.fill_mask(states[row], mask)
            masked = logits[at]
            apply_mask(masked, mask)
            weights = np.exp((masked - masked.max()) / TEMPERATURE, dtype=np.float64)
            token = int(generator.choice(len(weights), p=weights / weights.sum()))
            written[row].append(token)
            states[row] = fsm.advance(states[row], token)
            if not fsm.is_finished(states[row]) and token not in ends:
                going.append(row)
        if not going:
            break
        open_rows = going
        logits = batch.forward([caches[row] for row in going], [[written[row][-1]] for row in going])
    answers = [read_answer(fsm, tokens) for tokens in written]
    return [answer.calls[0] if answer.calls else None for answer in answers]


def at_least_one(hits: int, drawn: int) -> float:
    """The probability that `drawn` of the GUESSES contain one of `hits`."""
    return 1 - math.comb(GUESSES - hits, drawn) / math.comb(GUESSES, drawn)


def summary(rows: list[dict], drawn: int) -> dict:
    called = [row for row in rows if row["key"] is not None]
    hits = [sum(key == row["key"] for key in row["guesses"]) for row in called]
    random_source = random.Random(SEED)

    def alphas(some: list[int]) -> tuple[float, float]:
        alpha = sum(some) / (GUESSES * len(some))
        return sum(at_least_one(count, drawn) for count in some) / len(some), 1 - (1 - alpha) ** drawn

    measured, formula = alphas(hits)
    resampled = [alphas(random_source.choices(hits, k=len(hits))) for _ in range(SAMPLES)]
    shares = sorted(one for one, _ in resampled)
    gaps = sorted(one - other for one, other in resampled)
    edges = (int(0.025 * SAMPLES), int(0.975 * SAMPLES) - 1)
    distinct = wrong = 0.0
    for row in called:
        for key in {key for key in row["guesses"] if key is not None}:
            share = at_least_one(row["guesses"].count(key), drawn)
            distinct += share
            wrong += share * (key != row["key"])
    return {"alpha": measured, "ci95": [shares[edge] for edge in edges], "formula": formula,
            "gap_ci95": [gaps[edge] for edge in edges], "tools_run": distinct / len(called), "wasted": wrong / len(called)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True, help="a GGUF file of an instructed model, whose calls count")
    parser.add_argument("--speculator", required=True, help="a GGUF file of the model that guesses")
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="directory with bfcl")
    parser.add_argument("--program", default="build/release/examples/tooldecode", help="writes the record of the run")
    parser.add_argument("--json", type=pathlib.Path, help="results")
    parser.add_argument("--answers", type=pathlib.Path, help="keys of calls as JSONL; continues where this ends")
    parser.add_argument("--each", type=int, default=34, help="tasks of each of BFCL's files")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    tasks = read_tasks(options.shared / "bfcl", options.each)
    rows: dict[str, dict] = {}
    if options.answers and options.answers.exists():
        for line in read(options.answers):
            rows.setdefault(line["id"], {}).update(line)

    def keep(row: dict) -> None:
        rows.setdefault(row["id"], {}).update(row)
        if options.answers:
            with options.answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def load(path: str) -> llama_cpp.Llama:
        return llama_cpp.Llama(path, n_ctx=4096, n_threads=options.threads, n_threads_batch=options.threads, verbose=False)

    llama = load(options.model)
    for task in tasks:
        if "key" in rows.get(task["id"], {}):
            continue
        tools = tools_of(task)
        prompt = prompt_tokens(llama, [{"role": "system", "content": REASON}, *task["question"]], tools)
        prompt += sentence(llama, prompt)
        answer = generate_with_tools(llama, prompt, tools, FORMAT, choice="required", max_tokens=MAX_TOKENS, temp=0.0,
                                     repeat_penalty=1.0, constraint_options={"parallel": False})
        keep({"id": task["id"], "key": key_of(answer.calls[0], task["functions"]) if answer.calls else None})
    del llama

    llama = load(options.speculator)
    ends = {token for token in (llama.token_eos(),) if token >= 0}
    batch = BatchedLlama(llama, sequences=GUESSES + 1, context_size=8192)
    for number, task in enumerate(tasks):
        if "guesses" in rows.get(task["id"], {}):
            continue
        tools = tools_of(task)
        fsm = tooldecode.tool_calls(vocabulary_of(llama), tools, FORMAT, choice="required", parallel=False)
        prompt = prompt_tokens(llama, task["question"], tools)
        calls = sample(batch, prompt, fsm, np.random.default_rng([SEED, number]), ends)
        greedy = generate_with_tools(llama, prompt, tools, FORMAT, choice="required", max_tokens=MAX_TOKENS, temp=0.0,
                                     repeat_penalty=1.0, constraint_options={"parallel": False})
        keep({"id": task["id"], "guesses": [call and key_of(call, task["functions"]) for call in calls],
              "greedy": key_of(greedy.calls[0], task["functions"]) if greedy.calls else None})

    some = [rows[task["id"]] for task in tasks]
    called = [row for row in some if row["key"] is not None]
    results = {"tasks": len(some), "called": len(called),
               "greedy": sum(row["greedy"] == row["key"] for row in called) / len(called),
               "guesses": {str(drawn): summary(some, drawn) for drawn in COUNTS}}
    print(f"{results['called']} of {results['tasks']} tasks have a call; the greedy guess hits in {results['greedy']:.3f}")
    for drawn, one in results["guesses"].items():
        print(f"{drawn} guesses: alpha {one['alpha']:.3f} ({one['ci95'][0]:.3f} to {one['ci95'][1]:.3f}), formula "
              f"{one['formula']:.3f}, tools run {one['tools_run']:.2f}, wasted {one['wasted']:.2f}")
    if options.json:
        record = run_record.run_record([options.program, "--made-by"], ["llama-cpp-python"], ["bash", "benchmarks/real_models/run.sh", "guesses"])
        options.json.write_text(json.dumps({"made_by": record, "temperature": TEMPERATURE, **results}, indent=1) + "\n",
                                encoding="utf-8")


if __name__ == "__main__":
    main()
