"""Runs a peer's engine over the rows of a workload and prints its times.

A contender is a program `CONTENDER WORKLOAD ROWS VOCABULARY FIRST [warm]` that prints one JSON object per line. The
first has the cost of an empty call of each kind, which is subtracted later, and of the vocabulary, including a
warm-up with warm.jsonl beside ROWS: {"overhead_ns": {"build", "mask", "advance", "chain"}, "vocabulary_ms"}. Then
comes one for each row of ROWS from FIRST on: {"row", "refused": why}, {"row", "unsatisfiable": why} if it says that
no text conforms, or {"row", "build_first_mask_ns", "mask_ns": [...], "advance_ns": [...], "chain_ns": [...],
"forced": {"asked", "right", "wrong"}, "accepted": [...], "memory_bytes"}.

Every row is a cold request: a new constraint on an engine that knows the vocabulary. With `warm`, and for
tools_replaced, an engine keeps what it can. A chain is the work of verifying a draft of four tokens: five masks and
the four tokens between them. `forced` counts places of the conforming texts: those where the engine has a
fast-forward token, and those where the tokenizer would write another token.
"""

import base64
import gc
import gzip
import json
import os
import pathlib
import sys
import time

import tiktoken

CHAINED = ("bfcl", "bfcl_any_order", "bfcl_default")  # workloads with chains and forced tokens


class Vocabulary:
    def __init__(self, path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            vocabulary = json.load(file)
        self.tokens = [base64.b64decode(token) for token in vocabulary["tokens_b64"]]
        self.special = [i for i, kind in enumerate(vocabulary["token_types"]) if kind != 1]
        self.end, self.size = vocabulary["eos_id"], vocabulary["model_vocab_size"]
        special = set(self.special)
        self.encoding = tiktoken.Encoding(  # a token's id is its rank in this vocabulary
            "qwen2", pat_str=vocabulary["pre_tokenizer"]["regex"][0],
            mergeable_ranks={token: i for i, token in enumerate(self.tokens) if i not in special},
            special_tokens={self.tokens[i].decode(): i for i in special})


class Refused(Exception):
    """The engine says that it cannot enforce this schema."""


def chain(mask, advance, tokens):
    """Nanoseconds of five masks and four advances."""
    start = time.perf_counter_ns()
    for token in tokens:
        mask()
        advance(token)
    mask()
    return time.perf_counter_ns() - start


def overheads(call):
    """The measured time of a call that crosses the binding and does nothing."""
    def middle(measure, count=4000):
        return sorted(measure() for _ in range(count))[count // 2]

    def one():
        start = time.perf_counter_ns()
        call()
        return time.perf_counter_ns() - start

    nothing = middle(one)
    return {"build": 2 * nothing, "mask": nothing, "advance": nothing,
            "chain": middle(lambda: chain(call, lambda _: call(), range(4)))}


def serve(make_engine):
    """Runs a peer's engine over the rows of the command line. It is made from a workload, a Vocabulary and a bool for warm.

    engine.build(schema text) returns a factory of matchers or raises Refused. A matcher has `mask()`, which fills
    engine.bits (int32 words), `advance(token)`, `forced()`, and `check()`, which raises Refused if the engine gave up.
    engine.lazy says that a matcher leaves work for the next one of the same factory.
    """
    workload, rows, first = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[4])
    vocabulary = Vocabulary(sys.argv[3])
    start = time.perf_counter()
    engine = make_engine(workload, vocabulary, "warm" in sys.argv or workload == "tools_replaced")
    measure(engine, json.loads(rows.with_name("warm.jsonl").read_text(encoding="utf-8")), chained=False)
    vocabulary_ms = 1000 * (time.perf_counter() - start)
    emit({"overhead_ns": overheads(engine.idle), "vocabulary_ms": vocabulary_ms})
    gc.disable()
    with open(rows, encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            if number >= first or row.get("untimed"):
                result = measure(engine, row, workload in CHAINED)
                emit({"row": number, **(result if not row.get("untimed") else {"untimed": True})})


def emit(value):
    print(json.dumps(value), flush=True)


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(engine, row, chained):
    schema = json.dumps(row["schema"], ensure_ascii=False)
    now = time.perf_counter_ns
    masks, advances, accepted, bits, end = [], [], [], engine.bits, engine.end
    before = resident_bytes()
    try:
        start = now()
        make = engine.build(schema)
        matcher = make()
        matcher.mask()
        first = now() - start
        matcher.check()
        for number, test in enumerate(row["tests"]):
            if number > 0:
                matcher = make()
            for place, token in enumerate([*test["tokens"], end]):
                if number > 0 or place > 0:
                    start = now()
                    matcher.mask()
                    masks.append(now() - start)
                allowed = bits[token >> 5] >> (token & 31) & 1
                if not allowed or token == end:
                    break
                start = now()
                moved = matcher.advance(token)
                advances.append(now() - start)
                if not moved:
                    allowed = False
                    break
            matcher.check()
            accepted.append(bool(allowed))
        result = {"build_first_mask_ns": first, "mask_ns": masks, "advance_ns": advances, "accepted": accepted,
                  "memory_bytes": max(0, resident_bytes() - before)}
        if chained:
            texts = [test["tokens"] for test, good in zip(row["tests"], accepted, strict=True) if good and test["valid"]]
            result["chain_ns"] = chains(engine.build(schema) if engine.lazy else make, texts)
            result["forced"] = forced(make, texts)
        return result
    except Exception as reason:  # any exception counts as a refusal
        return {"unsatisfiable" if "unsatisfiable" in str(reason).lower() else "refused": str(reason)[:300]}


def chains(make, texts):
    times = []
    for tokens in texts:
        matcher = make()
        for at in range(0, len(tokens) - 4, 5):
            times.append(chain(matcher.mask, matcher.advance, tokens[at:at + 4]))
            matcher.advance(tokens[at + 4])
    return times


def forced(make, texts):
    counts = {"asked": 0, "right": 0, "wrong": 0}
    for tokens in texts:
        matcher = make()
        for at, token in enumerate(tokens):
            matcher.mask()
            ahead = matcher.forced()
            counts["asked"] += 1
            counts["right"] += ahead[:1] == [token]
            counts["wrong"] += ahead != tokens[at:at + len(ahead)]
            matcher.advance(token)
    return counts
