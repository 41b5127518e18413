"""Compares results and times with PyTorch on the same tensors.

    python3 benchmarks/cuda/peers.py LIBRARY [--json FILE]

LIBRARY is library.cu as run.sh builds it. FILE is the output of benchmark_cuda; this script adds a member
"pytorch" to it. Both sides replay CUDA graphs on one stream and take turns at buffers that together are four
times the cache; times are medians.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import sys

try:
    import torch
except ImportError:
    torch = None

VOCABULARY = 128_256
HIDDEN = 4096


class Library:
    """Calls the C functions with tensors, on the current stream."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(os.path.abspath(path))

    def bytes(self, name, *sizes):
        function = self.functions[name]
        function.restype = ctypes.c_size_t
        return function(*map(ctypes.c_int, sizes))

    def call(self, name, *arguments):
        stream = torch.cuda.current_stream().cuda_stream
        converted = [self.convert(a) for a in (*arguments, ctypes.c_void_p(stream))]
        if self.functions[name](*converted) != 0:
            raise RuntimeError(f"{name} failed")

    @staticmethod
    def convert(value):
        if isinstance(value, torch.Tensor):
            return ctypes.c_void_p(value.data_ptr())
        if value is None:
            return ctypes.c_void_p(0)
        if isinstance(value, float):
            return ctypes.c_float(value)
        if isinstance(value, int):
            return ctypes.c_int(value)
        return value


def workspace(library, name, *sizes):
    """Uninitialized memory and its size, as the functions expect them."""
    size = library.bytes(name, *sizes)
    return torch.full((max(size, 1),), 0xCC, dtype=torch.uint8, device="cuda"), ctypes.c_size_t(size)


