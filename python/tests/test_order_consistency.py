"""Votes over orders of parameters, through models that Python runs."""
import itertools
import json

import pytest

import tooldecode as td

KEYS = ["city", "days", "people"]
TOOLS = [{"name": "book", "parameters": {
    "type": "object", "required": KEYS,
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 0, "maximum": 99},
                   "people": {"type": "integer", "minimum": 0, "maximum": 99}}}}]


class Scripted:
    """Writes values that a rule gives for a key and the keys before it. A cache is the list of its tokens."""

    def __init__(self, vocabulary, rule):
        self.vocabulary, self.rule = vocabulary, rule
        self.passes, self.widest = 0, 0

    def make_cache(self):
        return []

    def fork(self, cache):
        return list(cache)

    def truncate(self, cache, length):
        assert 0 <= length <= len(cache)
        del cache[length:]

    def scores(self, tokens):
        text = self.vocabulary.decode(tokens).decode("utf-8", "replace")
        written = sorted((text.rindex(f'"{key}": '), key) for key in KEYS if f'"{key}": ' in text)
        wanted = "}"
        if written:
            at, key = written[-1]
            value = json.dumps(self.rule(key, tuple(known for _, known in written[:-1])))
            so_far = text[at + len(f'"{key}": '):]
            if value.startswith(so_far) and value != so_far:
                wanted = value[len(so_far)]
            else:
                wanted = "," if len(written) < len(KEYS) else "}"
        return [8.0 if token == ord(wanted) else 0.001 * (token % 7) for token in range(self.vocabulary.size)]

    def forward(self, caches, tokens):
        assert len({id(cache) for cache in caches}) == len(caches) == len(tokens)
        self.passes += 1
        self.widest = max(self.widest, len(caches))
        rows = []
        for cache, sequence in zip(caches, tokens):
            assert len(sequence) >= 1
            cache += sequence
            rows.append(self.scores(cache))
        flat = memoryview(bytearray(4 * len(rows) * self.vocabulary.size)).cast("f", (len(rows), self.vocabulary.size))
        for i, row in enumerate(rows):
            for j, score in enumerate(row):
                flat[i, j] = score
        return flat


@pytest.fixture(scope="module")
def vocabulary():
    return td.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256])


@pytest.fixture(scope="module")
def calls(vocabulary):
    return td.tool_calls(vocabulary, TOOLS, "hermes", choice="required", max_calls=1)


def rule(key, before):
    """People are 7 where they are asked first, and 3 where anything stands before them."""
    return {"city": "Oslo", "days": 2, "people": 3 if before else 7}[key]


def test_the_default_is_six_orders(vocabulary):
    keys = [*KEYS, "nights"]
    tools = [{"name": "book", "parameters": {"type": "object", "properties": {key: {"type": "boolean"} for key in keys},
                                             "required": keys}}]
    calls = td.tool_calls(vocabulary, tools, "hermes", choice="required", max_calls=1)
    model = Scripted(vocabulary, lambda key, before: True)
    [vote] = td.order_consistency(calls, model, [ord("?")], max_tokens=300, adaptive=False).calls
    assert vote.orders == vote.sampled == 6  # of 24


@pytest.mark.parametrize("max_orders", [1, 2, 3, 6, 12])
def test_votes_are_those_of_the_orders_one_by_one(vocabulary, calls, max_orders):
    model = Scripted(vocabulary, rule)
    answer = td.order_consistency(calls, model, [ord("?")], max_orders=max_orders, max_tokens=300, adaptive=False)
    assert answer.is_whole and answer.passes == model.passes and model.widest == min(max_orders, 6)
    [vote] = answer.calls
    assert vote.orders == vote.sampled == min(max_orders, 6) and vote.is_written
    people = next(one for one in vote.parameters if one.key == "people")
    # The referee counts by hand: all six orders, of which two begin with people.
    expected = [rule("people", order[: order.index("people")]) for order in itertools.permutations(KEYS)]
    counts = {choice.value: choice.votes for choice in people.choices}
    assert sum(counts.values()) == vote.sampled and all(counts[value] <= expected.count(value) for value in counts)
    if max_orders >= 6:
        assert counts == {value: expected.count(value) for value in set(expected)}
        assert people.agreement == pytest.approx(4 / 6)
    winner = max(counts, key=lambda value: counts[value])
    assert counts[vote.call.arguments["people"]] == counts[winner]
    text = vocabulary.decode(answer.tokens).decode()
    assert calls.parse(text) == [vote.call] and calls.explain_refusal(text) is None


