"""Products of matrices on tensor cores, as the figures of PTX ISA spread them over lanes and shared memory."""

import numpy as np

from memory import Fault
from module import split_list
from operands import LANE, LANES, from_bf16


def halves(words, kind):
    """The numbers of words as F64 [..., 2]."""
    bits = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 2)
    return (from_bf16(bits) if kind == "bf16" else bits.view(np.float16)).astype(np.float64)


GROUP, QUAD = LANE // 4, LANE % 4


def left_factor(words, kind):
    """a [16, 16] from the four words of each lane [4, 32]."""
    numbers = halves(words, kind)
    matrix = np.zeros((16, 16))
    for register in range(4):
        for i in range(2):
            matrix[GROUP + 8 * (register % 2), 2 * QUAD + 8 * (register // 2) + i] = numbers[register, :, i]
    return matrix


def gather_sums(rows):
    """c [16, n] from the n / 2 numbers of each lane [n / 2, 32]."""
    matrix = np.zeros((16, 2 * len(rows)))
    for register, row in enumerate(rows):
        matrix[GROUP + 8 * (register % 4 // 2), 8 * (register // 4) + 2 * QUAD + register % 2] = row
    return matrix


def scatter_sums(matrix):
    return [matrix[GROUP + 8 * (register % 4 // 2), 8 * (register // 4) + 2 * QUAD + register % 2]
            for register in range(matrix.shape[1] // 2)]


def compile_matrix_load(operands, instruction):
    count = next((int(m[1]) for m in instruction.modifiers if m in ("x1", "x2", "x4")), 1)
    is_transposed = "trans" in instruction.modifiers
    address = operands.address(instruction.operands[1])
    targets = [operands.target(text, "b32") for text in split_list(instruction.operands[0])]

    def load(warp, active):
        lanes = LANE[:8 * count]
        places = warp.block.shared.place(address(warp)[lanes], 16, "reads", lanes)
        rows = warp.block.shared.read(places[:, None] + 2 * np.arange(8), 2).reshape(count, 8, 8)
        if is_transposed:
            rows = rows.transpose(0, 2, 1)
        words = np.ascontiguousarray(rows).view(np.uint32).reshape(count, LANES)
        for target, row in zip(targets, words):
            target(warp, row, active)
    return load


def compile_matrix_product(operands, instruction):
    if instruction.modifiers[2:5] != ["m16n8k16", "row", "col"]:
        return None
    kind = instruction.types[1]
    targets = [operands.target(text, "f32") for text in split_list(instruction.operands[0])]
    a, b = ([operands.source(text, "u32") for text in split_list(o)] for o in instruction.operands[1:3])
    c = [operands.source(text, "f32") for text in split_list(instruction.operands[3])]

    def multiply(warp, active):
        right = np.zeros((16, 8))
        for register, get in enumerate(b):
            for i, numbers in enumerate(halves(get(warp), kind).T):
                right[2 * QUAD + 8 * register + i, GROUP] = numbers
        product = left_factor(np.stack([get(warp) for get in a]), kind) @ right
        for target, row in zip(targets, scatter_sums(product + gather_sums([get(warp) for get in c]))):
            target(warp, row, active)
    return multiply


def tile_addresses(descriptor, columns, is_transposed):
    """Where the factor b [16, columns] of wgmma lies in shared memory, swizzled by 128 bytes."""
    field = [descriptor >> shift & 0x3FFF for shift in (0, 16, 32)]
    first, group_bytes, eight_bytes = (16 * value for value in field)
    if descriptor >> 62 != 1 or descriptor >> 49 & 7:
        raise Fault(f"describes a tile in another way than with a swizzle of 128 bytes: {descriptor:#x}")
    k, n = np.arange(16)[:, None], np.arange(columns)[None, :]
    if is_transposed:  # rows of 64 columns
        linear = first + k // 8 * eight_bytes + k % 8 * 128 + n // 64 * group_bytes + n % 64 * 2
    else:  # a row for each column
        linear = first + n // 8 * eight_bytes + n % 8 * 128 + 2 * k
    return linear ^ (linear >> 7 & 7) << 4


def compile_group_product(operands, instruction):
    """wgmma: the product is done when its warp waits for it, no sooner."""
    what = instruction.modifiers[0]
    if what == "fence":
        return lambda warp, active: None
    if what == "commit_group":
        return lambda warp, active: warp.close_products()
    if what == "wait_group":
        left = int(instruction.operands[0])
        return lambda warp, active: warp.finish_products(left)
    shape = next((m for m in instruction.modifiers if m.startswith("m64")), "")
    if not shape.endswith("k16") or instruction.operands[4:6] != ["1", "1"]:
        return None
    columns, kind = int(shape[4:-3]), instruction.types[1]
    is_transposed = instruction.operands[6] == "1"
    targets = [operands.target(text, "f32") for text in split_list(instruction.operands[0])]
    sums = [operands.source(text, "f32") for text in split_list(instruction.operands[0])]
    a = [operands.source(text, "u32") for text in split_list(instruction.operands[1])]
    tile, adds = operands.source(instruction.operands[2], "u64"), operands.source(instruction.operands[3], "pred")

    def start(warp, active):
        descriptor, is_added = int(tile(warp)[0]), bool(adds(warp)[0])
        addresses = tile_addresses(descriptor, columns, is_transposed).reshape(-1)
        places = warp.block.shared.place(addresses, 2, "reads", np.zeros(addresses.shape, int))

        def finish():
            bits = warp.block.shared.read(places, 2).reshape(16, columns)
            right = (from_bf16(bits) if kind == "bf16" else bits.view(np.float16)).astype(np.float64)
            product = left_factor(np.stack([get(warp) for get in a]), kind) @ right
            if is_added:
                product += gather_sums([get(warp) for get in sums])
            for target, row in zip(targets, scatter_sums(product)):
                target(warp, row, active)
        warp.products.append(finish)
    return start