def sets_of(bytes_of_one):
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return min(512, 4 * cache // bytes_of_one + 1)


def microseconds(call, sets):
    """The median time of call(set) over replays of a graph."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call(0)
        start.record()
        for i in range(sets):
            call(i)
        end.record()
    torch.cuda.synchronize()
    one = max(1.0, 1e3 * start.elapsed_time(end) / sets)
    calls = sets * max(1, min(1000 // sets, int(2000 / (one * sets))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for i in range(calls):
            call(i % sets)
    samples = []
    for _ in range(17):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(1e3 * start.elapsed_time(end) / calls)
    return statistics.median(samples[2:])


class Report:
    def __init__(self, path):
        self.path, self.results, self.failures = path, [], []

    def write(self):
        """Writes the member "pytorch" of the document, if there is a document."""
        if not self.path or not os.path.exists(self.path):
            return
        with open(self.path) as file:
            document = json.load(file)
        document["pytorch"] = {"version": torch.__version__, "failures": self.failures, "results": self.results}
        with open(self.path + ".new", "w") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.replace(self.path + ".new", self.path)  # so that a complete file always exists

    def attempt(self, what, measure):
        try:
            measure()
        except Exception as error:  # the other operations are still of interest
            self.failures.append(f"{what}: {error}".splitlines()[0])
            print(f"FAILED: {self.failures[-1]}", flush=True)
        self.write()

    def compare(self, operation, size, how, ours, theirs, sets):
        """theirs: {how: call}; the fastest counts."""
        mine = microseconds(ours, sets)
        times = {}
        for name, call in theirs.items():
            try:
                times[name] = microseconds(call, sets)
            except Exception as error:
                print(f"  {name}: {str(error).splitlines()[0]}")
        name = min(times, key=times.get)
        ratio = times[name] / mine
        print(f"{operation:32} {size:26} {mine:9.2f} {times[name]:9.2f} {ratio:6.2f}x  {name}", flush=True)
        self.results.append({"operation": operation, "size": size, "microseconds": round(mine, 3),
                             "pytorch_microseconds": {n: round(t, 3) for n, t in times.items()},
                             "ratio": round(ratio, 3), "comparison": how})


def require_close(got, expected, tolerance):
    error = float((got.double() - expected.double()).norm() / expected.double().norm())
    if not error <= tolerance:
        raise RuntimeError(f"relative error {error:.2e}, allowed {tolerance:.0e}")


def compare_head(library, report, rows, states):
    k = 10
    sets = sets_of(2 * rows * HIDDEN)
    weights = torch.randn(sets, rows, HIDDEN, device="cuda", dtype=torch.bfloat16) / math.sqrt(HIDDEN)
    hidden = torch.randn(states, HIDDEN, device="cuda", dtype=torch.bfloat16)
    logits = torch.full((states, rows), math.nan, device="cuda")
    tokens = torch.full((states, k), -1, device="cuda", dtype=torch.int32)
    best = torch.full((states, k), math.nan, device="cuda")
    sums = torch.full((states,), math.nan, device="cuda")
    memory, size_of_memory = workspace(library, "td_project_topk_bytes", states, rows, k)

    def ours(i):
        library.call("td_fill_logits", weights[i], rows, HIDDEN, hidden, states, logits)

    def ours_top(i):
        library.call("td_project_topk", weights[i], rows, HIDDEN, hidden, states, k, tokens, best, sums,
                     memory, size_of_memory)

    def top(i):
        product = (hidden @ weights[i].T).float()
        return product.topk(k), product.logsumexp(1)

    ours(sets - 1)
    ours_top(sets - 1)
    exact = hidden.double() @ weights[sets - 1].double().T
    require_close(logits, exact, 1e-4)
    require_close(best, exact.topk(k).values, 1e-4)
    require_close(best, exact.gather(1, tokens.long()), 1e-4)
    require_close(sums, exact.logsumexp(1), 1e-4)
    del exact
    size = f"K = {rows}, n = {states}"
    report.compare("pruned head, logits", size, "ours writes F32, PyTorch BF16", ours,
                   {"matmul": lambda i: hidden @ weights[i].T}, sets)
    report.compare("pruned head, top 10", size, "both with log-sum-exp", ours_top,
                   {"matmul, topk, logsumexp": top}, sets)


def compare_softmax(library, report, rows):
    sets = sets_of(4 * rows * VOCABULARY)
    words = (VOCABULARY + 31) // 32
    logits = 4 * torch.randn(sets, rows, VOCABULARY, device="cuda")
    halves = logits.bfloat16()
    allowed = torch.rand(rows, words * 32, device="cuda") < 0.75
    bits = (allowed.view(rows, words, 32).long() << torch.arange(32, device="cuda")).sum(2)
    mask = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).int()
    forbidden = ~allowed[:, :VOCABULARY]
    probabilities = torch.full((sets, rows, VOCABULARY), math.nan, device="cuda")
    tokens = torch.full((rows,), -1, device="cuda", dtype=torch.int32)
    positions = torch.arange(rows, device="cuda")
    memory, size_of_memory = workspace(library, "td_masked_softmax_bytes", rows, VOCABULARY)

    def softmax(i):
        library.call("td_masked_softmax_f32", logits[i], mask, rows, VOCABULARY, probabilities[i], memory,
                     size_of_memory)

    def softmax_of_halves(i):
        library.call("td_masked_softmax_bf16", halves[i], mask, rows, VOCABULARY, probabilities[i], memory,
                     size_of_memory)

    def find(temperature, top_k):
        return lambda i: library.call("td_find_tokens_f32", logits[i], mask, rows, VOCABULARY, temperature,
                                      top_k, 1.0, ctypes.c_uint64(5), positions, tokens, memory, size_of_memory)

    masked = logits[sets - 1].double().masked_fill(forbidden, -math.inf)
    softmax(sets - 1)
    require_close(probabilities[sets - 1], masked.softmax(1), 1e-5)
    find(0.0, 0)(sets - 1)
    if not torch.equal(tokens.long(), masked.argmax(1)):
        raise RuntimeError("arg-max differs")
    find(1.0, 50)(sets - 1)
    if not bool((masked.gather(1, tokens.long()[:, None]) >= masked.topk(50).values[:, -1:]).all()):
        raise RuntimeError("a token that is not among the 50 best")
    softmax_of_halves(sets - 1)
    masked = halves[sets - 1].double().masked_fill(forbidden, -math.inf)
    require_close(probabilities[sets - 1], masked.softmax(1), 1e-5)
    del masked

    size = f"V = {VOCABULARY}, B = {rows}"
    how = "PyTorch's mask is of bytes"
    report.compare("masked softmax, F32", size, how, softmax,
                   {"masked_fill, softmax": lambda i: logits[i].masked_fill(forbidden, -math.inf).softmax(1)}, sets)
    report.compare("masked softmax, BF16", size, how + "; both write F32", softmax_of_halves,
                   {"masked_fill, softmax": lambda i: halves[i].masked_fill(forbidden, -math.inf)
                    .softmax(1, dtype=torch.float32)}, sets)
    report.compare("masked arg-max, F32", size, how, find(0.0, 0),
                   {"masked_fill, argmax": lambda i: logits[i].masked_fill(forbidden, -math.inf).argmax(1)}, sets)
    report.compare("masked draw, top k = 50, F32", size, how + "; it stops before the draw", find(1.0, 50),
                   {"masked_fill, topk": lambda i: logits[i].masked_fill(forbidden, -math.inf).topk(50)}, sets)


def compare_attention(library, report, length):
    nodes, query_heads, key_heads, width = 60, 32, 8, 128
    group = query_heads // key_heads
    slots = length + nodes
    scale = 1 / math.sqrt(width)
    sets = sets_of(4 * slots * key_heads * width)
    keys, values = (torch.randn(sets, slots, key_heads, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    queries = torch.randn(nodes, query_heads, width, device="cuda", dtype=torch.bfloat16)
    out = torch.full_like(queries, math.nan)
    lengths = torch.tensor([length], device="cuda", dtype=torch.int32)
    tree = torch.zeros(nodes, nodes, dtype=torch.bool)
    for node in range(nodes):
        if node > 0:
            tree[node] = tree[(node - 1) // 3]
        tree[node, node] = True
    masks = [sum(1 << j for j in range(nodes) if tree[i, j]) for i in range(nodes)]
    ancestors = torch.tensor(masks, dtype=torch.int64, device="cuda")
    seen = torch.cat([torch.ones(nodes, length, dtype=torch.bool), tree], 1).cuda()  # [N, slots]
    memory, size_of_memory = workspace(library, "td_tree_attention_bytes", nodes, length, query_heads, key_heads, width)

    def ours(i):
        library.call("td_tree_attention", queries, ancestors, lengths, nodes, length, keys[i], values[i],
                     query_heads, key_heads, width, scale, out, memory, size_of_memory)

    attend = torch.nn.functional.scaled_dot_product_attention
    query = queries.transpose(0, 1)[None]  # [1, Hq, N, D]
    # Heads that share keys as rows of one head, so that no kernel reads keys more than once.
    packed = queries.view(nodes, key_heads, group, width).permute(1, 2, 0, 3).reshape(1, key_heads, group * nodes, width)
    seen_packed = seen.repeat(group, 1)

    def view(of, i):
        return of[i].transpose(0, 1)[None]  # [1, H, slots, D]

    def grouped(i):
        return attend(query, view(keys, i), view(values, i), attn_mask=seen, enable_gqa=True)

    def as_rows(i):
        return attend(packed, view(keys, i), view(values, i), attn_mask=seen_packed)

    ours(sets - 1)
    scores = torch.einsum("ngd,sgd->gns", queries.double().view(nodes * 1, key_heads, group, width)[:, :, 0],
                          keys[sets - 1].double()) * scale
    expected = torch.einsum("gns,sgd->ngd", scores.masked_fill(~seen, -math.inf).softmax(2), values[sets - 1].double())
    require_close(out.view(nodes, key_heads, group, width)[:, :, 0], expected, 1e-2)
    require_close(out, grouped(sets - 1)[0].transpose(0, 1), 2e-2)
    del scores, expected
    report.compare("tree attention", f"L = {length}, N = {nodes}", "PyTorch's mask is a matrix", ours,
                   {"SDPA, enable_gqa": grouped, "SDPA, heads as rows": as_rows}, sets)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        print("SKIPPED: PyTorch with CUDA is not here, so that nothing was compared with it")
        return 0
    torch.manual_seed(1)
    library, report = Library(arguments.library), Report(arguments.json)
    print(f"PyTorch {torch.__version__} on the same tensors; both in graphs")
    print(f"{'':32} {'':26} {'us':>9} {'PyTorch':>9} {'ratio':>7}")
    for rows in (32_768, 131_072):
        for states in (1, 10, 60):
            report.attempt(f"pruned head, K = {rows}, n = {states}",
                           lambda: compare_head(library, report, rows, states))
    for rows in (1, 64, 256):
        report.attempt(f"masked softmax, B = {rows}", lambda: compare_softmax(library, report, rows))
    for length in (1024, 8192, 32_768):
        report.attempt(f"tree attention, L = {length}", lambda: compare_attention(library, report, length))
    if report.results:
        least = min(report.results, key=lambda result: result["ratio"])
        ahead = sum(result["ratio"] >= 1 for result in report.results)
        print(f"IN ALL: at least as fast as PyTorch in {ahead} of {len(report.results)}; "
              f"least {least['ratio']:.2f}x ({least['operation']}, {least['size']})")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
