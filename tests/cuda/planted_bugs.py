#!/usr/bin/env python3
"""Plants bugs in copies of the kernels' headers, one at a time, and requires that the header's own test fails.

That the tests pass without a bug is another test's claim: `ctest -R '^cuda$'`.
  planted_bugs.py --compiler g++ --main main.o --eigen /usr/include/eigen3
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Bug(typing.NamedTuple):
    name: str
    header: str  # of include/tooldecode/cuda
    before: str  # stands there once
    after: str
    is_race: bool = False  # whose numbers are right in the emulator, which has to see what threads do with memory


BUGS = [
    # barriers and copies
    Bug("no barrier before a fold's result is read", "block",
        "storage.result = folded;\n    __syncthreads();\n", "storage.result = folded;\n"),
    Bug("no barrier before lists are merged", "top_k",
        "      __syncthreads();\n      if (warp < half) {", "      if (warp < half) {"),
    Bug("no barrier before ranks are counted", "draft_tree",
        "if (thread == 0) memory.grown = 0;\n  __syncthreads();", "if (thread == 0) memory.grown = 0;"),
    Bug("no cluster barrier before parts are read", "softmax_cluster",
        "memory.part = all;\n  }\n  cluster_barrier();\n", "memory.part = all;\n  }\n  __syncthreads();\n"),
    Bug("a block that ends while others read its part", "softmax_cluster",
        "  cluster_wait();  // no", "  // no"),
    Bug("no cluster barrier before parts are read", "aligned_softmax",
        "  cluster_barrier();\n  if (warp_index() == 0) {\n    RowPart all;",
        "  __syncthreads();\n  if (warp_index() == 0) {\n    RowPart all;"),
    Bug("no barrier before a row's sum is read", "aligned_softmax",
        "memory.row = all;\n  }\n  __syncthreads();\n", "memory.row = all;\n  }\n"),
    Bug("a block that ends while others read its part", "aligned_softmax",
        "  cluster_wait();  // no", "  // no"),
    Bug("no cluster barrier before histograms are added", "threshold_search",
        "    cluster_barrier();\n    const std::uint64_t added", "    __syncthreads();\n    const std::uint64_t added"),
    Bug("no cluster barrier before shares are compared", "threshold_search",
        "memory_.weight = here;\n    }\n    cluster_barrier();", "memory_.weight = here;\n    }\n    __syncthreads();"),
    Bug("a block that ends while others read its choice", "cut_rows",
        "    cluster_arrive();\n  }\n  search.finish();", "    return;\n  }\n  search.finish();"),
    Bug("a copy that nobody waits for", "head_products", "        wait_for_copies<0>();\n", ""),
    Bug("one buffer read and written", "draft_tree",
        "const std::int64_t to     = sequences - from;", "const std::int64_t to     = from;"),
    Bug("a tile multiplied before it has come", "tree_attention", "wait_for_copies<1>();", "wait_for_copies<2>();"),
    Bug("a tile multiplied before it has come", "warpgroup_attention",
        "memory.arrived[stage_after.index].wait(stage_after.parity);", ""),
    Bug("a stage filled while it is multiplied", "warpgroup_attention",
        "memory.is_free[stage.index].wait(stage.parity ^ 1);", ""),
    Bug("a tree that begins one slot late", "attention_block",
        "const int before = length - first;", "const int before = length + 1 - first;"),
    Bug("slots past the tree that are seen", "attention_block",
        "seen &= (std::uint64_t{1} << task.trees.slots) - 1;", "seen += 0;"),
    Bug("slots read though no node sees them", "attention_block",
        "is_seen = (seen >> at % 32 & 1) != 0;", "is_seen = true;"),
    Bug("weights of sums that have not been rescaled", "warpgroup_attention", "    state.rescale(growth);\n", ""),
    Bug("packs in registers left out", "softmax_cluster",
        "from.template for_each_of_few<is_plain>(others, kept_end, end, add);", ""),
    Bug("packs in registers left out", "aligned_softmax",
        "for_each_pack_of_few(others, kept_end, end, add);\n    });", "begin_of(0, 1);\n    });"),
    Bug("numbers above the limit as they are", "aligned_softmax",
        "  if (row.top > logit_limit) return StoredNumbers::greatest_only;\n", ""),
    Bug("sums that have not been rescaled", "aligned_softmax",
        "      sum_ *= static_cast<double>(fast_exp2((top_ - greatest) * scale_));\n", ""),
    # lanes and masks
    Bug("a mask's bits over the wrong numbers", "aligned_softmax",
        "keep<0xBBAA>(words.at[3], second);", "keep<0x9988>(words.at[3], second);"),
    Bug("half of a warp left out of a fold", "warp", "int bit = warp_size / 2;", "int bit = warp_size / 4;"),
    Bug("a lane outside its mask", "tree_verifier",
        "correct |= std::uint64_t{__ballot_sync(whole_warp,", "correct |= std::uint64_t{__ballot_sync(0x0000FFFFU,"),
    Bug("a mask off by one", "draft_tree", "((1U << slot % 32) - 1));", "((2U << slot % 32) - 1));"),
    Bug("a mask shifted by half a word", "logits_rows", ">> first % 32;", ">> first % 16;"),
    Bug("a row's last mask bits not cut off", "logits_rows",
        "(1U << (left < pack ? left : pack)) - 1;", "(1U << pack) - 1;"),
    Bug("one ancestor instead of all", "tree_verifier",
        "(correct & ancestors[half]) == ancestors[half]", "(correct & ancestors[half]) != 0"),
    Bug("a narrow mask answered with ranked rows only", "allowed_rows",
        "count < rows.rows ? 1 : 0;", "0;"),
    Bug("a wide mask answered with rows that are not ranked", "allowed_rows",
        "if (to.is_narrow[state] == 0) word &= ranked;", ""),
    Bug("the use of a copy's row by one state only", "allowed_rows",
        "        either |= word[static_cast<std::int64_t>(at) * masks.stride];",
        "        either = word[static_cast<std::int64_t>(at) * masks.stride];"),
    Bug("a row read in place of one that is used", "head_rows",
        "return (used >> i & 1U) != 0 ? i", "return (used >> i & 2U) != 0 ? i"),
    Bug("a mask's bits past the vocabulary", "allowed_rows",
        "return left < 32 ? bits & ((1U << left) - 1) : bits;", "return bits;"),
    Bug("rows multiplied past the list's count", "head_rows",
        "return rows.count == nullptr ? rows.rows : __ldcg(rows.count);", "return rows.rows;"),
    Bug("+infinity in a log-sum-exp", "top_k", "    x = fminf(x, FLT_MAX);\n", ""),
    # ties, splits and counters
    Bug("wide blocks where a wave has empty places", "aligned_softmax", ">= 7 * places", ">= 6 * places"),
    Bug("packs that are not kept and not read again", "threshold_search",
        "    if (kept_end_ == end_) return;\n    row_.for_each_pack_of(kept_end_, end_, [&](const auto& tokens)",
        "    return;\n    row_.for_each_pack_of(kept_end_, end_, [&](const auto& tokens)"),
    Bug("a histogram without the last block's", "search_histogram", "if (i >= blocks) break;", "if (i >= blocks - 1) break;"),
    Bug("a draw from one block's part", "cut_rows",
        "load_from_block(&memory.part, lane_index())", "memory.part"),
    Bug("the last token of a cut left out", "threshold_search", "id <= last_id_", "id < last_id_"),
    Bug("a better choice that loses", "token_choice", "a.score < b.score ? b : a", "a.score < b.score ? a : b"),
    Bug("the order of ties", "token_choice",
        "return b.token < a.token ? b : a;", "return a.token < b.token ? b : a;"),
    Bug("a split that is not merged", "masked_softmax",
        "last = first + parts.splits;\n  Choice best", "last = first + parts.splits - 1;\n  Choice best"),
    Bug("a part merged that nobody wrote", "masked_softmax",
        "last = first + parts.splits;\n  Choice best", "last = first + parts.splits + 1;\n  Choice best"),
    Bug("a workspace that is too small for fewer rows", "masked_softmax", "filling > few ? filling : few", "few"),
    Bug("the first split left out", "attention_merge",
        "for (int first = part;", "for (int first = part == 0 ? merge_at_once : part;"),
    Bug("NaN from a part with nothing in it", "softmax_cluster", 
        "top == best ? sum : sum * static_cast<double>(expf(top - best))", "sum * static_cast<double>(expf(top - best))"),
    Bug("a list merged in its own order", "top_k", "warp_size - 1 - lane", "lane"),
    Bug("accepted keys moved onto the root's", "compact_cache",
        "*pack_of(first + 1 + begin + i) = packs_read[i];", "*pack_of(first + begin + i) = packs_read[i];"),
    # rounds and what they are made of
    Bug("vectors multiplied before they are there", "few_products",
        "input.fill(x, rows, memory.fold);\n  __syncthreads();", "input.fill(x, rows, memory.fold);"),
    Bug("a pair multiplied by the weights of the one before", "few_products", "load(pair + step, 0);", "load(pair, 0);"),
    Bug("a node verified without a mask", "state_table", "if (state < 0) tree.tokens[at] = cut_token;", ""),
    Bug("the noise of the position before", "speculation_round", ".shift = 1}", ".shift = 0}"),
    Bug("a tree of a sequence that is not there", "draft_tree", "is_there     = roots[sequence] >= 0;", "is_there     = true;"),
    Bug("a shared page that is written", "page_pool", "index_.use_count() == 1", "index_.use_count() >= 1"),
    # what the driver is told and asked
    Bug("each launch sets the shared memory to its own", "device",
        """  if (static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes) >= bytes) return;
  const std::size_t maximum = device_traits().shared_bytes - attributes.sharedSizeBytes;
