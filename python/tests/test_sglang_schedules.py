"""SGLang's whole scheduler, unchanged, under random schedules on a CPU; a model that is a function of its KV cache.

Requests of every kind come, several for one prompt, are aborted, and are retracted where the cache is too small, while others
run: with drafts and without, with reasoning, with overlap scheduling and without. Every answer is the one that the model
gives alone under its masks, which conforms; every cut answer is a beginning of it; no request is lost; nothing of the cache
stays in use. TOOLDECODE_SCHEDULES says how many schedules run (40). `sglang_bed` says what is replaced.
"""
import json
import os

import pytest
from engine_scripts import FAILING, JUDGES, SCHEMA

SCHEDULES = int(os.environ.get("TOOLDECODE_SCHEDULES", "40"))


def run_schedules(folder, reasoning, overlap, drafts, count):
    """In a process of its own -> what was counted."""
    from sglang_bed import Bed

    bed = Bed(folder, reasoning, overlap, drafts, page_size=4 if reasoning else 1)
    for seed in range(count):
        try:
            bed.run(seed)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error
    return bed.counts, bed.scheduler.draft_worker.failures if drafts else 0


@pytest.mark.parametrize("drafts", [False, True], ids=["", "drafts"])
@pytest.mark.parametrize("overlap", [False, True], ids=["", "overlap"])
@pytest.mark.parametrize("reasoning", [False, True], ids=["", "reasoning"])
def test_schedules(tiny, thinking, sglang_process, drafts, overlap, reasoning):
    count = max(1, SCHEDULES // 8)
    counts, failures = sglang_process(run_schedules, thinking if reasoning else tiny, reasoning, overlap, drafts, count)
    print(dict(counts))
    assert failures == 0 and counts["stop"] > 0 and counts["length"] > 0
    assert not drafts or 0 < counts["kept"] <= counts["drafted"]
    assert SCHEDULES < 40 or counts["retracted"] > 0 and counts["abort"] > 0


def run_failing(folder, reasoning, overlap, drafts, ebnf):
    """In a process of its own: a request whose constraint fails beside others -> how they ended, and their texts."""
    import random

    from sglang_bed import Bed

    bed = Bed(folder, reasoning, overlap, drafts)
    bed.model.seed, bed.model.haste, bed.dice = 1, 0.3, random.Random(2)
    asked = {"bad": {"ebnf": ebnf}, "good": {"json_schema": json.dumps(SCHEMA)}, "free": {}}
    bed.asked, bed.texts, bed.finished, bed.waiting, bed.steps = dict(asked), {name: [] for name in asked}, {}, [], 0
    bed.aborted = set(asked)  # so that it aborts none
    coming = [bed.request(name, fields, [7, 8, 9, 10 + i], 100, False) for i, (name, fields) in enumerate(asked.items())]

    def step(local_reqs=None):
        first = [*(local_reqs or ()), *coming]
        coming.clear()
        return bed.step(first)
    bed.scheduler.request_receiver.recv_requests = step
    bed.scheduler.gracefully_exit = False
    bed.scheduler.run_event_loop()
    assert bed.scheduler.token_to_kv_pool_allocator.available_size() + bed.scheduler.tree_cache.evictable_size() \
        == bed.scheduler.max_total_num_tokens
    return bed.finished, {name: bed.tokenizer.decode(tokens, skip_special_tokens=True) for name, tokens in bed.texts.items()}


@pytest.mark.parametrize("place", FAILING)
@pytest.mark.parametrize("reasoning, overlap, drafts", [(False, False, False), (False, True, False), (False, False, True),
                                                        (False, True, True), (True, True, True)],
                         ids=["", "overlap", "drafts", "overlap drafts", "all"])
def test_request_whose_mask_passes_its_limit_is_aborted_and_others_go_on(tiny, thinking, sglang_process, reasoning, overlap,
                                                                         drafts, place):
    finished, texts = sglang_process(run_failing, thinking if reasoning else tiny, reasoning, overlap, drafts, FAILING[place])
    assert finished["bad"]["type"] == "abort" and "failed: building this takes more than" in finished["bad"]["message"]
    assert "abcdefgh".startswith(texts["bad"][:8]) and len(texts["bad"]) < 40, texts
    assert finished["good"]["type"] in ("stop", "length") and finished["free"]["type"] in ("stop", "length")
    assert finished["good"]["type"] == "length" or JUDGES["json"](texts["good"]), texts