def test_stopping_early_changes_no_value(vocabulary, calls):
    def run(adaptive):
        return td.order_consistency(calls, Scripted(vocabulary, lambda key, before: {"city": "Rome", "days": 5, "people": 4}[key]),
                                    [ord("?")], max_tokens=300, adaptive=adaptive)

    early, whole = run(True), run(False)
    assert early.tokens == whole.tokens and early.calls[0].call == whole.calls[0].call
    assert early.calls[0].sampled < whole.calls[0].sampled and early.sampled_tokens < whole.sampled_tokens


def test_seeds_repeat_answers(vocabulary, calls):
    def run(seed):
        return td.order_consistency(calls, Scripted(vocabulary, rule), [ord("?")], max_tokens=300, temperature=3.0, seed=seed)

    answers = [run(seed) for seed in range(4)]
    assert answers[1].tokens == run(1).tokens
    assert len({tuple(answer.tokens) for answer in answers}) > 1
    for answer in answers:
        assert calls.explain_refusal(vocabulary.decode(answer.tokens)) is None


def test_bad_input_is_an_error_with_its_place(vocabulary, calls):
    model = Scripted(vocabulary, rule)
    for options, where in [({"max_orders": 0}, "max_orders"), ({"max_tokens": 3}, "max_tokens"), ({"temperature": -1.0}, "temperature")]:
        with pytest.raises(td.Error, match=where):
            td.order_consistency(calls, model, [63], **options)
    with pytest.raises(td.Error, match="prompt") as error:
        td.order_consistency(calls, model, [], max_tokens=300)
    assert error.value.code == "invalid_option"
    with pytest.raises(td.Error) as error:
        td.order_consistency(calls, model, [-1])
    assert (error.value.code, error.value.where) == ("unknown_token", "prompt")

    class Wrong(Scripted):
        def __init__(self, vocabulary, result):
            super().__init__(vocabulary, rule)
            self.result = result

        def forward(self, caches, tokens):
            if isinstance(self.result, Exception):
                raise self.result
            return self.result

    size = vocabulary.size
    floats = memoryview(bytearray(4 * size)).cast("f")
    for result, code, where in [(floats, "shape_mismatch", "logits/shape"), (b"12345678", "invalid_option", "logits/dtype"),
                                (None, "unknown_format", "logits"),
                                (memoryview(bytearray(8 * size)).cast("d", (1, size)), "invalid_option", "logits/dtype")]:
        with pytest.raises(td.Error) as error:
            td.order_consistency(calls, Wrong(vocabulary, result), [63], max_tokens=300)
        assert (error.value.code, error.value.where) == (code, where)
    with pytest.raises(ZeroDivisionError):
        td.order_consistency(calls, Wrong(vocabulary, ZeroDivisionError()), [63], max_tokens=300)


def test_a_model_of_transformers_keeps_its_caches(tiny):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tooldecode import transformers as backend

    torch.manual_seed(5)
    config = transformers.LlamaConfig(vocab_size=8192, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                      num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=1024)
    model = transformers.LlamaForCausalLM(config).eval()
    vocabulary = td.Vocabulary.load(tiny)
    calls = td.tool_calls(vocabulary, TOOLS, "hermes", choice="required", max_calls=1)

    class Again:
        """Reads everything again for each pass."""

        def make_cache(self):
            return []

        def fork(self, cache):
            return list(cache)

        def truncate(self, cache, length):
            del cache[length:]

        def forward(self, caches, tokens):
            rows = []
            for cache, sequence in zip(caches, tokens):
                cache += sequence
                with torch.inference_mode():
                    rows.append(model(input_ids=torch.tensor([cache])).logits[0, -1])
            return torch.stack(rows)

    prompt = vocabulary.encode("Book a table in Oslo for 3 people.")
    for seed in range(3):
        options = {"max_tokens": 100, "temperature": 1.0, "seed": seed, "adaptive": seed != 0}
        kept = td.order_consistency(calls, backend.CausalModel(model), prompt, **options)
        again = td.order_consistency(calls, Again(), prompt, **options)
        assert (kept.tokens, kept.passes, kept.sampled_tokens) == (again.tokens, again.passes, again.sampled_tokens)
        assert len(kept.calls) == 1 and kept.calls[0].sampled > 1
        for one, other in zip(kept.calls[0].parameters, again.calls[0].parameters):  # but for rounding
            assert [choice[:3] for choice in one.choices] == [choice[:3] for choice in other.choices]