""", "  const std::size_t maximum = bytes;\n"),
    Bug("clusters where the device has them, not the code", "softmax_cluster",
        "code_capability(softmax_cluster_kernel<T, is_log, false>) < 90", "device_traits().compute_capability < 90"),
    Bug("clusters where a process has no place for one", "masked_softmax",
        "can_run_softmax_cluster<T, is_log>(plan)", "plan.blocks > 0"),
    Bug("tensor cores where the device has them, not the code", "head_products",
        "head_policy(capability)", "head_policy(device.compute_capability)"),
    # what engines in other languages call
    Bug("neighbours with another seed drawn alike", "c_interface", "seed == other.seed && ", ""),
    Bug("the positions of the first rows", "c_interface", "nullptr : positions + run.first", "nullptr : positions"),
    Bug("the masks of the first rows", "c_interface", "rows.mask += run.first * all.mask_stride;", "rows.mask += 0;"),
    Bug("a plan of another device", "c_interface", "current_device() != attention->device", "attention->device < 0"),
    # races that no schedule shows
    Bug("a shuffle instead of a barrier of the warp", "masked_softmax",
        "  if (lane_index() == 0) tokens[row] = best.token;\n",
        """  if (lane_index() == 0) parts.counts[first] = best.token;
  static_cast<void>(__shfl_sync(whole_warp, 0, 0));
  if (lane_index() == 1) tokens[row] = parts.counts[first];
