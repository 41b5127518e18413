#!/usr/bin/env python3
"""Runs what nvcc makes of the kernels, as PTX for compute capability 9.0a, on the CPU, and compares with float64.

The interpreter is judged as well: each wrong edit of the PTX must be found.
  referee.py [--nvcc PATH] [--only TEXT]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing

try:
    import numpy  # noqa: F401
except ModuleNotFoundError:
    print("SKIPPED: ptx/referee.py needs NumPy")
    sys.exit(77)

import cases
from interpreter import Program, Schedule
from memory import Fault

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
# Each order, and each time at which copies land.
SCHEDULES = [Schedule(is_reversed, copies_at_once) for copies_at_once in (False, True) for is_reversed in (False, True)]


class Plant(typing.NamedTuple):
    what: str
    source: str
    case: str  # the first whose description has this
    kernel: str  # what its name has; the edit is in its text
    before: str  # regular expression; every match is replaced
    after: str
    found: str  # what the message must match
    alone: int = 0  # instead, each of so many first matches is replaced alone, and must be found


PLANTS = [
    Plant("two words of a left factor swapped", "head", "all columns", "multiply_tiles",
          r"(mma\.sync\S+ \{[^}]*\}, \{%r\d+),(%r\d+),(%r\d+)", r"\1,\3,\2", r"^logits\["),
    Plant("an input read 4 bytes late", "head", "all columns", "multiply_tiles",
          r"(cp\.async\.cg\.shared\.global \[%r\d+\], \[%rd\d+)\]", r"\1+4]",
          r"cp\.async.* thread \d+: reads 16 bytes of global memory at 0x7\w+, byte 4 of hidden, .*multiple of 16"),
    Plant("a sum stored 4 bytes late", "head", "all columns", "multiply_tiles",
          r"(st\.global\.[fu]32\s+\[%rd\d+)\]", r"\1+4]", r"^logits\[|writes 4 bytes .* outside every allocation"),
    Plant("a barrier that is missing", "head", "all columns", "multiply_tiles", r"bar\.sync\s+0;", "",
          r"^logits\[", alone=3),
    Plant("a barrier of a cluster's block that is missing", "softmax", "by a cluster, with", "softmax_cluster_kernelIf",
          r"bar\.sync\s+0;", "", r"^kept|^out\[", alone=2),
    Plant("mbarriers that are used before they begin", "attention", "by warpgroups, three", "by_warpgroupsI13",
          r"bar\.sync\s+0;", "", r"no mbarrier has begun", alone=1),
    Plant("an arrival before the copies", "attention", "more tiles than stages", "by_warpgroupsI13",
          r"cp\.async\.mbarrier\.arrive\.noinc\.shared\.b64 (\[%r\d+\])", r"mbarrier.arrive.shared.b64 state, \1",
          r"^out\["),
    Plant("a stage that one warp frees for all", "attention", "more tiles than stages", "by_warpgroupsI13",
          r"(mov\.u32\s+%r\d+), 8;(?=\s*// begin inline asm\s*mbarrier\.init)", r"\1, 1;",
          r"^out\[|wait for each other"),
    Plant("a copy into a stage that is read", "attention", "by warps, two", "attend_treeI6",
          r"(?s)bar\.sync\s+0;(.*?cp\.async\.commit_group;)", r"\1 bar.sync 0;", r"^out\["),
    Plant("copies that nothing waits for", "head", "all columns", "multiply_tiles", r"cp\.async\.wait_group 0;", "",
          r"^logits\["),
    Plant("a bound of fewer threads", "head", "CUDA cores", "multiply_rows", r"\.maxntid 512", ".maxntid 256",
          r"512 threads, its bound is 256"),
    Plant("a peer's part read from the own block", "softmax", "by a cluster, with", "softmax_cluster_kernelIf",
          r"mapa\.shared::cluster\.u32 (%r\d+), (%r\d+), %r\d+;", r"mov.u32 \1, \2;", r"^kept|^out\["),
    Plant("a peer's histogram read from the own block", "softmax", "cut by a cluster", "cut_rows_kernelIf",
          r"mapa\.shared::cluster\.u32 (%r\d+), (%r\d+), %r\d+;", r"mov.u32 \1, \2;", r"^draws|outside every allocation"),
    Plant("a cluster that does not wait", "softmax", "by a cluster, with", "softmax_cluster_kernelIf",
          r"barrier\.cluster\.(?:arrive\.release|wait\.acquire);", "", r"^kept|^out\[|has ended"),
    Plant("a write past a row", "softmax", "one block", "softmax_cluster_kernelIf",
          r"(st\.global\.cs\.f32\s+\[%rd\d+)\]", r"\1+4]", r"^out\[|outside every allocation"),
    Plant("another factor of Philox", "softmax", "draws of F32", "find_tokens",
          r"(?:\b3528531795|-766435501)\b", "3528531797", r"^draws"),
    Plant("values that are not transposed", "attention", "by warps, two", "attend_treeI6", r"x4\.trans\.", "x4.",
          r"^out\["),
    Plant("sums read before their product has ended", "attention", "by warpgroups, pages", "by_warpgroups",
          r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 1;", r"^out\[|in flight"),
    Plant("a factor that is read as the other", "attention", "by warpgroups, three", "by_warpgroups",
          r"(wgmma\.mma_async.*), 1;", r"\1, 0;", r"^out\["),
    Plant("tiles with another distance of 64 columns", "attention", "heads of 128", "by_warpgroupsI6__halfLi128",
          r"\b33554432\b", "16777216", r"^out\["),
    Plant("rows listed at another place", "head", "rows that masks leave", "list_allowed", r"popc\.b32", "clz.b32",
          r"listed|outside every allocation"),
    Plant("an instruction that it does not know", "attention", "by warps, two", "attend_treeI6",
          r"ex2\.approx\.ftz", "tanh.approx", r"Unsupported: .*line \d+: tanh\.approx"),
]


def edits(text, plant):
    """Texts with an edit in one kernel."""
    start = next(m.start() for m in re.finditer(r"\.visible \.entry (\w+)", text) if plant.kernel in m[1])
    end = text.find(".visible .entry", start + 1)
    kernel = text[start:end if end > 0 else len(text)]
    matches = list(re.finditer(plant.before, kernel))
    if len(matches) < max(plant.alone, 1):
        raise LookupError(f"{plant.what}: {len(matches)} matches of {plant.before}")
    if plant.alone == 0:
        return [text.replace(kernel, re.sub(plant.before, plant.after, kernel))]
    return [text.replace(kernel, kernel[:m.start()] + m.expand(plant.after) + kernel[m.end():])
            for m in matches[:plant.alone]]


def run_case(case, program):
    """What is wrong under the first schedule where something is, or None."""
    for schedule in SCHEDULES:
        try:
            wrong = case(program, schedule)
        except Fault as fault:
            wrong = str(fault)
        except Exception as error:  # what a planted edit makes of the interpreter is a finding too
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            return wrong
    return None


def find_nvcc():
    return shutil.which("nvcc") or next((p for p in ["/usr/local/cuda/bin/nvcc"] if pathlib.Path(p).exists()), None)


def compile_sources(nvcc, names):
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            to = pathlib.Path(folder) / f"{name}.ptx"
            subprocess.run([nvcc, "-std=c++20", "-arch=sm_90a", "-ptx", f"-I{ROOT / 'include'}",
                            FOLDER / f"{name}.cu", "-o", to], check=True)
            texts[name] = to.read_text()
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", default=find_nvcc())
    parser.add_argument("--only", default="", help="a part of the description of a case or an edit")
    options = parser.parse_args()
    if not options.nvcc:
        print("SKIPPED: ptx/referee.py needs nvcc")
        return 77
    chosen = [c for c in cases.CASES if options.only in c[1]]
    plants = [p for p in PLANTS if options.only in p.what]
    started = time.monotonic()
    texts = compile_sources(options.nvcc, sorted({c[0] for c in chosen} | {p.source for p in plants}))
    programs = {name: Program(text) for name, text in texts.items()}
    failed = 0
    for source, what, case in chosen:
        wrong = run_case(case, programs[source])
        failed += wrong is not None
        print(f"{'ok' if wrong is None else 'FAILED'}: {what}" + (f": {wrong} (seed {cases.SEED})" if wrong else ""))
    for plant in plants:
        case = next(c for source, what, c in cases.CASES if source == plant.source and plant.case in what)
        messages = [run_case(case, Program(text)) for text in edits(texts[plant.source], plant)]
        missed = [m or "not found" for m in messages if re.search(plant.found, m or "") is None]
        failed += len(missed) > 0
        print(f"FAILED: {plant.what}: {' | '.join(missed)}" if missed else f"found: {plant.what}")
    print(f"{len(chosen)} cases and {len(plants)} edits, {failed} failed, {time.monotonic() - started:.0f} s")
    return 1 if failed or not chosen + plants else 0


if __name__ == "__main__":
    sys.exit(main())
