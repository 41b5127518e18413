"""Memory of a launch: spaces of addresses in which only what was allocated may be touched."""

import numpy as np


class Fault(Exception):
    """What a kernel must not do. `lane` is the lane of the warp that did it, or None."""

    def __init__(self, what, lane=None):
        super().__init__(what)
        self.what, self.lane = what, lane


class Space:
    """Allocations with guard space between them. Addresses begin at `base`."""

    alignment = 256
    guard = 4096

    def __init__(self, name, base, size, start=0):
        self.name, self.base, self.end = name, base, start
        self.bytes = np.full((size + 15) // 16 * 16, 0xFF, np.uint8)  # NaN, as numbers
        self.views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        self.starts, self.ends, self.names, self.is_writable = [], [], [], []

    def allocate(self, size, name, is_writable=True):
        """Returns the address of `size` bytes."""
        first = self.end
        self.end = -(-(first + size + self.guard) // self.alignment) * self.alignment
        if first + size > len(self.bytes):
            raise MemoryError(f"{self.name}: {name} does not fit")
        self.starts = np.append(self.starts, first).astype(np.int64)
        self.ends = np.append(self.ends, first + size).astype(np.int64)
        self.names.append(name)
        self.is_writable = np.append(self.is_writable, is_writable).astype(bool)
        return self.base + first

    def place(self, addresses, size, verb, lanes):
        """Where accesses of `size` bytes lie in `bytes`; faults name the first bad lane."""
        at = addresses.astype(np.int64) - self.base
        owner = np.searchsorted(self.starts, at, "right") - 1
        is_bad = (owner < 0) | (at + size > self.ends[owner])
        if is_bad.any():
            self.fault(addresses, size, verb, lanes, is_bad, "is outside every allocation")
        is_bad = at % size != 0
        if is_bad.any():
            self.fault(addresses, size, verb, lanes, is_bad, f"is not a multiple of {size}")
        if verb == "writes":
            is_bad = ~self.is_writable[owner]
            if is_bad.any():
                self.fault(addresses, size, verb, lanes, is_bad, "is in an input")
        return at

    def fault(self, addresses, size, verb, lanes, is_bad, why):
        first = int(np.flatnonzero(is_bad)[0])
        at = int(addresses[first]) - self.base
        owner = int(np.searchsorted(self.starts, at, "right")) - 1
        near = f"byte {at - self.starts[owner]} of {self.names[owner]}" if owner >= 0 else "nothing"
        raise Fault(f"{verb} {size} bytes of {self.name} memory at {int(addresses[first]):#x}, "
                    f"{near}, which {why}", int(lanes[first]))

    def read(self, places, size):
        return self.views[size][places // size]

    def write(self, places, size, values):
        self.views[size][places // size] = values

    def array(self, address, dtype, shape):
        """A copy of what lies at an address."""
        first = address - self.base
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.bytes[first:first + size].copy().view(dtype).reshape(shape)

    def put(self, values, name, is_writable=False):
        """Allocates a copy of an array: an input, or a result that has to be written."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        address = self.allocate(len(data), name, is_writable)
        first = address - self.base
        self.bytes[first:first + len(data)] = data
        return address


class GlobalMemory(Space):
    def __init__(self, size=16 << 20):
        super().__init__("global", 0x7000_0000_0000, size, start=4096)


class SharedMemory(Space):
    """Of one block. It begins where no more than the declared alignment holds."""

    start = 0x410  # a multiple of 16 and of no more
    window = 0x6000_0000_0000  # its generic addresses

    def __init__(self, size):
        super().__init__("shared", 0, self.start + size, self.start)
        if size > 0:
            self.allocate(size, "the block's memory")
        else:
            self.starts, self.ends, self.is_writable = np.array([0]), np.array([0]), np.array([True])
            self.names = ["nothing"]
