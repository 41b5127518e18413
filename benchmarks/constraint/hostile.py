"""Schemas of up to a megabyte that cost much to build: what each of tooldecode, XGrammar and llguidance takes.

    python benchmarks/constraint/hostile.py PROGRAM [--limit 30] [--only PART] [--peers tooldecode xgrammar llguidance]

PROGRAM is `tooldecode`. Every schema is built in a process of its own, over a vocabulary of the 256 bytes, with one
thread and its first mask; it has `--limit` seconds and 8 GB. Times are seconds of the build and of the first mask, as
the contender measures them; memory is the peak of the process less that of one that builds `{"type": "null"}`.
"refused" is a contender's own error, "too late" and "died" are ours to tell. The peers' packages are those of
benchmarks/peers/run.sh; a contender that is not installed is left out, and said so.

The families are those of tests/properties/build_bounds.cpp, at the size of a small or a full megabyte.
"""
import argparse
import base64
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

NULL = {"type": "null"}


def names(prefix, count):
    return [f"{prefix}{i}" for i in range(count)]


def text(least=0):
    return {"type": "string", "minLength": least}


def requires(name):
    return {"required": [name]}


def nested(count, around):
    schema = {"type": "string"}
    for i in range(count):
        schema = around(schema, i)
    return schema


FAMILIES = {
    "14 oneOf of two required": {"type": "object", "allOf": [
        {"oneOf": [requires(f"a{i}"), requires(f"b{i}")]} for i in range(14)]},
    "14 anyOf of two required": {"type": "object", "allOf": [
        {"anyOf": [requires(f"a{i}"), requires(f"b{i}")]} for i in range(14)]},
    "14 if and then": {"type": "object", "allOf": [
        {"if": {"properties": {f"a{i}": {"const": "x"}}, **requires(f"a{i}")}, "then": requires(f"b{i}")}
        for i in range(14)]},
    "14 oneOf of two constants": {"type": "object", "allOf": [
        {"oneOf": [{"properties": {f"a{i}": {"const": word}}, **requires(f"a{i}")} for word in "xy"]}
        for i in range(14)]},
    "not properties x 3,000": {"not": {"properties": {name: text() for name in names("p", 3000)}}},
    "not prefixItems x 3,000": {"not": {"prefixItems": [{"const": i} for i in range(3000)]}},
    "required x 30,000": {"type": "object", "required": names("key", 30_000)},
    "required properties x 20,000": {"type": "object", "properties": {name: text() for name in names("key", 20_000)},
                                     "required": names("key", 20_000), "additionalProperties": False},
    "dependentRequired x 10,000": {"type": "object", "dependentRequired": {
        f"p{i}": [f"q{i}"] for i in range(10_000)}},
    "dependentRequired, a chain of 30,000": {"type": "object", "dependentRequired": {
        f"p{i + 1}": [f"p{i}"] for i in range(30_000)}},
    "uniqueItems of 2,000": {"type": "array", "uniqueItems": True, "items": {"enum": names("v", 2000)}},
    "enum of 80,000 strings": {"enum": names("v", 80_000)},
    "enum of 100,000 integers": {"enum": list(range(100_000))},
    "enum of 30,000 objects": {"enum": [{"a": i} for i in range(30_000)]},
    "const of 30,000 members": {"const": {f"k{i}": i for i in range(30_000)}},
    "const of 100,000 items": {"const": list(range(100_000))},
    "propertyNames of 30,000": {"type": "object", "propertyNames": {"enum": names("k", 30_000)}},
    "oneOf of 2,000 tagged objects": {"oneOf": [
        {"type": "object", "properties": {"kind": {"const": f"k{i}"}, f"p{i}": text()}, "required": ["kind"]}
        for i in range(2000)]},
    "anyOf of 3,000 objects": {"anyOf": [
        {"type": "object", "properties": {f"p{i}": text()}, "required": [f"p{i}"]} for i in range(3000)]},
    "allOf of 3,000 objects": {"allOf": [
        {"type": "object", "properties": {f"p{i}": text()}} for i in range(3000)]},
    "unevaluatedProperties over 1,000": {
        "allOf": [{"properties": {f"p{i}": text()}} for i in range(1000)], "unevaluatedProperties": False},
    "patternProperties x 40": {"type": "object", "patternProperties": {f"^k{i}": text(i) for i in range(40)}},
    "first items x 40,000": {"type": "array", "prefixItems": [text(i) for i in range(40_000)], "minItems": 40_000},
    "references in a chain of 10,000": {"$ref": "#/$defs/d0", "$defs": {
        **{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(10_000)}, "d10000": text()}},
    "references to 15,000": {"type": "object",
                             "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(15_000)},
                             "$defs": {f"d{i}": text(i) for i in range(15_000)}},
    "90 nested objects": nested(90, lambda inner, _: {"type": "object", "properties": {"a": inner}, **requires("a")}),
    "100 names of 5,000 bytes": {"type": "object", "properties": {"x" * 5000 + str(i): text() for i in range(100)}},
    "10,000 tools": [{"type": "function", "function": {"name": f"t{i}", "parameters": {
        "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}}}
        for i in range(10_000)],
}


def first_mask_of_xgrammar(schema):
    import types
    import numpy
    import tvm_ffi

    class Absent:
        def __init__(self, *_, **__):
            pass

    for module in ("torch", "transformers"):  # see benchmarks/peers/xgrammar_peer.py
        sys.modules[module] = types.ModuleType(module)
        sys.modules[module].__getattr__ = lambda _: Absent
    import xgrammar
    tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    words = tvm_ffi.from_dlpack(numpy.zeros((1, 9), dtype=numpy.int32))

    def build():
        compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        matcher = xgrammar.GrammarMatcher(compiler.compile_json_schema(
            schema, strict_mode=False, any_whitespace=True))._handle
        return lambda: matcher.fill_next_token_bitmask(words, 0, False)

    return build


def first_mask_of_llguidance(schema):
    import llguidance

    class Bytes:
        """The tokenizer that the package's LLTokenizer takes apart."""
        eos_token_id, bos_token_id, unk_token_id = 256, None, None
        tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
        special_token_ids = [256]

        def __call__(self, part):
            return list(part if isinstance(part, bytes) else part.encode())

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))

    def build():
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher.compute_bitmask

    return build


def run_peer(peer):
    """In a process of its own: the schema on stdin, the times on stdout."""
    build = {"xgrammar": first_mask_of_xgrammar, "llguidance": first_mask_of_llguidance}[peer](sys.stdin.read())
    start = time.perf_counter()
    try:
        mask = build()
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps({"refused": str(error).splitlines()[0][:100], "build": time.perf_counter() - start}))
        return
    built = time.perf_counter()
    mask()
    print(json.dumps({"build": built - start, "mask": time.perf_counter() - built}))


