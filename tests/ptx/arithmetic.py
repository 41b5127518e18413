"""Instructions that compute in registers, as PTX ISA describes them."""

import numpy as np

from module import SIZES, split_list
from operands import DTYPES, LANES, require


def shift_left(a, n):
    bits = 8 * a.dtype.itemsize
    return np.where(n >= bits, 0, a << np.minimum(n, bits - 1).astype(a.dtype))


def shift_right(a, n):
    bits = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(n, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(n >= bits, 0, shifted)


def fused(a, b, c):
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def fused_down(a, b, c):
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    near = exact.astype(a.dtype)
    return np.where(near.astype(np.longdouble) > exact, np.nextafter(near, a.dtype.type(-np.inf)), near)


def saturate(a):
    return np.clip(np.nan_to_num(a, nan=0.0), 0, 1)


def flush(a):
    """Subnormal numbers to zero."""
    return np.where(np.abs(a) < np.finfo(a.dtype).tiny, a * a.dtype.type(0), a)


def divide(a, b):
    """Of integers, towards zero; divisors are not 0."""
    quotient = a // b
    return quotient if a.dtype.kind == "u" else quotient + ((a % b != 0) & ((a < 0) != (b < 0)))


def rough_reciprocal(a):
    bits = (1 / a).view(np.uint64) & np.uint64(0xFFFF_FFFF_0000_0000)
    return bits.view(np.float64)


def each(function, dtype=np.uint32):
    """A function of Python's integers, for rows."""
    return lambda *rows: np.array([function(*map(int, numbers)) for numbers in zip(*rows)], dtype)


def permute(a, b, selector):
    given = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    picked = [selector >> 4 * i & 15 for i in range(4)]
    return int.from_bytes(bytes(given[p & 7] if p < 8 else 255 * (given[p & 7] >> 7) for p in picked), "little")


def insert_bits(a, b, first, count):
    mask = ((1 << count) - 1) << first
    return b & ~mask | a << first & mask


# By name, or name and modifiers without the type; all operands have the type.
SAME_TYPE = {
    "add": lambda a, b: a + b, "add.rn": lambda a, b: a + b, "sub": lambda a, b: a - b, "sub.rn": lambda a, b: a - b,
    "mul": lambda a, b: a * b, "mul.rn": lambda a, b: a * b, "mul.lo": lambda a, b: a * b,
    "mad.lo": lambda a, b, c: a * b + c,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
    "neg": lambda a: -a, "abs": np.abs, "fma.rn": fused, "fma.rm": fused_down, "div.rn": lambda a, b: a / b,
    "rcp.rn": lambda a: 1 / a, "rcp.approx.ftz": rough_reciprocal,
    "ex2.approx": lambda a: np.exp2(a.astype(np.float64)),
    "ex2.approx.ftz": lambda a: flush(np.exp2(flush(a).astype(np.float64)).astype(np.float32)),
    "lg2.approx": lambda a: np.log2(a.astype(np.float64)),
}
COUNTS = {  # of bits, as 32-bit numbers
    "popc": lambda a, bits: a.bit_count(), "clz": lambda a, bits: bits - a.bit_length(),
    "bfind.shiftamt": lambda a, bits: bits - a.bit_length() if a else 0xFFFF_FFFF,
}
COMPARISONS = {
    "eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "neu": lambda a, b: a != b, "ltu": lambda a, b: ~(a >= b), "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b), "geu": lambda a, b: ~(a < b),
}
ROUNDINGS = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def compile_function(operands, instruction, function, kinds, to_kind):
    """`to = function(sources)`, the usual form."""
    put = operands.target(instruction.operands[0], to_kind)
    gets = [operands.number(text, kind) for text, kind in zip(instruction.operands[1:], kinds)]
    if len(gets) != len(instruction.operands) - 1:
        return None
    if len(gets) == 1:
        first, = gets
        return lambda warp, active: put(warp, function(first(warp)), active)
    if len(gets) == 2:
        first, second = gets
        return lambda warp, active: put(warp, function(first(warp), second(warp)), active)
    return lambda warp, active: put(warp, function(*[get(warp) for get in gets]), active)


def compile_move(operands, instruction):
    kind = "pred" if instruction.types[0] == "pred" else f"b{8 * SIZES[instruction.types[0]]}"
    to, source = instruction.operands
    if not to.startswith("{") and not source.startswith("{"):
        return compile_function(operands, instruction, lambda a: a, [kind], kind)
    parts = split_list(to if to.startswith("{") else source)
    part_kind = f"b{8 * SIZES[kind] // len(parts)}"
    if to.startswith("{"):
        get = operands.source(source, kind)
        puts = [operands.target(part, part_kind) for part in parts]

        def unpack(warp, active):
            columns = get(warp).view(DTYPES[part_kind]).reshape(LANES, len(parts)).copy()
            for at, put in enumerate(puts):
                put(warp, columns[:, at], active)
        return unpack
    put = operands.target(to, kind)
    gets = [operands.source(part, part_kind) for part in parts]

    def pack(warp, active):
        columns = np.stack([get(warp) for get in gets], axis=1)
        put(warp, np.ascontiguousarray(columns).view(DTYPES[kind]).reshape(LANES), active)
    return pack


