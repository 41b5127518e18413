"""Runs llguidance over the rows of a workload, see contender.py: one thread, its slices for JSON Schema."""

import llguidance
import llguidance.tiktoken
import numpy

from contender import Refused, serve
from workloads import WORKLOADS


class Engine:
    lazy = True

    def __init__(self, workload, vocabulary, _warm):
        self.end = vocabulary.end
        self.tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(
            vocabulary.encoding, n_vocab=vocabulary.size, eos_token=self.end,
            slices=llguidance.LLTokenizer.json_slices())
        self.options = {} if WORKLOADS[workload].free_spacing else {
            "whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        self.bits = numpy.zeros((vocabulary.size + 31) // 32, dtype=numpy.int32)
        idle = self.matcher('{"type": "null"}')
        self.idle = lambda: idle.rollback(0)

    def matcher(self, schema):
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=self.options)
        return llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)

    def build(self, schema):
        try:
            first = self.matcher(schema)
        except ValueError as error:
            raise Refused(error) from error
        used = []

        def make():
            if used:
                first.reset()
            used.append(True)
            return Matcher(first, self.bits)

        return make


class Matcher:
    def __init__(self, matcher, bits):
        self.matcher, at, size = matcher, bits.ctypes.data, bits.nbytes
        self.mask = lambda: matcher.unsafe_compute_mask_ptr(at, size)
        self.advance = matcher.consume_token
        self.forced = matcher.compute_ff_tokens

    def check(self):
        if self.matcher.is_error():
            raise Refused(self.matcher.get_error())


if __name__ == "__main__":
    serve(Engine)
