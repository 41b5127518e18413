"""Measures tooldecode, XGrammar and llguidance on hostile schemas and grammars.

The schemas have up to a megabyte and are slow to build; the grammars have a few bytes and slow masks.

    python benchmarks/constraint/hostile.py PROGRAM [--limit 30] [--only PART] [--peers tooldecode xgrammar llguidance]
                                            [--json OUT]

PROGRAM is `tooldecode`. A separate process with one thread builds each constraint and its first mask, within
`--limit` seconds and 8 GB. Schemas use a vocabulary of the 256 bytes; grammars use Qwen2's 151,936 tokens from the
directory in TOOLDECODE_SHARED_DATA (../shared/data) and are skipped with a message if it is missing. The contender
measures the seconds of the build and of the first mask. Memory is the process's peak as the system reports it, minus
that of a process that builds next to nothing. "refused" is the contender's error; this script reports "too late" and
"died". The peers' packages are those of benchmarks/peers/run.sh; a contender that is not installed is skipped with a
message.

The families come from tests/properties/build_bounds.cpp, at sizes of up to a megabyte, and from
tests/mask/joint_walk.cpp.
"""
import argparse
import base64
import gzip
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_record  # noqa: E402

END = b"<the end of the text>"
NOTHING = {"schema": {"type": "null"}}
QWEN2 = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", pathlib.Path(__file__).resolve().parents[2] /
                                    "../shared/data")) / "vocab/qwen2.json.gz"


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


def levels(count, bounds):
    rules = "\n".join(f"l{i + 1} ::= l{i}{bounds}" for i in range(count))
    return f"root ::= l{count}\nl0 ::= [a-z]+\n{rules}"


# GBNF: repetitions whose items can match a text in many ways.
GRAMMARS = {
    "([a-z]+){0,64}": "root ::= item{0,64}\nitem ::= [a-z]+",
    '([a-z]+ " "?){1,99}': 'root ::= item{1,99}\nitem ::= word " "?\nword ::= [a-z]+',
    "(ws word? ws){0,50}": "root ::= item{0,50}\nitem ::= ws word? ws\nws ::= [ \\t]*\nword ::= [a-z]+",
    "([^x]*){0,64}": "root ::= item{0,64}\nitem ::= [^x]*",
    "([a-z]{2,60}){50,99}": "root ::= item{50,99}\nitem ::= [a-z]{2,60}",
    "six levels of {0,99}": levels(6, "{0,99}"),
    "six levels of {50,99}": levels(6, "{50,99}"),
}


def first_mask_of_xgrammar(given, tokens):
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
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens),
                                  stop_token_ids=[tokens.index(END)])
    words = tvm_ffi.from_dlpack(numpy.zeros((1, (len(tokens) + 31) // 32), dtype=numpy.int32))

    def build():
        compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        compiled = (compiler.compile_grammar(given["grammar"]) if "grammar" in given else
                    compiler.compile_json_schema(json.dumps(given["schema"]), strict_mode=False, any_whitespace=True))
        matcher = xgrammar.GrammarMatcher(compiled)._handle
        return lambda: matcher.fill_next_token_bitmask(words, 0, False)

    return build


def first_mask_of_llguidance(given, tokens):
    import llguidance
    from llguidance.gbnf_to_lark import any_to_lark
    single = {token: i for i, token in reversed(list(enumerate(tokens))) if len(token) == 1}

    class Bytes:
        """A tokenizer of bytes in the form that LLTokenizer reads."""
        eos_token_id, bos_token_id, unk_token_id = tokens.index(END), None, None
        special_token_ids = [tokens.index(END)]

        def __init__(self):
            self.tokens = tokens

        def __call__(self, part):
            return [single[bytes([byte])] for byte in (part if isinstance(part, bytes) else part.encode())]

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))

    def build():
        if "grammar" in given:
            grammar = llguidance.LLMatcher.grammar_from_lark(any_to_lark(given["grammar"]))
        else:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(given["schema"]))
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher.compute_bitmask

    return build


