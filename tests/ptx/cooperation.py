"""Instructions of memory, and those by which threads work together."""

import numpy as np

from matrices import compile_group_product, compile_matrix_load, compile_matrix_product
from memory import Fault, SharedMemory
from module import SIZES, split_list
from operands import DTYPES, LANE, LANES, lanes_of, require

RANK_SHIFT = 24  # of a block in the addresses of its cluster's shared memory


def space_of(modifiers):
    return next((m.split("::")[0] for m in modifiers if m.split("::")[0] in ("global", "shared", "param")), None)


def split_access(instruction):
    """The space, the type and the number of what is loaded or stored."""
    space = space_of(instruction.modifiers)
    count = next((int(m[1]) for m in instruction.modifiers if m in ("v2", "v4")), 1)
    return space, instruction.types[-1], count


def memories(warp, space, addresses):
    """The memory of each address, as (which addresses, memory, addresses in it)."""
    if space == "global":
        return [(slice(None), warp.block.launch.memory, addresses)]
    if space == "param":
        return [(slice(None), warp.block.launch.parameters, addresses)]
    ranks = addresses >> RANK_SHIFT
    if not ranks.any():
        return [(slice(None), warp.block.shared, addresses)]
    return [(ranks == rank, warp.block.peer(int(rank) - 1) if rank > 0 else warp.block.shared,
             addresses & ((1 << RANK_SHIFT) - 1)) for rank in np.unique(ranks)]


def compile_load(operands, instruction):
    space, kind, count = split_access(instruction)
    if space is None:
        return None
    size = SIZES[kind]
    address = operands.address(instruction.operands[1])
    texts = split_list(instruction.operands[0])
    targets = [operands.target(text, kind) for text in texts]

    def load(warp, active):
        lanes = lanes_of(active)
        addresses = address(warp)[lanes]
        values = np.zeros((count, LANES), f"u{size}")
        for which, memory, at in memories(warp, space, addresses):
            places = memory.place(at[which], size * count, "reads", lanes[which])
            for i in range(count):
                values[i, lanes[which]] = memory.read(places + i * size, size)
        for i in range(count):
            targets[i](warp, values[i].view(DTYPES[kind]), active)
    return load


def compile_store(operands, instruction):
    space, kind, count = split_access(instruction)
    if space not in ("global", "shared"):
        return None
    size = SIZES[kind]
    address = operands.address(instruction.operands[0])
    sources = [operands.source(text, kind) for text in split_list(instruction.operands[1])]

    def store(warp, active):
        lanes = lanes_of(active)
        addresses = address(warp)[lanes]
        for which, memory, at in memories(warp, space, addresses):
            places = memory.place(at[which], size * count, "writes", lanes[which])
            for i, source in enumerate(sources):
                memory.write(places + i * size, size, source(warp).view(f"u{size}")[lanes[which]])
    return store


def compile_atomic(operands, instruction):
    space, name, kind = instruction.modifiers[0], instruction.modifiers[1], instruction.types[-1]
    functions = {"add": lambda a, b: a + b, "min": min, "max": max}
    if space != "shared" or name not in functions or kind[0] != "u":
        return None
    size, bits = SIZES[kind], (1 << 8 * SIZES[kind]) - 1
    address, source = operands.address(instruction.operands[1]), operands.source(instruction.operands[2], kind)
    put = operands.target(instruction.operands[0], kind)

    def run(warp, active):
        lanes = lanes_of(active)
        places = warp.block.shared.place(address(warp)[lanes], size, "writes", lanes)
        old, given = np.zeros(LANES, f"u{size}"), source(warp)
        for lane, place in zip(lanes, places):
            old[lane] = warp.block.shared.read(place, size)
            warp.block.shared.write(place, size, functions[name](int(old[lane]), int(given[lane])) & bits)
        put(warp, old, active)
    return run


