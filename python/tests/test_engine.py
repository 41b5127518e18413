"""What the backends share, without any engine: answers that go on and back, ends of a request's own, vocabularies."""
import copy
import random
import types

import numpy as np
import pytest

import tooldecode as td
from tooldecode import _engine as engine

SCHEMA = """{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yes"]}}, "required": ["a"],
             "additionalProperties": false}"""


def mask_of(answer: engine.Answer) -> np.ndarray:
    words = np.full((1, answer.constraint.mask_words), -1, np.int32)
    answer.fill(words, 0)
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def walk(answer: engine.Answer, dice: random.Random) -> list[int]:
    """Tokens until the end."""
    tokens = []
    while not answer.is_terminated:
        assert len(tokens) < 2000
        allowed = mask_of(answer)
        ends = [token for token in allowed if int(token) in answer._ends]
        tokens.append(int(dice.choice(ends or allowed)))
        assert answer.accept(tokens[-1])
    return tokens


@pytest.mark.parametrize("ends", [None, [65], [65, 0], "both"])
def test_answer(vocabulary, end, ends):
    """Against states kept one by one: accept, rollback, drafts, and which ends are allowed."""
    ends = [end, 66] if ends == "both" else ends
    own = set(ends or [end])
    lark = engine.build(vocabulary, "grammar", 'start: %json {"type": "object"}', 0)
    assert lark.explain_refusal("{ }") and not lark.explain_refusal("{}")
    constraint = engine.build(vocabulary, "json", SCHEMA, 3)
    for seed in range(20):
        dice = random.Random(seed)
        answer = engine.Answer(constraint.renew(), vocabulary, ends)
        kept = [constraint.initial()]
        for _ in range(200):
            may_end = constraint.is_accepting(kept[-1])
            plain = set(range(vocabulary.size)) - own - {end}
            expected = {t for t in plain if constraint.advance(kept[-1], t) is not None} if not answer.is_terminated else set()
            expected |= own if may_end else set()
            assert set(mask_of(answer).tolist()) == expected, seed
            draft = [dice.choice(sorted(expected))] + [dice.randrange(-1, vocabulary.size + 40) for _ in range(3)]
            count = answer.allowed(draft)
            assert count <= 1 if draft[0] in own else count >= (not answer.is_terminated)
            if count < len(draft) and not answer.is_terminated and not (count and draft[count - 1] in own):
                for token in draft[:count]:
                    assert answer.accept(token)
                assert not answer.accept(draft[count])
                answer.rollback(count)
            if dice.random() < 0.2 and len(kept) > 1:
                back = dice.randrange(1, len(kept))
                answer.rollback(back)
                del kept[-back:]
            else:
                token = draft[0]
                assert answer.accept(token)
                if not constraint.is_finished(kept[-1]):
                    kept.append(constraint.advance(kept[-1], end if token in own else token))
                else:
                    kept.append(kept[-1])
            assert answer.state == kept[-1] and answer.is_terminated == constraint.is_finished(kept[-1]), seed
        answer.reset()
        assert answer.state == constraint.initial() and not answer.is_terminated
        tokens = walk(answer, dice)
        assert tokens[-1] in own and constraint.advance_tokens(constraint.initial(), [*tokens[:-1], end]) is not None
        assert answer.allowed([tokens[-1]]) == 0 and answer.accept(1)  # behind the end
        answer.rollback(2)
        assert not answer.is_terminated and answer.allowed([tokens[-1], tokens[-1]]) == 1


def test_refusals(vocabulary):
    constraint = engine.build(vocabulary, "regex", "a*", 0)
    answer = engine.Answer(constraint, vocabulary)
    for count in (1, 10**9):
        with pytest.raises(td.Error, match="kept"):
            answer.rollback(count)
    answer.rollback(0)
    for _ in range(5000):
        assert answer.accept(97)
    answer.rollback(engine.Answer.most_kept)
    with pytest.raises(td.Error):
        answer.rollback(5000)
    for ends in ([-1], [vocabulary.size]):
        with pytest.raises(td.Error, match="below"):
            engine.Answer(constraint, vocabulary, ends)
    for kind, text in (("json", "{"), ("json", '{"type": 3}'), ("regex", "("), ("grammar", "root ::= \""), ("choice", "3"),
                       ("choice", "{"), ("choice", "[1]"), ("structural_tag", "{}"), ("structural_tag", "\x00")):
        with pytest.raises(ValueError):
            engine.build(vocabulary, kind, text, 0)
    with pytest.raises(td.Error, match="fast tokenizer"):
        engine.vocabulary_of(types.SimpleNamespace(), 10, [1])


