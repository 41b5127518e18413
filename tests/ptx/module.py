"""Reads PTX text: kernels, their parameters, registers, labels and instructions."""

import re
from dataclasses import dataclass, field

SIZES = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4,
         "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}


@dataclass
class Instruction:
    line: int
    text: str
    name: str  # "ld"
    modifiers: list  # ["global", "v4", "u32"]
    operands: list  # of text
    predicate: str = ""  # register; "" if there is none
    is_negated: bool = False

    @property
    def types(self):
        return [m for m in self.modifiers if m in SIZES]

    @property
    def full_name(self):
        return ".".join([self.name, *self.modifiers])


@dataclass
class Kernel:
    name: str
    parameters: list = field(default_factory=list)  # (name, offset, size)
    max_threads: int = 1024
    registers: dict = field(default_factory=dict)  # name -> (bits: 1, 16, 32 or 64, index)
    counts: dict = field(default_factory=dict)  # bits -> number of registers
    labels: dict = field(default_factory=dict)  # name -> index of an instruction
    code: list = field(default_factory=list)

    def declare(self, kind, name, line):
        bits = 1 if kind == "pred" else 8 * SIZES[kind]
        known = self.registers.get(name)
        if known is None:
            index = self.counts.get(bits, 0)
            self.registers[name] = (bits, index)
            self.counts[bits] = index + 1
        elif known[0] != bits:
            raise SyntaxError(f"line {line}: {name} is declared with two sizes")


def split_operands(text):
    """Splits at the commas that are in no brackets."""
    parts, depth, first = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append(text[first:at].strip())
            first = at + 1
    last = text[first:].strip()
    return parts + [last] if last else parts


def split_list(operand):
    """The parts of `{a, b}`, or of one operand."""
    return [part.strip() for part in operand.strip("{} ").split(",")]


def parse_parameters(kernel, text):
    offset = 0
    for declared in split_operands(text):
        words = declared.split()
        sized = re.search(r"\[(\d+)\]$", declared)
        if sized:
            size = int(sized[1])
            alignment = int(words[words.index(".align") + 1])
        else:
            size = alignment = SIZES[words[1][1:]]
        offset = -(-offset // alignment) * alignment
        kernel.parameters.append((re.sub(r"\[.*", "", words[-1]), offset, size))
        offset += size


def parse_statement(kernel, text, line):
    text = text.strip()
    label = re.match(r"([\w$]+):\s*", text)
    if label:
        kernel.labels[label[1]] = len(kernel.code)
        return parse_statement(kernel, text[label.end():], line)
    if not text or text.startswith((".pragma", ".loc")):
        return None
    register = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text)
    if register:
        for name in split_operands(register[2]):
            counted = re.match(r"(.*)<(\d+)>$", name)
            for one in ([f"{counted[1]}{i}" for i in range(int(counted[2]))] if counted else [name]):
                kernel.declare(register[1], one, line)
        return None
    match = re.match(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)$", text, re.S)
    if not match:
        raise SyntaxError(f"line {line}: {text}")
    name, *modifiers = match[3].split(".")
    kernel.code.append(Instruction(line, " ".join(text.split()), name, modifiers, split_operands(match[4]),
                                   match[2] or "", match[1] == "!"))
    return None


def parse_body(kernel, text, line):
    """Statements end with `;`, labels with `:`; scopes have braces that are not those of a list."""
    statement, depth, started = "", 0, line
    for at, letter in enumerate(text):
        line += letter == "\n"
        opens_list = letter == "{" and (depth > 0 or statement.strip())
        if not statement.strip():
            started = line
        if opens_list or (letter == "}" and depth > 0):
            depth += 1 if letter == "{" else -1
            statement += letter
        elif letter in "{}":
            continue
        elif letter == ";":
            parse_statement(kernel, statement, started)
            statement = ""
        elif letter == ":" and text[at + 1] == "\n":
            kernel.labels[statement.strip()] = len(kernel.code)
            statement = ""
        else:
            statement += letter


def parse(text):
    """The kernels of a PTX text by their mangled names."""
    text = re.sub(r"//[^\n]*", "", text)
    kernels = {}
    for match in re.finditer(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)([^{]*)\{", text):
        kernel = Kernel(match[1])
        parse_parameters(kernel, match[2])
        threads = re.search(r"\.maxntid\s+(\d+)", match[3])
        if threads:
            kernel.max_threads = int(threads[1])
        depth, end = 1, match.end()
        while depth > 0:
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        parse_body(kernel, text[match.end():end - 1], text.count("\n", 0, match.end()) + 1)
        kernels[kernel.name] = kernel
    return kernels


def shared_symbols(text):
    """The names of shared memory whose size the launch says."""
    return re.findall(r"\.extern\s+\.shared\s[^;]*?([\w$]+)\[\]", text)


def constants(text):
    """The numbers that a source says by variables of 64 bits."""
    found = re.findall(r"\.global\s+\.align\s+8\s+\.u64\s+(\w+)\s*=\s*(\d+);", text)
    return {name: int(number) for name, number in found}
