"""Vocabularies of every origin that can be made here."""
import base64
import json
import types

import numpy as np
import pytest
import tooldecode as td

TEXT = 'Call get_weather(city="Köln") for 12 days, please.'


def test_load(tiny):
    vocabulary = td.Vocabulary.load(tiny)
    assert vocabulary == td.Vocabulary.load(str(tiny / "tokenizer.json")) and hash(vocabulary) == hash(td.Vocabulary.load(tiny))
    assert vocabulary.size == len(vocabulary) == 8192 and vocabulary.mask_words == 256 and vocabulary.end_tokens == [4]
    assert vocabulary.decode(vocabulary.encode(TEXT)).decode() == TEXT
    assert vocabulary.encode("<|end|>", parse_special=True) == [4] and vocabulary.encode("<|end|>") != [4]
    larger = td.Vocabulary.load(tiny, [4, 5], size=8200)
    assert larger.size == 8200 and larger.end_tokens == [4, 5] and larger != vocabulary
    constraint = td.tool_calls(vocabulary, [{"name": "f", "parameters": {"type": "object", "properties": {}}}], "python", choice="required")
    forced = constraint.forced_tokens(constraint.initial(), b"")
    assert vocabulary.decode(forced) == constraint.forced(constraint.initial())[: len(vocabulary.decode(forced))]


def test_answer_text_has_the_names_of_control_tokens():
    vocabulary = td.Vocabulary.from_bytes([b"a", b"<call>", b"<end>"], [2], control_tokens=[1, 2])
    assert vocabulary.answer_text([0, 1, 0, 2]) == b"a<call>a" and vocabulary.decode([0, 1, 0, 2]) == b"aa"


def test_from_bytes(vocabulary):
    assert vocabulary.decode([104, 105]) == b"hi" and vocabulary.decode(vocabulary.end_tokens) == b""
    for call in (lambda: vocabulary.encode("a"), lambda: vocabulary.decode([-1]), lambda: vocabulary.decode([10**6]),
                 lambda: td.Vocabulary.from_bytes([b"a"], [1]),
                 lambda: td.Vocabulary.from_bytes([b"a"], [0], control_tokens=[5])):
        with pytest.raises(td.Error) as error:
            call()
        assert error.value.code in ("malformed_vocabulary", "unknown_token")
    for wrong in ("text", None, 3):
        with pytest.raises(td.Error) as error:
            td.Vocabulary.from_bytes([b"a", wrong], [0])
        assert (error.value.code, error.value.where) == ("malformed_vocabulary", "tokens/1")


def test_objects_that_are_no_tokenizers_are_errors():
    class Backend:
        def to_str(self):
            return 3

    class Named(Backend):
        eos_token = "\ud800"

        def to_str(self):
            return "{}"

    def encoding(ranks={b"a": 0}, special={}, pattern="a"):
        return types.SimpleNamespace(_mergeable_ranks=ranks, _special_tokens=special, _pat_str=pattern)

    from_huggingface, from_tiktoken = td.Vocabulary.from_huggingface, td.Vocabulary.from_tiktoken
    for make, given, where in (
            (from_huggingface, object(), "tokenizer"), (from_huggingface, Backend(), "tokenizer/to_str"),
            (from_huggingface, Named(), "tokenizer/eos_token"), (from_tiktoken, object(), "encoding"),
            (from_tiktoken, encoding(ranks=[b"a"]), "encoding"), (from_tiktoken, encoding(special=None), "encoding"),
            (from_tiktoken, encoding(pattern=None), "encoding"), (from_tiktoken, encoding(ranks={b"a": -1}), "encoding"),
            (from_tiktoken, encoding(ranks={"a": 0}), "encoding/_mergeable_ranks"),
            (from_tiktoken, encoding(special={b"<end>": 1}), "encoding/_special_tokens")):
        with pytest.raises(td.Error) as error:
            make(given)
        assert (error.value.code, error.value.where) == ("malformed_vocabulary", where)


def test_files_that_are_none(tmp_path):
    with pytest.raises(td.Error) as error:
        td.Vocabulary.load(tmp_path / "missing.json")
    assert error.value.code == "file_unreadable"
    broken = tmp_path / "broken"
    broken.write_bytes(b"GGUF\x03")
    for load in (td.Vocabulary.load, td.Vocabulary.from_gguf, td.Vocabulary.from_sentencepiece, td.Vocabulary.from_mistral_common):
        with pytest.raises(td.Error) as error:
            load(broken)
        assert str(broken) in error.value.where


def test_from_mistral_common(tmp_path):
    tokens = [bytes([i]) for i in range(256)] + [b"he", b"hel"]
    file = {"config": {"pattern": r"\w+|\W", "default_vocab_size": 10 + len(tokens), "default_num_special_tokens": 10},
            "vocab": [{"rank": i, "token_bytes": base64.b64encode(token).decode()} for i, token in enumerate(tokens)]}
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(file))
    vocabulary = td.Vocabulary.from_mistral_common(path)
    assert vocabulary.encode("hello") == [267, 10 + ord("l"), 10 + ord("o")] and vocabulary.end_tokens == [2]


def test_from_huggingface(tiny):
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_file(str(tiny / "tokenizer.json"))
    vocabulary = td.Vocabulary.from_huggingface(theirs, [4])
    assert vocabulary == td.Vocabulary.load(tiny)
    assert vocabulary.encode(TEXT) == theirs.encode(TEXT, add_special_tokens=False).ids
    with pytest.raises(td.Error):
        td.Vocabulary.from_huggingface(object())


def test_from_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([i]): i for i in range(256)} | {b"he": 256, b"ll": 257, b"hell": 258}
    theirs = tiktoken.Encoding("own", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 260})
    vocabulary = td.Vocabulary.from_tiktoken(theirs)
    assert vocabulary.size == 261 and vocabulary.end_tokens == [260]
    for text in ("hello", "hell, he!", TEXT):
        assert vocabulary.encode(text) == theirs.encode(text)
    constraint = td.choice(vocabulary, ["hello"])
    words = np.zeros(vocabulary.mask_words, np.int32)
    constraint.fill_mask(constraint.initial(), words)
    assert {t for t in range(261) if words[t // 32] >> t % 32 & 1} == {ord("h"), 256, 258}
