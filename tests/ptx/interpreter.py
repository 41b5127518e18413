"""Runs kernels of PTX text on the CPU: the instructions that nvcc emits, inline assembler included.

The lanes of a warp are numpy arrays, of which those at the least program counter go on together. A warp runs until it
waits for others, so a missing barrier shows in the numbers if the first or the last warp, running ahead, takes what is
not there yet or spoils what is still needed; not if only another pace of the warps does. Asynchronous products are
done when something waits for them, copies then or at once, as a Schedule says; copies that arrive at an mbarrier come
when nothing else goes on. What a device would not survive is a Fault: an access outside an allocation or with a wrong
alignment, a write to an input, a launch of more threads than the kernel has bounds for, threads that wait for each
other.
"""

import typing

import numpy as np

import module
from arithmetic import compile_arithmetic
from cooperation import compile_cooperation
from memory import Fault, SharedMemory, Space
from operands import LANE, LANES, Operands, Registers, lanes_of

NEVER = 1 << 60


class Schedule(typing.NamedTuple):
    """What a device may choose. What a kernel computes must not depend on it."""

    is_reversed: bool = False  # the last block and the last warp run first
    copies_at_once: bool = False  # asynchronous copies land at once, not when they are waited for


class Unsupported(Exception):
    """An instruction that the interpreter does not know."""


class Step:
    """What an instruction does.

    `kind`: plain, branch, end, together (all lanes of its mask), barrier, arrive, wait, poll.
    """

    __slots__ = ("kind", "run", "condition", "target", "mask", "instruction")

    def __init__(self, operands, kernel, instruction):
        name, modifiers = instruction.name, instruction.modifiers
        self.instruction, self.run, self.target, self.mask = instruction, None, None, None
        self.condition = None
        if instruction.predicate:
            self.condition = operands.source("!" * instruction.is_negated + instruction.predicate, "pred")
        self.kind = "plain"
        if name == "bra":
            self.kind, self.target = "branch", kernel.labels[instruction.operands[0]]
        elif name in ("ret", "exit"):
            self.kind = "end"
        elif name == "bar" and modifiers == ["sync"] and instruction.operands == ["0"]:
            self.kind = "barrier"
        elif name == "bar" and modifiers == ["warp", "sync"]:
            self.kind, self.mask = "together", operands.source(instruction.operands[0], "u32")
            self.run = lambda warp, active: None
        elif name == "barrier" and modifiers[0] == "cluster":
            self.kind = modifiers[1]
        else:
            self.run = compile_arithmetic(operands, instruction) or compile_cooperation(operands, instruction)
            if self.run is None:
                raise Unsupported(f"{kernel.name}, line {instruction.line}: {instruction.text}")
            if name == "mbarrier" and modifiers[0] == "try_wait":
                self.kind = "poll"
            elif name in ("shfl", "vote"):
                self.kind, self.mask = "together", operands.source(instruction.operands[-1], "u32")
            elif name in ("mma", "ldmatrix", "wgmma"):
                self.kind = "together"
        if self.condition and self.kind not in ("plain", "branch", "end"):
            raise Unsupported(f"{kernel.name}, line {instruction.line}, under a condition: {instruction.text}")


class Program:
    """The kernels of a PTX text, each compiled when it is first launched."""

    def __init__(self, text):
        self.kernels, self.constants = module.parse(text), module.constants(text)
        self.shared_symbols = module.shared_symbols(text)
        self.steps = {}

    def find(self, *parts):
        """The kernel whose mangled name contains all parts."""
        found = [k for name, k in self.kernels.items() if all(part in name for part in parts)]
        if len(found) != 1:
            raise KeyError(f"{len(found)} kernels have {parts} in their names")
        return found[0]

    def steps_of(self, kernel):
        if kernel.name not in self.steps:
            symbols = {name: offset for name, offset, size in kernel.parameters}
            symbols.update(dict.fromkeys(self.shared_symbols, SharedMemory.start))
            operands = Operands(kernel, symbols)
            self.steps[kernel.name] = [Step(operands, kernel, i) for i in kernel.code]
        return self.steps[kernel.name]


