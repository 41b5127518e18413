"""The shared library of the C interface, as another language meets it: what it exports, and masks by ctypes.

python3 c_interface.py <shared library> [--nm=<program>]
"""
import ctypes
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).parents[2] / "include/tooldecode/adapters/tooldecode.h"


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("end_tokens", ctypes.POINTER(ctypes.c_int32)),
                ("end_token_count", ctypes.c_size_t), ("size", ctypes.c_size_t), ("memory_bytes", ctypes.c_size_t)]


class Limits(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class Specification(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("kind", ctypes.c_int32), ("text", Text),
                ("choices", ctypes.POINTER(Text)), ("choice_count", ctypes.c_size_t), ("root", ctypes.c_char_p),
                ("whitespace", ctypes.c_int32), ("documented_order", ctypes.c_int32), ("format", ctypes.c_char_p),
                ("calls", ctypes.c_int32), ("tool_name", ctypes.c_char_p), ("max_calls", ctypes.c_uint32),
                ("reasoning", ctypes.c_int32), ("reasoning_begin", ctypes.c_char_p),
                ("reasoning_end", ctypes.c_char_p), ("text_schema", Text),
                ("enforcement", ctypes.c_int32), ("limits", Limits)]


class State(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 2)]


def check_exports(library: str, nm: str) -> None:
    declared = set(re.findall(r"^TOOLDECODE_C_API .*?\b(td_\w+)\(", HEADER.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(declared) > 30, declared
    try:
        lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True,
                               text=True).stdout.splitlines()
    except FileNotFoundError:
        print(f"SKIPPED: {nm} is not installed")
        sys.exit(77)
    exported = {line.split()[-1] for line in lines}
    assert exported == declared, (sorted(exported - declared)[:10], sorted(declared - exported))


def check_masks(library: str) -> None:
    td = ctypes.CDLL(library)
    td.td_error_text.restype = td.td_error_where.restype = td.td_version.restype = ctypes.c_char_p
    assert re.fullmatch(rb"\d+\.\d+\.\d+", td.td_version())
    tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
    ends, total = [], 0
    for token in tokens:
        total += len(token)
        ends.append(total)
    options = Options(ctypes.sizeof(Options), (ctypes.c_int32 * 1)(256), 1)
    vocabulary, error = ctypes.c_void_p(), ctypes.c_void_p()
    assert td.td_vocabulary_make(b"".join(tokens), (ctypes.c_uint64 * 257)(*ends), bytes([1] * 256 + [3]),
                                 ctypes.c_size_t(257), ctypes.byref(options), ctypes.byref(vocabulary),
                                 ctypes.byref(error)) == 0

    def make(pattern: bytes) -> tuple[int, ctypes.c_void_p]:
        specification = Specification(struct_size=ctypes.sizeof(Specification), kind=3,
                                      text=Text(pattern, len(pattern)))
        constraint = ctypes.c_void_p()
        code = td.td_constraint_make(vocabulary, ctypes.byref(specification), ctypes.byref(constraint),
                                     ctypes.byref(error))
        return code, constraint

    code, constraint = make(b"(")
    assert code == 208 and not constraint and td.td_error_code(error) == 208
    assert td.td_error_where(error) == b"byte 0", td.td_error_where(error)
    assert td.td_error_text(error).startswith(b"byte 0: ")
    td.td_error_free(error)

    code, constraint = make(b"[ab]c")
    assert code == 0 and constraint and not error
    state, words = State(), (ctypes.c_uint32 * 9)()

    def allowed() -> list[int]:
        assert td.td_fill_mask(constraint, ctypes.byref(state), words, ctypes.c_size_t(9), None) == 0
        return [token for token in range(9 * 32) if words[token // 32] >> token % 32 & 1]

    assert td.td_initial(constraint, ctypes.byref(state), None) == 0
    assert allowed() == [ord("a"), ord("b")]
    assert td.td_advance(constraint, ctypes.byref(state), ord("c"), ctypes.byref(state), None) == 1
    for token, then in [(ord("b"), [ord("c")]), (ord("c"), [256])]:
        assert td.td_advance(constraint, ctypes.byref(state), token, ctypes.byref(state), None) == 0
        assert allowed() == then
    td.td_constraint_free(constraint)
    td.td_vocabulary_free(vocabulary)


def main() -> None:
    library = sys.argv[1]
    nm = next((argument[5:] for argument in sys.argv[2:] if argument.startswith("--nm=")), "") or "nm"
    check_masks(library)
    check_exports(library, nm)


main()