def vocabulary(folder):
    path = folder / "bytes.json"
    tokens = [base64.b64encode(bytes([byte])).decode() for byte in range(256)] + [base64.b64encode(b"<end>").decode()]
    path.write_text(json.dumps({"type": "bpe-bytelevel", "tokens_b64": tokens, "token_types": [1] * 256 + [3],
                                "merges": [], "eos_id": 256}), encoding="utf-8")
    return path


def measure(command, given, limit):
    """What a process printed, its peak memory in MB, and how it ended."""
    wrapped = [sys.executable, __file__, "--measured", *command]
    try:
        done = subprocess.run(wrapped, input=given, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None, None, "too late"
    lines = done.stdout.splitlines()
    peak = json.loads(lines[-1])["peak"] if lines else 0
    return lines[:-1], peak, "" if done.returncode == 0 or lines[:-1] else "died"


def run_measured(command):
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    done = subprocess.run(command, input=sys.stdin.read(), capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))


def contend(contender, schema, options, folder, idle):
    """(cells of a row, peak memory)"""
    calls = isinstance(schema, list)
    if contender == "tooldecode":
        rows = folder / "rows.jsonl"
        row = {"id": 0, "tools" if calls else "schema": schema, "text": "x"}
        rows.write_text(json.dumps(row, separators=(",", ":")) + "\n", encoding="utf-8")
        command = [options.program, "check", "--timing", "--vocabulary", str(vocabulary(folder)),
                   "--format", "hermes" if calls else "json-schema", str(rows)]
        given = ""
    elif calls:
        return "-", 0
    else:
        command, given = [sys.executable, __file__, "--peer", contender], json.dumps(schema)
    lines, peak, ended = measure(command, given, options.limit)
    if ended:
        return ended, peak
    answer = json.loads(lines[0])
    if contender == "tooldecode" and "build_us" in answer:
        answer = {"build": answer["build_us"] / 1e6, "mask": answer["first_mask_us"] / 1e6}
    memory = f"{max(peak - idle, 0):6.0f} MB"
    if "mask" not in answer:
        return f"refused{'':11}{memory}", peak
    return f"{answer['build']:8.3f} {answer['mask']:8.4f} {memory}", peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", nargs="+", default=["tooldecode", "xgrammar", "llguidance"])
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--measured", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return run_peer(options.peer)
    if options.measured:
        return run_measured(options.measured)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        idle = {}
        for contender in options.peers:
            cells, peak = contend(contender, NULL, options, folder, 0)
            if not cells[0].isspace() and not cells[0].isdigit():
                print(f"{contender} is left out: {cells}", file=sys.stderr)
            else:
                idle[contender] = peak
        print("seconds to build, seconds of the first mask, peak memory; of a schema of so many bytes")
        print(f"{'':38} {'bytes':>9}   " + "   ".join(f"{contender:<26}" for contender in idle))
        for name, schema in FAMILIES.items():
            if options.only not in name:
                continue
            cells = [contend(contender, schema, options, folder, idle[contender])[0] for contender in idle]
            size = len(json.dumps(schema, separators=(",", ":")))
            print(f"{name:38} {size:9}   " + "   ".join(f"{cell:<26}" for cell in cells).rstrip(), flush=True)
    return None


if __name__ == "__main__":
    main()