class Warp:
    def __init__(self, block, index):
        launch = block.launch
        self.block, self.index, self.steps = block, index, launch.steps
        self.threads = LANES * index + LANE
        self.rows = Registers(launch.kernel.counts).rows
        self.alive = self.threads < launch.threads
        self.pc = np.zeros(LANES, np.int64)
        self.is_parked = np.zeros(LANES, bool)  # waits for lanes of its warp
        self.state = "runs"  # or: barrier, wait, poll, ended
        self.arrivals = self.waits = 0  # at the cluster's barrier
        self.copies, self.closed_copies = [], np.zeros(LANES, np.int64)
        self.arriving = []  # copies, and the mbarrier at which a number of threads arrives after them
        self.products, self.product_groups = [], []

    def special(self, name):
        launch = self.block.launch
        values = {"%tid.x": self.threads, "%tid.y": 0, "%tid.z": 0, "%ntid.x": launch.threads, "%ntid.y": 1,
                  "%laneid": LANE, "%nctaid.x": launch.grid[0], "%nctaid.y": launch.grid[1],
                  "%ctaid.x": self.block.index[0], "%ctaid.y": self.block.index[1]}
        return np.broadcast_to(np.asarray(values[name]), LANES)

    def arrive_after_copies(self, lanes, address):
        self.arriving.append((self.copies, address, len(lanes)))
        self.copies = []
        if self.block.launch.schedule.copies_at_once:
            self.finish_arrival()

    def finish_arrival(self):
        copies, address, count = self.arriving.pop(0)
        for lanes, groups, places, data in copies:
            self.block.shared.write(places[:, None] + 4 * np.arange(data.shape[1]), 4, data)
        self.block.arrive(address, count)

    def finish_copies(self, active, left):
        while self.arriving:
            self.finish_arrival()
        waiting = []
        for lanes, groups, places, data in self.copies:
            is_done = active[lanes] & (groups < self.closed_copies[lanes] - left)
            columns = 4 * np.arange(data.shape[1])
            self.block.shared.write(places[is_done][:, None] + columns, 4, data[is_done])
            if not is_done.all():
                waiting.append((lanes[~is_done], groups[~is_done], places[~is_done], data[~is_done]))
        self.copies = waiting

    def close_products(self):
        self.product_groups.append(self.products)
        self.products = []

    def finish_products(self, left):
        while len(self.product_groups) > left:
            for finish in self.product_groups.pop(0):
                finish()

    def next_group(self):
        """The lanes that go on, their place, and the least place of others that could; or no lanes."""
        ready = self.alive & ~self.is_parked
        if not ready.any():
            self.unpark()
            ready = self.alive & ~self.is_parked
        pc = int(self.pc[ready].min())
        active = ready & (self.pc == pc)
        others = ready & ~active
        return active, pc, int(self.pc[others].min()) if others.any() else NEVER

    def unpark(self):
        """Lets lanes go on that wait at the same place, if these are all that it needs."""
        for pc in np.unique(self.pc[self.is_parked]):
            group = self.is_parked & (self.pc == pc)
            if self.is_complete(self.steps[pc], group):
                self.is_parked &= ~group
                return
        texts = [self.steps[pc].instruction.text for pc in np.unique(self.pc[self.is_parked])]
        raise Fault("lanes of a warp wait for each other: " + " | ".join(texts), int(lanes_of(self.is_parked)[0]))

    def is_complete(self, step, active):
        if step.mask is None:
            return bool((active == self.alive).all())
        mask = int(step.mask(self)[lanes_of(active)[0]])
        needed = (mask >> LANE & 1).astype(bool)
        if (active & ~needed).any():
            raise Fault("a lane is not in the mask of its instruction", int(lanes_of(active & ~needed)[0]))
        return not (needed & self.alive & ~active).any()

    def run(self):
        """Until the warp waits for others or ends."""
        while self.alive.any():
            active, pc, other = self.next_group()
            while pc < other:
                step = self.steps[pc] if pc < len(self.steps) else None
                kind = step.kind if step else "end"
                self.block.launch.now = (self, pc)
                if kind == "plain":
                    hit = active if step.condition is None else active & step.condition(self)
                    if step.condition is None or hit.any():
                        step.run(self, hit)
                    pc += 1
                    continue
                if kind == "branch":
                    hit = active if step.condition is None else active & step.condition(self)
                    if (hit == active).all():
                        pc = step.target
                        if pc <= other:
                            continue
                        break
                    if not hit.any():
                        pc += 1
                        continue
                    self.pc[active], self.pc[hit] = pc + 1, step.target
                    active = None
                    break
                if kind == "end":
                    hit = active if step is None or step.condition is None else active & step.condition(self)
                    self.alive &= ~hit
                    active = active & ~hit
                    pc += 1
                    if not active.any():
                        active = None
                        break
                    continue
                if not self.is_complete(step, active):
                    self.pc[active] = pc
                    self.is_parked |= active
                    active = None
                    break
                if kind == "together":
                    step.run(self, active)
                    pc += 1
                    continue
                if kind == "poll":
                    if step.run(self, active):
                        pc += 1
                        continue
                    self.pc[active] = pc
                    self.state = kind
                    return
                if kind == "arrive":
                    self.arrivals += 1
                    pc += 1
                    continue
                self.pc[active] = pc + 1
                self.state = kind
                return
            if active is not None:
                self.pc[active] = pc
        if self.products or self.product_groups:
            raise Fault("ends while products are in flight")
        self.state = "ended"