""", True),
    Bug("sums read while the next are written", "head_products",
        "    __syncthreads();  // the sums of the last tile have been read\n", "", True),
    Bug("a tile overwritten while it is multiplied", "tree_attention",
        """    __syncthreads();  // the tile has arrived, and no warp reads the previous one
    start_tile(tile + stages - 1, upcoming);
""", """    start_tile(tile + stages - 1, upcoming);
    __syncthreads();
""", True),
]


def build(options, folder, bug):
    # In the folder and by relative paths: whose name is new each time, and a cache of objects need not see it.
    launcher = [options.launcher] if options.launcher else []
    objects = ["test.o", os.path.abspath(options.main)]
    if bug.is_race:
        objects.append("races.o")
        subprocess.run([*launcher, options.compiler, "-std=c++20", "-O2", f"-I{ROOT}/tests", "-c",
                        f"{ROOT}/tests/support/simt/races.cpp", "-o", objects[-1]], check=True, cwd=folder)
    command = [*launcher, options.compiler, "-x", "c++", "-std=c++20", "-O1", "-w", "-fno-strict-aliasing",
               *(["-fsanitize=thread"] if bug.is_race else []), "-Iinclude", f"-I{ROOT}/tests/support/simt", f"-I{ROOT}/include", f"-I{ROOT}/tests",
               "-isystem", options.eigen, "-c", f"{ROOT}/tests/cuda/{bug.header}.cu", "-o", objects[0]]
    subprocess.run(command, check=True, cwd=folder)
    subprocess.run([options.compiler, *objects, "-o", "test"], check=True, cwd=folder)
    return folder / "test"


def run(program):
    """Nothing where all is well, else what was seen first."""
    try:
        done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.splitlines()]
    rules = [i for i, line in enumerate(lines) if re.fullmatch("-{20,}", line)]
    case = lines[rules[0] + 1] if rules else f"exit status {done.returncode}"
    return f'"{case}"'


def judge(options, bug):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = (ROOT / f"include/tooldecode/cuda/{bug.header}.cuh").read_text()
        if text.count(bug.before) != 1:
            return False, f"'{bug.before.strip()}' stands {text.count(bug.before)} times in {bug.header}.cuh"
        header = folder / f"include/tooldecode/cuda/{bug.header}.cuh"
        header.parent.mkdir(parents=True)
        header.write_text(text.replace(bug.before, bug.after))
        seen = run(build(options, folder, bug))
        return seen is not None, f"caught: {seen}" if seen else "NOT caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--launcher", default="", help="the program that calls the compiler, such as ccache")
    parser.add_argument("--main", required=True, help="object file of tests/support/main.cpp")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="folder of Eigen's headers")
    parser.add_argument("--only", default="", help="bugs whose name or header contains this")
    options = parser.parse_args()

    bugs = [bug for bug in BUGS if options.only in bug.name or options.only in bug.header]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for bug, (held, what) in zip(bugs, pool.map(lambda bug: judge(options, bug), bugs)):
            failed += not held
            print(f"{bug.header:16} {bug.name:44} {what}", flush=True)
    print(f"{len(bugs)} planted bugs, {'all caught' if failed == 0 else f'{failed} FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
