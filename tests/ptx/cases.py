"""Launches of the library's kernels at small odd shapes, and what float64 makes of the same numbers.

A case is a function of a Program and a Schedule that returns what is wrong, or None. Parameters are packed as C++ lays
them out.
"""

import math
import struct

import numpy as np

from interpreter import Launch
from memory import GlobalMemory
from operands import from_bf16, round_to_bf16

SEED = 20_26


class Number:
    """A type of logits, weights and states: how it is stored, and the relative error of that."""

    def __init__(self, mangled, encode, decode, size, rounding):
        self.mangled, self.encode, self.decode, self.size, self.rounding = mangled, encode, decode, size, rounding


F32 = Number("If", lambda x: x.astype(np.float32), lambda x: x.astype(np.float64), 4, 2.0**-24)
F16 = Number("I6__half", lambda x: x.astype(np.float16), lambda x: x.view(np.float16).astype(np.float64), 2,
             2.0**-11)
BF16 = Number("I13__nv_bfloat16", lambda x: round_to_bf16(x.astype(np.float32)),
              lambda x: from_bf16(x).astype(np.float64), 2, 2.0**-8)


def random_masks(rng, rows, tokens, share=0.6):
    """Bits [rows, tokens] and words [rows, tokens / 32]; bits past the last token are set."""
    bits = rng.random((rows, tokens)) < share
    padded = np.ones((rows, -(-tokens // 32) * 32), bool)
    padded[:, :tokens] = bits
    return bits, np.packbits(padded, axis=1, bitorder="little").view(np.uint32)


def unwritten(shape):
    return np.full(shape, np.nan, np.float32)


def compare(what, got, wanted, tolerance):
    """None, or the number that is furthest beyond its tolerance. Infinities must be equal."""
    with np.errstate(invalid="ignore"):
        excess = np.where(got == wanted, 0, np.abs(got - wanted)) - tolerance
    worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
    if excess[worst] <= 0:
        return None
    place = tuple(int(i) for i in worst)
    return f"{what}{list(place)} is {got[worst]}, float64 says {wanted[worst]}"


def logits_rows(rng, memory, number, rows, vocabulary, misalignment=0, scale=4.0):
    """LogitsRows, the logits as float64 [rows, V], and the allowed bits."""
    flat = number.encode(rng.normal(size=misalignment + rows * vocabulary) * scale)
    bits, words = random_masks(rng, rows, vocabulary)
    address = memory.put(flat, "logits") + misalignment * number.size
    parameter = struct.pack("PiiqPq", address, rows, vocabulary, 0, memory.put(words, "mask"), 0)
    return parameter, number.decode(flat[misalignment:]).reshape(rows, vocabulary), bits


def compare_softmax(memory, out, kept, bits, logits):
    """What a kernel wrote against the softmax of the allowed logits in float64."""
    scaled = np.where(bits, logits, -np.inf)
    wanted = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    got = memory.array(out, np.float32, bits.shape).astype(np.float64)
    if not np.array_equal(memory.array(kept, np.int32, len(bits)), bits.sum(axis=1)):
        return "kept is not the number of allowed tokens"
    return compare("out", got, wanted, 1e-5 * wanted)  # so masked tokens get exactly 0


def softmax(number, *, vocabulary, blocks, temperature=1.0, rows=2, misalignment=0):
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        parameter, logits, bits = logits_rows(rng, memory, number, rows, vocabulary, misalignment)
        out = memory.put(unwritten((rows, vocabulary)), "out", True)
        kept = memory.put(np.full(rows, -5, np.int32), "kept", True)
        packs = -(-(-(-vocabulary * number.size // 16)) // blocks)
        Launch(program, program.find("softmax_cluster_kernel", number.mangled), memory,
               [parameter, struct.pack("f", temperature), struct.pack("P", 0), struct.pack("i?i", blocks, False, packs),
                struct.pack("P", out), struct.pack("P", kept)],
               grid=rows * blocks, threads=384, cluster=blocks, schedule=schedule,
               shared_bytes=program.constants["cluster_shared_bytes"] + 16 * packs)
        return compare_softmax(memory, out, kept, bits, logits / temperature)
    return run


def aligned_softmax(number, *, vocabulary, blocks, temperature=1.0, rows=2, limits=False, is_wide=False):
    """With `limits` the first row has NaN and -infinity, the second numbers above 1e30."""
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        values = rng.normal(size=(rows, vocabulary)) * 3
        if limits:
            values[0, ::5], values[0, 1::7], values[1, ::7] = np.nan, -np.inf, np.inf
        coded = number.encode(values)
        logits = np.clip(np.nan_to_num(number.decode(coded).astype(np.float64), nan=-1e30), -1e30, 1e30)
        bits, words = random_masks(rng, rows, vocabulary, 0.7)
        bits[:, :7], words[:, 0] = False, words[:, 0] & ~np.uint32(0x7F)
        parameter = struct.pack("PiiqPq", memory.put(coded, "logits"), rows, vocabulary, 0, memory.put(words, "masks"), 0)
        out = memory.put(unwritten((rows, vocabulary)), "out", True)
        kept = memory.put(np.full(rows, -5, np.int32), "kept", True)
        packs = -(-(vocabulary * number.size // 16) // blocks)
        Launch(program, program.find("aligned_softmax_kernel", f"{number.mangled}Lb{is_wide:d}E"), memory,
               [parameter, struct.pack("f", math.log2(math.e) / temperature),
                struct.pack("i?i", blocks, is_wide, packs), struct.pack("i", packs),
                struct.pack("P", out), struct.pack("P", kept)],
               grid=rows * blocks, threads=1024 if is_wide else 384, cluster=blocks, schedule=schedule,
               shared_bytes=program.constants["wide_shared_bytes" if is_wide else "aligned_shared_bytes"] + 16 * packs)
        return compare_softmax(memory, out, kept, bits, logits / temperature)
    return run


def philox(counter, key):
    """Ten rounds of Philox 4x32: four words."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [right >> 32 ^ counter[1] ^ key[0], right & 0xFFFFFFFF, left >> 32 ^ counter[3] ^ key[1],
                   left & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return counter


def noise_of(seed, rng, memory, rows):
    """The positions of rows, NoiseRows and NoiseKeys."""
    shift, positions = 1, rng.integers(0, 1 << 34, rows)
    keys = struct.pack("20I", *((key + i * step) & 0xFFFFFFFF for key, step in
                                ((seed & 0xFFFFFFFF, 0x9E3779B9), (seed >> 32, 0xBB67AE85)) for i in range(10)))
    return [int(p) + shift for p in positions], struct.pack("QPq", seed, memory.put(positions, "positions"), shift), keys


def drawn_on_host(scaled, seed, positions):
    """The token with the greatest logit plus noise of each row; -infinity is not allowed."""
    wanted = []
    for row, position in zip(scaled, positions):
        groups = [philox((g, position & 0xFFFFFFFF, position >> 32, 0), (seed & 0xFFFFFFFF, seed >> 32))
                  for g in range(-(-len(row) // 4))]
        noise = [-math.log(-math.log((word + 0.5) * 2.0**-32)) for words in groups for word in words][:len(row)]
        wanted.append(int(np.argmax(row + noise)))
    return wanted


def compare_draws(memory, tokens, scaled, seed, positions):
    got, wanted = memory.array(tokens, np.int32, len(positions)).tolist(), drawn_on_host(scaled, seed, positions)
    return None if got == wanted else f"draws {got}, the host {wanted}"


def scaled_logits(logits, bits, temperature):
    scaled = (logits.astype(np.float32) / np.float32(temperature)).astype(np.float64)
    return np.where(bits, scaled, -np.inf)


def draw(*, vocabulary, temperature, rows=3):
    """find_tokens by noise: the same token as the greatest logit plus noise on the host."""
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        parameter, logits, bits = logits_rows(rng, memory, F32, rows, vocabulary, scale=2.0)
        seed = 0x1234_5678_9ABC
        positions, noise, keys = noise_of(seed, rng, memory, rows)
        tokens = memory.put(np.full(rows, -7, "i4"), "tokens", True)
        Launch(program, program.find("find_tokens_kernel", "Lb0"), memory,
               [parameter, struct.pack("f", temperature), noise, keys,
                struct.pack("PPPPi0P", 0, 0, 0, 0, 1), struct.pack("P", tokens)],
               grid=rows, threads=256, shared_bytes=program.constants["choice_shared_bytes"], schedule=schedule)
        return compare_draws(memory, tokens, scaled_logits(logits, bits, temperature), seed, positions)
    return run


def draw_cut(*, vocabulary, temperature, blocks, top_k=0, top_p=1.0, kept_packs=1 << 30, rows=2):
    """The same from what top-k and top-p leave, with a row searched by the blocks of a cluster."""
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        parameter, logits, bits = logits_rows(rng, memory, F32, rows, vocabulary, scale=2.0)
        seed = 0x1234_5678_9ABC
        positions, noise, keys = noise_of(seed, rng, memory, rows)
        tokens = memory.put(np.full(rows, -7, "i4"), "tokens", True)
        packs = min(kept_packs, -(-(-(-vocabulary // 4)) // blocks))
        options = struct.pack("Ififf", (top_k > 0) + 2 * (top_p < 1), temperature, top_k, top_p, -math.inf)
        Launch(program, program.find("cut_rows_kernel", "Lb1"), memory,
               [parameter, options, struct.pack("iii", blocks, 64, packs), struct.pack("P", 0), noise, keys,
                struct.pack("P", tokens)],
               grid=rows * blocks, threads=64, cluster=blocks, schedule=schedule,
               shared_bytes=program.constants["search_shared_bytes"] + 16 * packs)
        scaled = scaled_logits(logits, bits, temperature)
        for row in scaled:
            order = np.argsort(-row, kind="stable")
            left = order[:top_k] if top_k else order
            mass = np.exp(row[left] - row[left[0]])
            kept = left[:np.searchsorted(np.cumsum(mass), np.float32(top_p) * mass.sum()) + 1] if top_p < 1 else left
            row[np.setdiff1d(order, kept)] = -np.inf
        return compare_draws(memory, tokens, scaled, seed, positions)
    return run


class HeadKernels:
    """The kernels of a pruned head for a number of states.

    `tiling` is a HeadTiling's states, slices, chunk and buffers; without it CUDA cores multiply.
    """

    def __init__(self, program, memory, number, states, tiling, schedule):
        self.program, self.memory, self.states, self.schedule = program, memory, states, schedule
        self.kernel = program.find("multiply_rows" if tiling is None else "multiply_tiles", number.mangled)
        if tiling is None:
            self.shared_bytes, self.tiling, self.passes = program.constants["rows_shared_bytes"], [], -(-states // 4)
        else:
            per_pass, _, chunk, buffers = tiling
            self.shared_bytes = per_pass * (2 * buffers * (chunk + 32) + 4 * 16 * 20)
            self.tiling, self.passes = [struct.pack("iiiiN", *tiling, self.shared_bytes)], -(-states // per_pass)

    def launch(self, name, parameters, grid, threads, shared_bytes=0):
        Launch(self.program, self.program.find(name), self.memory, parameters, grid=grid, threads=threads,
               shared_bytes=shared_bytes, schedule=self.schedule)

    def multiply(self, head_list, hidden, output, lists):
        parameters = [head_list, struct.pack("P", hidden), struct.pack("i", self.states), output, *self.tiling]
        self.launch(self.kernel.name, parameters, (lists, self.passes), 512, self.shared_bytes)

    def fill_logits(self, head_list, hidden, rows, lists):
        at = self.memory.put(unwritten((self.states, rows)), "logits", True)
        self.multiply(head_list, hidden, struct.pack("PPiiiPP", at, 0, 0, 0, lists, 0, 0), lists)
        return self.memory.array(at, np.float32, (self.states, rows))

    def find_best(self, head_list, hidden, masks, mask_words, top, lists):
        """Tokens and logits [n, k], and log-sum-exp [n]."""
        put, states = self.memory.put, self.states
        output = struct.pack("PPiiiPP", 0, masks, mask_words, top, lists,
                             put(np.full((states, lists, top), 0xAA << 56, np.uint64), "keys", True),
                             put(unwritten((states, lists, 2)), "sums", True))
        self.multiply(head_list, hidden, output, lists)
        best = put(np.full((states, top), -7, np.int32), "best tokens", True)
        scores, sums = put(unwritten((states, top)), "scores", True), put(unwritten(states), "log_sum_exp", True)
        self.launch("merge_head_lists", [output, struct.pack("PPP", best, scores, sums)], states, 1024,
                    self.program.constants["lists_shared_bytes"])
        return (self.memory.array(best, np.int32, (states, top)), self.memory.array(scores, np.float32, (states, top)),
                self.memory.array(sums, np.float32, states))


def compare_best(found, logits, allowed, tokens):
    """What `find_best` must find among rows with these logits and tokens."""
    best, scores, sums = found
    top = best.shape[1]
    ranked = np.where(allowed, logits, -np.inf)
    order = np.lexsort((np.broadcast_to(tokens, ranked.shape), -ranked))[:, :top]
    wanted_scores = np.take_along_axis(ranked, order, axis=1)
    wanted = np.where(np.isneginf(wanted_scores), -1, tokens[order])
    if not np.array_equal(best, wanted):
        return f"the best tokens are {best.tolist()}, not {wanted.tolist()}"
    if not np.array_equal(scores, wanted_scores):
        return "scores are not the logits of the best tokens"
    with np.errstate(divide="ignore"):
        log_sums = np.log(np.where(allowed, np.exp(logits.astype(np.float64)), 0).sum(axis=1))
    return compare("log_sum_exp", sums.astype(np.float64), log_sums, 1e-5)


def random_head(rng, number, states, hidden_size, rows, vocabulary):
    """Weights [V, H] and states [n, H] as they are stored, all logits [n, V] in float64, and K tokens."""
    weights = number.encode(rng.normal(size=(vocabulary, hidden_size)) / math.sqrt(hidden_size))
    inputs = number.encode(rng.normal(size=(states, hidden_size)))
    logits = number.decode(inputs) @ number.decode(weights).T
    return weights, inputs, logits, rng.permutation(vocabulary)[:rows].astype(np.int32)


def head(number, *, states, hidden_size, rows, vocabulary, top, lists, tiling=None, is_whole=True,
         allowed=0.4, notes_used=False):
    """Logits of ranked rows; the best tokens under masks and their log-sum-exp. The first state may use nothing.

    With `notes_used` the rows that a state may use are found first, as `project_topk` does for a copy.
    """
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        weights, inputs, all_logits, tokens = random_head(rng, number, states, hidden_size, rows, vocabulary)
        bits, words = random_masks(rng, states, vocabulary, allowed)
        bits[0], words[0] = False, 0
        ids, hidden = memory.put(tokens, "tokens"), memory.put(inputs, "hidden")
        weights_at = memory.put(weights if is_whole else weights[tokens], "weights")
        head_list = struct.pack("PqiiPPPP", weights_at, hidden_size, rows, hidden_size, ids if is_whole else 0, ids, 0, 0)
        kernels = HeadKernels(program, memory, number, states, tiling, schedule)
        logits = kernels.fill_logits(head_list, hidden, rows, lists)
        wrong = compare("logits", logits.astype(np.float64), all_logits[:, tokens], 1e-5)
        if wrong:
            return wrong
        masks = memory.put(words, "masks")
        if notes_used:
            used = memory.put(np.full(-(-rows // 32), 0x5A5A5A5A, np.uint32), "used", True)
            given = struct.pack("Pii", masks, words.shape[1], vocabulary)
            kernels.launch("note_used_rows", [head_list, given, struct.pack("i", states), struct.pack("P", used)],
                           -(-rows // 256), 256)
            got = np.unpackbits(memory.array(used, np.uint8, 4 * -(-rows // 32)), bitorder="little")[:rows]
            if not np.array_equal(got, bits[:, tokens].any(axis=0)):
                return "the rows that are used are not those that masks leave"
            head_list = head_list[:-8] + struct.pack("P", used)
        found = kernels.find_best(head_list, hidden, masks, words.shape[1], top, lists)
        return compare_best(found, logits, bits[:, tokens], tokens)
    return run


def allowed_head(number, *, states, hidden_size, rows, vocabulary, top, lists, tiling=None):
    """The same as `project_topk` does it: the rows that masks leave are found first.

    The first state may use nothing, the second fewer tokens than there are rows: it gets all of these.
    """
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        weights, inputs, all_logits, tokens = random_head(rng, number, states, hidden_size, rows, vocabulary)
        bits, words = random_masks(rng, states, vocabulary, 0.9)
        bits[0], words[0] = False, 0
        few, few_words = random_masks(rng, 1, vocabulary, 0.05)
        bits[1], words[1] = few[0], few_words[0]
        assert bits[1].sum() < rows <= bits[2:].sum(axis=1).min()
        hidden, weights_at = memory.put(inputs, "hidden"), memory.put(weights, "weights")
        kernels = HeadKernels(program, memory, number, states, tiling, schedule)
        whole = struct.pack("PqiiPPPP", weights_at, hidden_size, vocabulary, hidden_size, 0, 0, 0, 0)
        logits = kernels.fill_logits(whole, hidden, vocabulary, lists)
        wrong = compare("logits", logits.astype(np.float64), all_logits, 1e-5)
        if wrong:
            return wrong

        ids, most_rows, mask_words = memory.put(tokens, "tokens"), min(states * rows, vocabulary), words.shape[1]
        parts = -(-mask_words // 32)

        def room(count, name, filled=-7):
            return memory.put(np.full(count, filled, np.int32), name, True)
        masks, listed, count = room(states * mask_words, "masks to use"), room(most_rows, "listed"), room(1, "count")
        allowed_rows = struct.pack(
            "PPPPPPPPiiiiii?0P", masks, room(mask_words, "either"), room(states, "is narrow"),
            room(vocabulary, "ranked rows", -1), room(parts, "part counts"), listed, count, 0, states,
            vocabulary, mask_words, parts, most_rows, rows, False)
        given = struct.pack("Pii", memory.put(words, "masks"), mask_words, vocabulary)
        ranked = struct.pack("PqiiPPPP", weights_at, hidden_size, rows, hidden_size, ids, ids, 0, 0)
        kernels.launch("note_ranked_rows", [ranked, given, allowed_rows], states + -(-rows // 256), 256,
                       program.constants["counts_shared_bytes"])
        kernels.launch("unite_allowed", [given, allowed_rows], -(-parts // 8), 256)
        kernels.launch("list_allowed", [allowed_rows], -(-parts // 8), 256)

        allowed = bits.copy()
        allowed[2:] &= np.isin(np.arange(vocabulary), tokens)
        union = np.flatnonzero(allowed.any(axis=0))
        if memory.array(count, np.int32, 1)[0] != len(union):
            return f"{memory.array(count, np.int32, 1)[0]} rows are listed, not {len(union)}"
        if not np.array_equal(memory.array(listed, np.int32, len(union)), union):
            return "the rows that are listed are not those that masks leave"
        left = struct.pack("PqiiPPPP", weights_at, hidden_size, most_rows, hidden_size, listed, listed, count, 0)
        found = kernels.find_best(left, hidden, masks, mask_words, top, lists)
        return compare_best(found, logits, allowed, np.arange(vocabulary))
    return run


def random_ancestors(rng, nodes, padding):
    """Masks of a tree whose last nodes are padding."""
    masks = []
    for node in range(nodes):
        masks.append(1 << node | (masks[rng.integers(0, node)] if node > 0 else 0))
    return np.array(masks[:nodes - padding] + [0] * padding, np.uint64)


def attention(number, *, head_size, nodes, group, key_heads, lengths, splits=1, page_size=0, padding=0, warps=0,
              stages=2, query_scale=2.0):
    """Tree attention; by warpgroups unless `warps` says how many a block has.

    A node slot that at most one node sees has large values, so a mask that leaks shows.
    """
    def run(program, schedule):
        rng, memory = np.random.default_rng(SEED), GlobalMemory()
        sequences, longest = len(lengths), max(lengths) + nodes
        query_heads, scale = group * key_heads, 1 / math.sqrt(head_size)
        queries = number.encode(rng.normal(size=(sequences, nodes, query_heads, head_size)) * query_scale)
        keys, values = rng.normal(size=(2, sequences, longest, key_heads, head_size))
        ancestors = np.stack([random_ancestors(rng, nodes, padding) for _ in lengths])
        sees = np.zeros((sequences, nodes, longest), bool)
        for one, length in enumerate(lengths):
            sees[one, :, :length] = True
            sees[one, :, length:length + nodes] = ancestors[one, :, None] >> np.arange(nodes, dtype=np.uint64) & 1
            sees[one, nodes - padding:] = False
            values[one, length:length + nodes][sees[one, :, length:length + nodes].sum(axis=0) <= 1] *= 50
            keys[one, length + nodes:] = values[one, length + nodes:] = np.nan  # what no slot owns
        keys, values = number.encode(keys), number.encode(values)
        pages, pages_at, stored = 0, 0, [keys, values]
        if page_size > 0:
            pages = -(-longest // page_size)
            order = rng.permutation(sequences * pages).astype(np.int32).reshape(sequences, pages)
            pages_at = memory.put(order, "pages")
            at = order[:, np.arange(longest) // page_size] * page_size + np.arange(longest) % page_size
            stored = [number.encode(np.full((order.size * page_size, key_heads, head_size), np.nan)) for _ in range(2)]
            stored[0][at], stored[1][at] = keys, values
        unit, rows = key_heads * head_size, sequences * nodes * query_heads
        row_tiles = -(-nodes * group // (128 if warps == 0 else 32 * warps))
        out = memory.put(number.encode(np.full(queries.shape, np.nan)), "out", True)
        parts = struct.pack("PPqii", memory.put(unwritten((rows, splits, head_size)), "parts", True),
                            memory.put(unwritten((rows, splits)), "log sums", True), rows, splits, head_size)
        task = b"".join([
            struct.pack("PPPiiii", memory.put(queries, "queries"), memory.put(ancestors, "ancestors"),
                        memory.put(np.array(lengths, np.int32), "lengths"), sequences, nodes, max(lengths), nodes),
            struct.pack("PPqqqPii", memory.put(stored[0], "keys"), memory.put(stored[1], "values"), unit, head_size,
                        (page_size or longest) * unit, pages_at, page_size, pages),
            struct.pack("iiif", query_heads, key_heads, head_size, scale), struct.pack("P", out), parts,
            struct.pack("i0P", row_tiles)])
        name, threads, more = "attend_tree_by_warpgroups", 384, []
        shared_bytes = 1024 + 2 * 2 * 5 * 64 * head_size + 2 * 5 * 8
        if warps > 0:
            name, threads, more = "attend_treeI", 32 * warps, [struct.pack("i", stages)]
            shared_bytes = 2 * 32 * head_size * (warps + 2 * stages)
        Launch(program, program.find(name, number.mangled, f"Li{head_size}E"), memory, [task, *more],
               grid=sequences * key_heads * splits * row_tiles, threads=threads, shared_bytes=shared_bytes,
               schedule=schedule)
        if splits > 1:
            Launch(program, program.find("merge_parts", number.mangled), memory, [parts, struct.pack("P", out)],
                   grid=rows, threads=32 * -(-head_size // 64), schedule=schedule)

        q, k, v = number.decode(queries), number.decode(keys), number.decode(values)
        wanted, magnitude = np.zeros(queries.shape), np.zeros(queries.shape)
        for place in np.ndindex(sequences, nodes - padding, query_heads):
            seen, one = sees[place[:2]], place[2] // group
            scores = k[place[0], seen, one] @ q[place] * scale
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            wanted[place] = weights @ v[place[0], seen, one]
            magnitude[place] = weights @ np.abs(v[place[0], seen, one])
        got = number.decode(memory.array(out, f"u{number.size}", wanted.shape))
        # Each weight is rounded once, and the result once more.
        return compare("out", got, wanted, 1.02 * number.rounding * (magnitude + np.abs(wanted)))
    return run


# Which kernel, at which shape: (source, what, case).
CASES = [
    ("softmax", "softmax of F32, one block", softmax(F32, vocabulary=133, blocks=1)),
    ("softmax", "softmax of F32 by a cluster, with a temperature, not aligned",
     softmax(F32, vocabulary=1003, blocks=4, temperature=0.7, misalignment=1)),
    ("softmax", "softmax of BF16 by a cluster", softmax(BF16, vocabulary=2051, blocks=2)),
    ("softmax", "softmax of BF16, not aligned", softmax(BF16, vocabulary=333, blocks=2, misalignment=3)),
    ("softmax", "softmax of aligned F32 by a cluster", aligned_softmax(F32, vocabulary=1004, blocks=4, temperature=0.7)),
    ("softmax", "softmax of aligned BF16 by a cluster", aligned_softmax(BF16, vocabulary=2056, blocks=2)),
    ("softmax", "softmax of aligned BF16 with limits", aligned_softmax(BF16, vocabulary=1032, blocks=2, limits=True)),
    ("softmax", "softmax of aligned BF16 by wide blocks, some packs later",
     aligned_softmax(BF16, vocabulary=38 * 1024, blocks=2, rows=1, is_wide=True)),
    ("softmax", "draws of F32", draw(vocabulary=699, temperature=0.8)),
    ("softmax", "draws of F32, cut by one block", draw_cut(vocabulary=333, temperature=0.8, blocks=1, top_k=20, rows=1)),
    ("softmax", "draws of F32, cut by a cluster",
     draw_cut(vocabulary=699, temperature=0.8, blocks=4, top_k=100, top_p=0.8, kept_packs=30)),
    ("head", "head of F16 on CUDA cores", head(F16, states=3, hidden_size=72, rows=37, vocabulary=133, top=5, lists=1)),
    ("head", "head of F16 on CUDA cores, a copy of rows",
     head(F16, states=5, hidden_size=264, rows=50, vocabulary=133, top=10, lists=2, is_whole=False)),
    ("head", "head of BF16 on tensor cores, all columns at once",
     head(BF16, states=9, hidden_size=72, rows=37, vocabulary=133, top=10, lists=2, tiling=(16, 16, 128, 1))),
    ("head", "head of BF16 on tensor cores, in chunks",
     head(BF16, states=9, hidden_size=264, rows=37, vocabulary=133, top=3, lists=1, tiling=(8, 2, 128, 2),
          is_whole=False)),
    ("head", "head of BF16 on tensor cores, few rows of a copy",
     head(BF16, states=9, hidden_size=72, rows=101, vocabulary=133, top=10, lists=2, tiling=(16, 16, 128, 1),
          is_whole=False, allowed=0.03, notes_used=True)),
    ("head", "head of BF16 on tensor cores, few rows of a copy, in chunks",
     head(BF16, states=9, hidden_size=264, rows=150, vocabulary=170, top=3, lists=1, tiling=(8, 2, 128, 2),
          is_whole=False, allowed=0.05, notes_used=True)),
    ("head", "head of F16 on CUDA cores, few rows of a copy",
     head(F16, states=3, hidden_size=72, rows=101, vocabulary=133, top=5, lists=1, is_whole=False, allowed=0.1,
          notes_used=True)),
    ("head", "head of BF16 on tensor cores, rows that masks leave",
     allowed_head(BF16, states=9, hidden_size=72, rows=19, vocabulary=133, top=10, lists=2, tiling=(16, 16, 128, 1))),
    ("head", "head of F16 on CUDA cores, rows that masks leave",
     allowed_head(F16, states=3, hidden_size=72, rows=41, vocabulary=133, top=5, lists=2)),
    ("attention", "attention of BF16 by warpgroups, three tiles of slots",
     attention(BF16, head_size=64, nodes=5, group=3, key_heads=1, lengths=(131,), padding=1,
               query_scale=0.25)),  # weights are even, so each slot shows
    ("attention", "attention of BF16 by warpgroups, pages, splits, two row tiles",
     attention(BF16, head_size=64, nodes=33, group=4, key_heads=1, lengths=(60,), splits=2, page_size=16)),
    ("attention", "attention of BF16 by warpgroups, two sequences, pages, splits",
     attention(BF16, head_size=64, nodes=5, group=3, key_heads=2, lengths=(2, 131), splits=2, page_size=16, padding=1,
               query_scale=0.25)),
    ("attention", "attention of F16 by warpgroups, heads of 128",
     attention(F16, head_size=128, nodes=3, group=2, key_heads=1, lengths=(67,), page_size=16)),
    ("attention", "attention of BF16 by warpgroups, more tiles than stages",
     attention(BF16, head_size=64, nodes=2, group=3, key_heads=1, lengths=(64 * 11 + 9,), query_scale=0.25)),
    ("attention", "attention of F16 by warps",
     attention(F16, head_size=96, nodes=7, group=1, key_heads=1, lengths=(70,), warps=1, stages=3)),
    ("attention", "attention of F16 by warps, two sequences, pages",
     attention(F16, head_size=96, nodes=5, group=9, key_heads=2, lengths=(70, 37), page_size=5, padding=1, warps=2,
               query_scale=0.25)),
]