def test_vocabularies():
    """Those around mistral-common and tiktoken, by what they offer."""
    tokens = [b"<s>", b"</s>", *(bytes([i]) for i in range(256)), b"\xe2\x82", b"ab"]
    inner = types.SimpleNamespace(
        n_words=len(tokens), is_special=lambda i: i < 2, id_to_piece=lambda i: tokens[i].decode("utf-8", "replace"),
        id_to_byte_piece=lambda i, policy: tokens[i])
    made = engine.vocabulary_of(types.SimpleNamespace(tokenizer=inner), 300, {1})
    assert (made.size, made.end_tokens) == (300, [1]) and made.decode([259, 258]) == b"ab\xe2\x82"
    encoding = types.SimpleNamespace(_mergeable_ranks={token: i for i, token in enumerate(tokens[2:])},
                                     _special_tokens={"<end>": 260}, _pat_str=r"\s+|\S+", n_vocab=261)
    made = engine.vocabulary_of(types.SimpleNamespace(model=encoding), 0, {260})
    assert (made.size, made.end_tokens) == (261, [260]) and made.encode("ab") == [257]


class Failing:
    """A constraint that raises an error for what is named."""

    def __init__(self, constraint, names, error):
        self.constraint, self.names, self.error = constraint, names, error

    def __getattr__(self, name):
        def fails(*_):
            raise self.error
        return fails if name in self.names else getattr(self.constraint, name)


@pytest.mark.parametrize("error", [td.Error("limit_exceeded", "mask_limits.steps", "too much"), MemoryError()], ids=["limit", "memory"])
@pytest.mark.parametrize("name", ["fill_mask", "advance", "validate"])
def test_answer_whose_constraint_fails_accepts_nothing_more_and_logs_it_once(vocabulary, end, name, error, caplog):
    error = copy.copy(error)
    answer = engine.Answer(engine.build(vocabulary, "regex", "a+", 0), vocabulary, last_tokens=None if name != "validate" else [65, 66])
    assert answer.accept(97) and mask_of(answer).tolist() == [97, end]
    real, answer._constraint = answer._constraint, Failing(answer._constraint, [name], error)
    {"fill_mask": lambda: mask_of(answer), "advance": lambda: answer.accept(97), "validate": lambda: answer.allowed([97])}[name]()
    assert answer.failure is error and not answer.is_terminated
    assert not answer.accept(97) and not answer.accept(end) and answer.allowed([97]) == 0
    assert answer.draft([97], 4, {}) == [] and mask_of(answer).tolist() == ([end] if name != "validate" else [65, 66])
    assert len(caplog.records) == 1 and (str(error) or "MemoryError") in caplog.text
    answer._constraint = real
    answer.rollback(1)
    assert not answer.accept(97)
    answer.reset()
    assert answer.accept(97)


def test_answer_of_fewer_logits_than_tokens_has_masks_of_the_logits(vocabulary, end):
    size = 97  # all but the first letters
    for text, expected in (("[A-Za-z]+", list(range(65, 91))), ("[`-b]", [96])):
        answer = engine.Answer(engine.build(vocabulary, "regex", text, 0), vocabulary, size=size)
        words = np.full((1, 4), -1, np.int32)
        answer.fill(words, 0)
        assert np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist() == expected
    answer = engine.Answer(engine.build(vocabulary, "regex", "[a-z]+", 0), vocabulary, [5], size=size)
    answer.fill(words, 0)
    assert "past the model's 97 logits" in str(answer.failure) and words.tolist() == [[1 << 5, 0, 0, 0]]
    answer = engine.Answer(engine.build(vocabulary, "regex", "AB[a-z]", 0), vocabulary, size=size)
    answer._constraint = Failing(answer.constraint, [], None)
    answer._constraint.forced_tokens = lambda *_: [65, 66, 97]
    assert answer.draft([], 8, {}) == [65, 66]