def peak_bytes():
    """The peak memory of this process. getrusage would include the time before exec, when the process was a copy of its
    parent."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def run_peer(peer):
    """Runs in a separate process: reads what to build from stdin, prints times and peak."""
    given = json.load(sys.stdin)
    path = pathlib.Path(given["vocabulary"])
    compact = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    tokens = [base64.b64decode(token) for token in compact["tokens_b64"]]
    tokens[compact["eos_id"]] = END
    build = {"xgrammar": first_mask_of_xgrammar, "llguidance": first_mask_of_llguidance}[peer](given, tokens)
    start = time.perf_counter()
    try:
        mask = build()
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps({"refused": str(error).splitlines()[0][:100], "build": time.perf_counter() - start,
                          "peak_bytes": peak_bytes()}))
        return
    built = time.perf_counter()
    mask()
    print(json.dumps({"build": built - start, "mask": time.perf_counter() - built, "peak_bytes": peak_bytes()}))


def vocabulary(folder):
    path = folder / "bytes.json"
    tokens = [base64.b64encode(bytes([byte])).decode() for byte in range(256)] + [base64.b64encode(b"<end>").decode()]
    path.write_text(json.dumps({"type": "bpe-bytelevel", "tokens_b64": tokens, "token_types": [1] * 256 + [3],
                                "merges": [], "eos_id": 256}), encoding="utf-8")
    return path


def measure(command, given, limit):
    """The output of a process, and how it ended."""
    def less_memory():
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=limit, check=False,
                              preexec_fn=less_memory)
    except subprocess.TimeoutExpired:
        return None, "too late"
    lines = done.stdout.splitlines()
    return lines, "" if lines else "died"


def contend(contender, given, options, folder, idle):
    """A contender's seconds for build and mask and its peak in MB, or why it has none."""
    path = QWEN2 if "qwen2" in given else vocabulary(folder)
    if contender == "tooldecode":
        kind = "schema" if "schema" in given else "tools" if "tools" in given else "spec"
        rows = folder / "rows.jsonl"
        row = {"id": 0, kind: given[{"spec": "grammar"}.get(kind, kind)], "text": "x"}
        rows.write_text(json.dumps(row, separators=(",", ":")) + "\n", encoding="utf-8")
        command = [options.program, "check", "--timing", "--vocabulary", str(path), "--format",
                   {"schema": "json-schema", "tools": "hermes", "spec": "ebnf"}[kind], str(rows)]
        text = ""
    elif "tools" in given:
        return {"answer": "-"}
    else:
        command, text = [sys.executable, __file__, "--peer", contender], json.dumps({**given, "vocabulary": str(path)})
    lines, ended = measure(command, text, options.limit)
    if ended:
        return {"answer": ended}
    answer = json.loads(lines[0])
    if contender == "tooldecode" and "build_us" in answer:
        answer |= {"build": answer["build_us"] / 1e6, "mask": answer["first_mask_us"] / 1e6}
    peak = answer["peak_bytes"] / 2**20
    taken = {"answer": "built" if "mask" in answer else "refused", "peak_mb": round(peak, 1),
             "memory_mb": round(max(peak - idle, 0), 1)}
    if "mask" in answer:
        taken |= {"build_s": round(answer["build"], 6), "mask_s": round(answer["mask"], 6)}
    return taken


def cell(taken):
    if taken["answer"] == "built":
        return f"{taken['build_s']:8.3f} {taken['mask_s']:8.4f} {taken['memory_mb']:6.0f} MB"
    memory = f"{taken['memory_mb']:6.0f} MB" if "memory_mb" in taken else ""
    return f"{taken['answer']:17} {memory}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", nargs="+", default=["tooldecode", "xgrammar", "llguidance"])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return run_peer(options.peer)
    given = {name: {"tools" if isinstance(schema, list) else "schema": schema} for name, schema in FAMILIES.items()}
    if QWEN2.exists():
        given |= {name: {"grammar": text, "qwen2": True} for name, text in GRAMMARS.items()}
    else:
        print(f"SKIPPED: grammars need {QWEN2}", file=sys.stderr)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        idle = {}
        for contender in options.peers:
            taken = contend(contender, NOTHING, options, folder, 0)
            if taken["answer"] != "built":
                print(f"{contender} is left out: {taken['answer']}", file=sys.stderr)
                continue
            idle[contender] = {"bytes": taken["peak_mb"]}
            if QWEN2.exists():
                with_qwen2 = contend(contender, {**NOTHING, "qwen2": True}, options, folder, 0)
                idle[contender]["qwen2"] = with_qwen2.get("peak_mb", 0)
        print("seconds to build, seconds of the first mask, peak memory; of so many bytes")
        print(f"{'':38} {'bytes':>9}   " + "   ".join(f"{contender:<27}" for contender in idle))
        for name, one in given.items():
            if options.only not in name:
                continue
            over = "qwen2" if "qwen2" in one else "bytes"
            taken = {contender: contend(contender, one, options, folder, idle[contender][over]) for contender in idle}
            what = next(iter(one.values()))
            size = len(what if isinstance(what, str) else json.dumps(what, separators=(",", ":")))
            cells = "   ".join(f"{cell(taken[peer]):<27}" for peer in idle)
            print(f"{name:38} {size:9}   {cells}".rstrip(), flush=True)
            results[name] = {"bytes": size, **taken}
    if options.json:
        options.json.write_text(json.dumps({
            "made_by": run_record.run_record([options.program, "--made-by"],
                                             [peer for peer in idle if peer != "tooldecode"], ["python3", *sys.argv]),
            "limit_s": options.limit, "families": results}, indent=1) + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
