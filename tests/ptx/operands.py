"""Operands of instructions as functions of a warp, which give or take an array with a number of each lane."""

import re
import struct

import numpy as np

from memory import Fault
from module import SIZES

LANES = 32
LANE = np.arange(LANES)
DTYPES = {"pred": np.bool_, **{f"{kind}{bits}": np.dtype(f"{numpy_kind}{bits // 8}")
                               for kind, numpy_kind in (("b", "u"), ("u", "u"), ("s", "i"), ("f", "f"))
                               for bits in (8, 16, 32, 64) if (kind, bits) != ("f", 8)}}
NATIVE = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}  # by the bits of a register


class Registers:
    """The registers of a warp: for each type the rows of all registers that can hold it."""

    def __init__(self, counts):
        self.rows = {}
        for bits, count in counts.items():
            if bits == 1:
                self.rows["pred"] = list(np.zeros((count, LANES), bool))
                continue
            poison = 0xDEAD_BEEF_DEAD_BEEF >> (64 - bits)
            numbers = np.full((count, LANES), poison, DTYPES[f"u{bits}"])
            for kind in "busf":
                self.rows[f"{kind}{bits}"] = list(numbers.view(DTYPES[f"{kind}{bits}"]))


def round_to_bf16(numbers):
    """Bits of the nearest BF16, ties to even."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(numbers), np.uint32(0x7FFF), rounded).astype(np.uint16)


def from_bf16(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def parse_constant(text):
    """The bits of a literal, or None."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"0[xX][0-9a-fA-F]+U?", text):
        return int(text.rstrip("U"), 16)
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return struct.unpack("<f", int(text[2:], 16).to_bytes(4, "little"))[0]
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return struct.unpack("<d", int(text[2:], 16).to_bytes(8, "little"))[0]
    return None


def constant(value, kind):
    if isinstance(value, int):
        size = SIZES[kind]
        bits = np.full(LANES, value & ((1 << 8 * size) - 1), f"u{size}")
        row = bits.astype(bool) if kind == "pred" else bits.view(DTYPES[kind])
    else:
        row = np.full(LANES, value, DTYPES[kind.replace("b", "f")]).view(DTYPES[kind])
    row.flags.writeable = False
    return lambda warp: row


class Operands:
    """Makes the functions for one kernel, of which `symbols` are the names with addresses."""

    def __init__(self, kernel, symbols):
        self.kernel, self.symbols = kernel, symbols

    def source(self, text, kind):
        """A function of a warp that gives the operand's numbers as a type has them."""
        if text.startswith("!"):
            positive = self.source(text[1:], kind)
            return lambda warp: ~positive(warp)
        if text in self.kernel.registers:
            bits, index = self.kernel.registers[text]
            if kind == "pred" or SIZES[kind] * 8 == bits:
                return lambda warp: warp.rows[kind][index]
            narrow, native = DTYPES[f"u{SIZES[kind] * 8}"], NATIVE[bits]
            return lambda warp: warp.rows[native][index].astype(narrow).view(DTYPES[kind])
        if text.startswith("%"):
            dtype = DTYPES[kind]
            return lambda warp: warp.special(text).astype(dtype)
        value = parse_constant(text)
        if value is None:
            symbol, _, offset = text.partition("+")
            if symbol not in self.symbols:
                raise SyntaxError(f"{self.kernel.name}: operand {text}")
            value = self.symbols[symbol] + int(offset or 0)
        return constant(value, kind)

    def number(self, text, kind):
        """The same, with F16 and BF16 as F32."""
        if kind == "f16":
            bits = self.source(text, "f16")
            return lambda warp: bits(warp).astype(np.float32)
        if kind == "bf16":
            bits = self.source(text, "u16")
            return lambda warp: from_bf16(bits(warp))
        return self.source(text, kind)

    def target(self, text, kind):
        """A function that writes numbers of a type to the active lanes."""
        if text == "_":
            return lambda warp, values, active: None
        bits, index = self.kernel.registers[text]
        if kind == "bf16":
            def write_bf16(warp, values, active):
                np.copyto(warp.rows["u16"][index], round_to_bf16(values), where=active)
            return write_bf16
        if kind != "pred" and SIZES[kind] * 8 < bits:  # extended by its sign
            kind = kind[0] + str(bits)
        elif kind != "pred" and SIZES[kind] * 8 > bits:
            raise SyntaxError(f"{self.kernel.name}: {text} is too narrow for {kind}")

        def write(warp, values, active):
            np.copyto(warp.rows[kind][index], values, where=active, casting="unsafe")
        return write

    def address(self, text):
        """A function for `[base + offset]`."""
        inner = text.strip("[] ")
        base, _, offset = inner.partition("+")
        offset = int(offset or 0)
        bits = self.kernel.registers.get(base, (64, 0))[0]
        numbers = self.source(base, f"u{bits}")
        return lambda warp: numbers(warp).astype(np.int64) + offset


def lanes_of(active):
    return np.flatnonzero(active)


def require(met, what, active):
    """Faults for the first active lane that does not meet what it must."""
    is_bad = active & ~met
    if is_bad.any():
        raise Fault(what, int(lanes_of(is_bad)[0]))
