"""SGLang's whole scheduler, unchanged, under random schedules on a CPU; a model that is a function of its KV cache.

Requests of every kind come, several for one prompt, are aborted, and are retracted where the cache is too small, while others
run: with drafts and without, with reasoning, with overlap scheduling and without. Every answer is the one that the model
gives alone under its masks, which conforms; every cut answer is a beginning of it; no request is lost; nothing of the cache
stays in use. TOOLDECODE_SCHEDULES says how many schedules run (40). `sglang_bed` says what is replaced.
"""
import os

import pytest

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