def compile_product(operands, instruction):
    kind = instruction.types[0]
    wide = f"{kind[0]}{16 * SIZES[kind]}"
    if instruction.modifiers[0] == "wide":
        def function(a, b):
            return a.astype(DTYPES[wide]) * b.astype(DTYPES[wide])
        return compile_function(operands, instruction, function, [kind] * 2, wide)
    if instruction.modifiers[0] == "hi" and SIZES[kind] < 8:
        def function(a, b):
            return a.astype(DTYPES[wide]) * b.astype(DTYPES[wide]) >> DTYPES[wide].type(8 * SIZES[kind])
        return compile_function(operands, instruction, function, [kind] * 2, kind)
    return None


def compile_division(operands, instruction):
    kind = instruction.types[0]
    if kind[0] == "f":
        return None
    put = operands.target(instruction.operands[0], kind)
    first, second = (operands.source(text, kind) for text in instruction.operands[1:])
    function = divide if instruction.name == "div" else lambda a, b: a - b * divide(a, b)

    def run(warp, active):
        divisor = second(warp)
        require(divisor != 0, "divides by zero", active)
        put(warp, function(first(warp), np.where(divisor == 0, divisor.dtype.type(1), divisor)), active)
    return run


def compile_extreme(operands, instruction):
    kind = instruction.types[0]
    functions = {"min": (np.fmin, np.minimum), "max": (np.fmax, np.maximum)}[instruction.name]
    if len(instruction.modifiers) > 1:
        return None
    return compile_function(operands, instruction, functions[0 if kind[0] == "f" else 1], [kind] * 2, kind)


def compile_conversion(operands, instruction):
    if len(instruction.types) != 2:
        return None
    to, source = instruction.types
    how = [m for m in instruction.modifiers if m not in SIZES and m not in ("rn", "ftz")]
    is_float = {kind: "f" in kind for kind in (to, source)}
    if is_float[to]:
        steps = [saturate if name == "sat" else ROUNDINGS.get(name) for name in how]
        if None in steps or (to == "f32" and source == "f64" and "rn" not in instruction.modifiers):
            return None

        def function(a):
            for step in steps:
                a = step(a)
            return a
    elif is_float[source]:
        if how[0] not in ROUNDINGS:
            return None
        limits = np.iinfo(DTYPES[to])

        def function(a):
            whole = ROUNDINGS[how[0]](np.nan_to_num(a.astype(np.longdouble), nan=0.0))
            return np.clip(whole, limits.min, limits.max).astype(DTYPES[to])
    else:
        if how:
            return None

        def function(a):
            return a.astype(DTYPES[to])
    return compile_function(operands, instruction, function, [source], to)


def compile_comparison(operands, instruction):
    name, kind = instruction.modifiers[0], instruction.modifiers[-1]
    if len(instruction.modifiers) != 2 or "|" in instruction.operands[0]:
        return None
    if name == "ne":  # without order it is not unequal
        function = (lambda a, b: (a < b) | (a > b)) if kind[0] == "f" else lambda a, b: a != b
    else:
        function = COMPARISONS.get(name)
    return function and compile_function(operands, instruction, function, [kind] * 2, "pred")


def compile_selection(operands, instruction):
    kind = f"b{8 * SIZES[instruction.types[0]]}"

    def function(a, b, is_first):
        return np.where(is_first, a, b)
    return compile_function(operands, instruction, function, [kind, kind, "pred"], kind)


def compile_bits(operands, instruction):
    kind = f"u{8 * SIZES[instruction.types[0]]}"
    bits = 8 * SIZES[kind]
    name = ".".join([instruction.name, *instruction.modifiers[:-1]])
    if name in COUNTS:
        return compile_function(operands, instruction, each(lambda a: COUNTS[name](a, bits)), [kind], "u32")
    if name == "brev":
        return compile_function(operands, instruction, each(lambda a: int(f"{a:0{bits}b}"[::-1], 2), DTYPES[kind]),
                                [kind], kind)
    if name == "prmt":
        return compile_function(operands, instruction, each(permute), ["u32"] * 3, "u32")
    if name == "bfi":
        def function(a, b, first, count):
            return insert_bits(a, b, first, count) & ((1 << bits) - 1)
        return compile_function(operands, instruction, each(function, DTYPES[kind]), [kind, kind, "u32", "u32"], kind)
    return None


def compile_shift(operands, instruction):
    kind = instruction.types[0].replace("b", "u")
    function = shift_left if instruction.name == "shl" else shift_right
    return compile_function(operands, instruction, function, [kind, "u32"], kind)


SPECIAL = {"mov": compile_move, "mul": compile_product, "div": compile_division, "rem": compile_division,
           "min": compile_extreme, "max": compile_extreme, "cvt": compile_conversion, "setp": compile_comparison,
           "selp": compile_selection, "shl": compile_shift, "shr": compile_shift,
           **dict.fromkeys(["popc", "clz", "bfind", "brev", "prmt", "bfi"], compile_bits)}


def compile_arithmetic(operands, instruction):
    """A function of a warp and its active lanes, or None if the instruction is not known here."""
    if instruction.name in SPECIAL:
        compiled = SPECIAL[instruction.name](operands, instruction)
        if compiled:
            return compiled
    name = ".".join([instruction.name, *instruction.modifiers[:-1]])
    if name not in SAME_TYPE:
        return None
    kind = instruction.types[-1]
    return compile_function(operands, instruction, SAME_TYPE[name], [kind] * 3, kind)
