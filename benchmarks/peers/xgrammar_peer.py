"""XGrammar over the rows of a workload, see common.py: a new compiler for each schema, one thread.

Its package imports torch and transformers, which weigh gigabytes, for their types; nothing of them is called here:
masks are filled into NumPy's memory. Empty modules stand in for both.
"""

import sys
import types

import numpy
import tvm_ffi

from common import Refused, overhead, serve


class Absent:
    def __init__(self, *_, **__):
        pass


for module in ("torch", "transformers"):
    sys.modules[module] = types.ModuleType(module)
    sys.modules[module].__getattr__ = lambda _: Absent

import xgrammar  # noqa: E402


class Engine:
    def __init__(self, workload, vocabulary):
        self.end = vocabulary.end
        self.info = xgrammar.TokenizerInfo(vocabulary.tokens, xgrammar.VocabType.RAW, vocab_size=vocabulary.size,
                                           stop_token_ids=[self.end])
        # What is not said to be forbidden is allowed, as JSON Schema has it.
        self.options = {"strict_mode": False, "any_whitespace": workload == "jsonschemabench",
                        "any_order": workload == "bfcl_any_order"}
        words = numpy.zeros((1, (vocabulary.size + 31) // 32), dtype=numpy.int32)
        self.bits, self.words = words[0], tvm_ffi.from_dlpack(words)
        idle = xgrammar.GrammarMatcher(self.compile('{"type": "null"}'))._handle
        nothing = overhead(lambda: idle.rollback(0))
        self.overheads = {"build": 2 * nothing, "mask": nothing, "advance": nothing}

    def compile(self, schema):
        return xgrammar.GrammarCompiler(self.info, max_threads=1).compile_json_schema(schema, **self.options)

    def build(self, schema):
        try:
            compiled = self.compile(schema)
        except Exception as error:
            raise Refused(error) from error
        return lambda: Matcher(xgrammar.GrammarMatcher(compiled)._handle, self.words)


class Matcher:
    def __init__(self, handle, words):
        self.mask = lambda: handle.fill_next_token_bitmask(words, 0, False)
        self.advance = lambda token: handle.accept_token(token, False)

    def check(self):
        pass


if __name__ == "__main__":
    serve(Engine)
