"""llguidance over the rows of a workload, see common.py: one thread, its slices for JSON Schema."""

import llguidance
import llguidance.tiktoken
import numpy
import tiktoken

from common import Refused, overhead, serve


class Engine:
    def __init__(self, workload, vocabulary):
        self.end = vocabulary.end
        special = set(vocabulary.special)
        # It writes forced text with the tokenizer; in this vocabulary a token's id is its rank.
        encoding = tiktoken.Encoding(
            "qwen2", pat_str=vocabulary.pattern,
            mergeable_ranks={token: i for i, token in enumerate(vocabulary.tokens) if i not in special},
            special_tokens={vocabulary.tokens[i].decode(): i for i in special})
        self.tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(
            encoding, n_vocab=vocabulary.size, eos_token=self.end, slices=llguidance.LLTokenizer.json_slices())
        self.options = {} if workload == "jsonschemabench" else {
            "whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        self.bits = numpy.zeros((vocabulary.size + 31) // 32, dtype=numpy.int32)
        idle = self.matcher('{"type": "null"}')
        nothing = overhead(lambda: idle.rollback(0))
        self.overheads = {"build": 2 * nothing, "mask": nothing, "advance": nothing}

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

    def check(self):
        if self.matcher.is_error():
            raise Refused(self.matcher.get_error())


if __name__ == "__main__":
    serve(Engine)