class Block:
    def __init__(self, launch, index, rank):
        self.launch, self.index, self.rank = launch, index, rank
        self.shared = SharedMemory(launch.shared_bytes)
        self.warps = [Warp(self, i) for i in range(-(-launch.threads // LANES))]
        self.cluster = [self]
        self.mbarriers = {}  # address -> [arrivals of a phase, those that are left, phases that have ended]

    def begin_mbarrier(self, address, arrivals):
        self.mbarriers[address] = [arrivals, arrivals, 0]

    def arrive(self, address, count):
        if address not in self.mbarriers:
            raise Fault(f"arrives at {address:#x}, where no mbarrier has begun")
        barrier = self.mbarriers[address]
        barrier[1] -= count
        self.launch.progress += 1
        if barrier[1] < 0:
            raise Fault("arrives at an mbarrier more often than a phase has arrivals")
        if barrier[1] == 0:
            barrier[1:] = barrier[0], barrier[2] + 1

    def has_ended(self, address, parity):
        if address not in self.mbarriers:
            raise Fault(f"waits at {address:#x}, where no mbarrier has begun")
        return self.mbarriers[address][2] % 2 != parity

    def peer(self, rank):
        """The shared memory of another block of the cluster, which must not have ended."""
        block = self.cluster[rank]
        if all(warp.state == "ended" for warp in block.warps):
            raise Fault(f"reads the shared memory of block {rank} of its cluster, which has ended")
        return block.shared


class Launch:
    """One launch of a kernel; it runs when it is made.

    `parameters` are the bytes of each parameter.
    """

    def __init__(self, program, kernel, memory, parameters, *, grid, threads, shared_bytes=0, cluster=1,
                 schedule=Schedule()):
        self.schedule = schedule
        self.kernel, self.memory, self.threads, self.cluster = kernel, memory, threads, cluster
        self.grid = (*grid, 1)[:2] if isinstance(grid, tuple) else (grid, 1)
        self.shared_bytes, self.steps = shared_bytes, program.steps_of(kernel)
        self.parameters = self.lay_out(parameters)
        self.now = None
        self.progress = 0  # arrivals at mbarriers
        if threads > kernel.max_threads:
            raise Fault(f"{kernel.name}: {threads} threads, its bound is {kernel.max_threads}")
        if self.grid[0] % cluster != 0:
            raise Fault(f"{kernel.name}: a grid of {self.grid[0]} blocks is no whole number of clusters of {cluster}")
        indices = [(x, y) for y in range(self.grid[1]) for x in range(self.grid[0])]
        firsts = range(0, len(indices), cluster)
        with np.errstate(all="ignore"):
            for first in firsts[::-1] if schedule.is_reversed else firsts:
                blocks = [Block(self, index, rank) for rank, index in enumerate(indices[first:first + cluster])]
                for block in blocks:
                    block.cluster = blocks
                self.run_cluster(blocks)

    def lay_out(self, parameters):
        declared = self.kernel.parameters
        sizes, wanted = [len(p) for p in parameters], [size for _, _, size in declared]
        if sizes != wanted:
            raise Fault(f"{self.kernel.name}: parameters of {sizes} bytes, it takes {wanted}")
        space = Space("parameter", 0, declared[-1][1] + declared[-1][2])
        space.starts, space.ends = (np.array(a) for a in zip(*[(at, at + size) for _, at, size in declared]))
        space.names, space.is_writable = [name for name, _, _ in declared], np.zeros(len(declared), bool)
        for (_, at, size), data in zip(declared, parameters):
            space.bytes[at:at + size] = np.frombuffer(data, np.uint8)
        return space

    def run_cluster(self, blocks):
        warps = [warp for block in blocks for warp in block.warps]
        if self.schedule.is_reversed:
            warps.reverse()
        while True:
            before = self.progress
            for warp in warps:
                if warp.state in ("runs", "poll"):
                    warp.state = "runs"
                    try:
                        warp.run()
                    except Fault as fault:
                        raise Fault(self.describe(fault), fault.lane) from fault
            living = [w for w in warps if w.state != "ended"]
            if not living:
                return
            free = []
            for block in blocks:
                mine = [w for w in block.warps if w.state != "ended"]
                if all(w.state == "barrier" for w in mine):
                    free += mine
            for warp in living:
                if warp.state == "wait" and all(w.arrivals > warp.waits for w in living):
                    free.append(warp)
            for warp in free:
                warp.waits += warp.state == "wait"
                warp.state = "runs"
            if free or self.progress != before:
                continue
            late = next((w for w in living if w.arriving), None)
            if late:
                late.finish_arrival()
            else:
                raise Fault(f"{self.kernel.name}: warps wait for each other: " + ", ".join(
                    f"{w.index} of block {w.block.index} at a {w.state}" for w in living))

    def describe(self, fault):
        warp, pc = self.now
        instruction = warp.steps[pc].instruction
        thread = "" if fault.lane is None else f", thread {LANES * warp.index + fault.lane}"
        return (f"{self.kernel.name}, line {instruction.line}: {instruction.text}: block {warp.block.index}, "
                f"warp {warp.index}{thread}: {fault.what}")
