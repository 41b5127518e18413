"""Runs XGrammar over the rows of a workload, see contender.py: one thread, a new compiler for each schema or, if
warm, one for all.

Its package imports torch and transformers, which are gigabytes, for their types. Nothing here calls them, because
masks are in NumPy's memory, so empty modules replace both.
"""

import sys
import types

import numpy
import tvm_ffi

from contender import Refused, serve
from workloads import WORKLOADS


class Absent:
    def __init__(self, *_, **__):
        pass


for module in ("torch", "transformers"):
    sys.modules[module] = types.ModuleType(module)
    sys.modules[module].__getattr__ = lambda _: Absent

import xgrammar  # noqa: E402


class Engine:
    lazy = False

    def __init__(self, workload, vocabulary, warm):
        self.end, self.encoding = vocabulary.end, vocabulary.encoding
        self.info = xgrammar.TokenizerInfo(vocabulary.tokens, xgrammar.VocabType.RAW, vocab_size=vocabulary.size,
                                           stop_token_ids=[self.end])
        self.kept = xgrammar.GrammarCompiler(self.info, max_threads=1) if warm else None
        # As in JSON Schema, what is not forbidden is allowed.
        self.options = {"strict_mode": False, "any_whitespace": WORKLOADS[workload].free_spacing,
                        "any_order": workload in ("bfcl_any_order", "bfcl_default")}
        words = numpy.zeros((1, (vocabulary.size + 31) // 32), dtype=numpy.int32)
        self.bits, self.words = words[0], tvm_ffi.from_dlpack(words)
        idle = xgrammar.GrammarMatcher(self.compile('{"type": "null"}'))._handle
        self.idle = lambda: idle.rollback(0)

    def compile(self, schema):
        compiler = self.kept or xgrammar.GrammarCompiler(self.info, max_threads=1)
        return compiler.compile_json_schema(schema, **self.options)

    def build(self, schema):
        try:
            compiled = self.compile(schema)
        except Exception as error:
            raise Refused(error) from error
        return lambda: Matcher(xgrammar.GrammarMatcher(compiled)._handle, self)


class Matcher:
    def __init__(self, handle, engine):
        words = engine.words
        self.mask = lambda: handle.fill_next_token_bitmask(words, 0, False)
        self.advance = lambda token: handle.accept_token(token, False)
        # XGrammar has a jump-forward string; the tokenizer makes tokens from it.
        self.forced = lambda: engine.encoding.encode_ordinary(handle.find_jump_forward_string())

    def check(self):
        pass


if __name__ == "__main__":
    serve(Engine)