def compile_copy(operands, instruction):
    """cp.async: the source is read now; the copy lands when its thread waits for it, or now if the launch says so."""
    if "commit_group" in instruction.modifiers:
        def commit(warp, active):
            warp.closed_copies[active] += 1
        return commit
    if "wait_group" in instruction.modifiers:
        left = int(instruction.operands[0])
        return lambda warp, active: warp.finish_copies(active, left)
    if instruction.modifiers[:4] == ["async", "mbarrier", "arrive", "noinc"]:
        address = operands.address(instruction.operands[0])
        return lambda warp, active: warp.arrive_after_copies(lanes_of(active), of_all(address(warp), active))
    if instruction.modifiers[:2] != ["async", "cg"] or len(instruction.operands) != 4:
        return None
    to, source = operands.address(instruction.operands[0]), operands.address(instruction.operands[1])
    size, count = int(instruction.operands[2]), operands.source(instruction.operands[3], "u32")

    def copy(warp, active):
        lanes = lanes_of(active)
        places = warp.block.shared.place(to(warp)[lanes], size, "writes", lanes)
        given = count(warp)[lanes]
        data = np.zeros((len(lanes), size // 4), np.uint32)
        is_read = given > 0
        if is_read.any():
            memory = warp.block.launch.memory
            places_of_source = memory.place(source(warp)[lanes[is_read]], size, "reads", lanes[is_read])
            columns = np.arange(size // 4)
            data[is_read] = memory.read(places_of_source[:, None] + 4 * columns, 4)
            data[4 * columns >= given[:, None]] = 0
        if warp.block.launch.schedule.copies_at_once:
            warp.block.shared.write(places[:, None] + 4 * np.arange(size // 4), 4, data)
        else:
            warp.copies.append((lanes, warp.closed_copies[lanes], places, data))
    return copy


def compile_conversion_of_address(operands, instruction):
    offset = SharedMemory.window if "shared" in instruction.modifiers else 0
    offset = np.uint64(offset)
    put, source = operands.target(instruction.operands[0], "u64"), operands.source(instruction.operands[1], "u64")
    if "to" in instruction.modifiers:
        return lambda warp, active: put(warp, source(warp) - offset, active)
    return lambda warp, active: put(warp, source(warp) + offset, active)


def compile_address_in_cluster(operands, instruction):
    put = operands.target(instruction.operands[0], "u32")
    source, rank = (operands.source(text, "u32") for text in instruction.operands[1:])

    def run(warp, active):
        ranks = rank(warp)
        require(ranks < warp.block.launch.cluster, "has no block of this rank in its cluster", active)
        put(warp, ranks + np.uint32(1) << np.uint32(RANK_SHIFT) | source(warp), active)
    return run


def compile_shuffle(operands, instruction):
    how = instruction.modifiers[1]
    texts = instruction.operands[0].split("|")
    puts = operands.target(texts[0], "b32"), operands.target(texts[1] if len(texts) > 1 else "_", "pred")
    source, step, clamp = (operands.source(text, "u32") for text in instruction.operands[1:4])

    def shuffle(warp, active):
        limits = clamp(warp).astype(np.int64)
        segment, bound = limits >> 8 & 31, limits & 31
        first = LANE & segment
        last = first | bound & ~segment & 31
        by = step(warp).astype(np.int64) & 31
        from_lane = {"up": LANE - by, "down": LANE + by, "bfly": LANE ^ by, "idx": first | by & ~segment & 31}[how]
        is_there = from_lane >= last if how == "up" else from_lane <= last
        from_lane = np.where(is_there, from_lane, LANE)
        require(active[from_lane], "reads a lane that takes no part", active)
        puts[0](warp, source(warp)[from_lane], active)
        puts[1](warp, is_there, active)
    return shuffle


def compile_vote(operands, instruction):
    how, kind = instruction.modifiers[1], instruction.modifiers[2]
    source, put = operands.source(instruction.operands[1], "pred"), operands.target(instruction.operands[0], kind)
    powers = np.uint32(1) << LANE.astype(np.uint32)
    functions = {"ballot": lambda votes: np.bitwise_or.reduce(powers[votes]) if votes.any() else 0,
                 "any": lambda votes: votes.any()}
    if how not in functions:
        return None
    return lambda warp, active: put(
        warp, np.full(LANES, functions[how](source(warp) & active), DTYPES[kind]), active)


def of_all(numbers, active):
    """The number that all active lanes have."""
    lanes = lanes_of(active)
    require(numbers == numbers[lanes[0]], "names another mbarrier than the lanes beside it", active)
    return int(numbers[lanes[0]])


def compile_mbarrier(operands, instruction):
    what = instruction.modifiers[0]
    if what == "init":
        address, count = operands.address(instruction.operands[0]), operands.source(instruction.operands[1], "u32")

        def begin(warp, active):
            at = of_all(address(warp), active)
            warp.block.shared.place(np.array([at]), 8, "writes", lanes_of(active)[:1])
            warp.block.begin_mbarrier(at, of_all(count(warp), active))
        return begin
    if what == "arrive":
        address = operands.address(instruction.operands[1])
        return lambda warp, active: warp.block.arrive(of_all(address(warp), active), len(lanes_of(active)))
    if instruction.modifiers[:2] != ["try_wait", "parity"]:
        return None
    put, address = operands.target(instruction.operands[0], "pred"), operands.address(instruction.operands[1])
    parity = operands.source(instruction.operands[2], "u32")

    def poll(warp, active):
        has_ended = warp.block.has_ended(of_all(address(warp), active), of_all(parity(warp), active))
        put(warp, np.full(LANES, has_ended), active)
        return has_ended
    return poll


def compile_trap(operands, instruction):
    def trap(warp, active):
        raise Fault("traps", int(lanes_of(active)[0]))
    return trap


def compile_nothing(operands, instruction):
    return lambda warp, active: None


KNOWN = {"ld": compile_load, "st": compile_store, "atom": compile_atomic, "cp": compile_copy,
         "cvta": compile_conversion_of_address, "mapa": compile_address_in_cluster, "shfl": compile_shuffle,
         "vote": compile_vote, "ldmatrix": compile_matrix_load, "mma": compile_matrix_product,
         "wgmma": compile_group_product, "mbarrier": compile_mbarrier, "trap": compile_trap, "fence": compile_nothing,
         "griddepcontrol": compile_nothing, "setmaxnreg": compile_nothing, "nanosleep": compile_nothing}


def compile_cooperation(operands, instruction):
    """A function of a warp and its active lanes, or None if the instruction is not known here."""
    compiled = KNOWN.get(instruction.name)
    return compiled and compiled(operands, instruction)
