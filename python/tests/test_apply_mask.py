"""Masks applied to logits, against NumPy's where."""
import array
import random

import numpy as np
import pytest
import tooldecode as td
from tooldecode import _masks

KINDS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
DICE = np.random.default_rng(7)


def words_of(allowed: np.ndarray) -> np.ndarray:
    """Masks [..., W] of what is allowed [..., V]."""
    padding = [(0, 0)] * (allowed.ndim - 1) + [(0, -allowed.shape[-1] % 32)]
    return np.packbits(np.pad(allowed, padding), axis=-1, bitorder="little").view(np.int32)


def some(shape: tuple[int, ...], density: float) -> np.ndarray:
    """What masks allow; whole words of nothing and of everything among it."""
    allowed = DICE.random(shape) < density
    allowed[..., 32:64] = True
    allowed[..., 64:96] = False
    return allowed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100, 1000])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_is_where(kind, size, density):
    logits, allowed = DICE.standard_normal((3, size)).astype(KINDS[kind]), some((3, size), density)
    logits[0, 0], logits[1, -1] = np.nan, np.inf
    for words in (words_of(allowed), words_of(allowed).view(np.uint32)):
        found = logits.copy()
        assert td.apply_mask(found, words) is None
        np.testing.assert_array_equal(found, np.where(allowed, logits, -np.inf))
    found = logits[1].copy()
    td.apply_mask(found, words[1])
    np.testing.assert_array_equal(found, np.where(allowed[1], logits[1], -np.inf))
    found = logits.copy()  # one mask for all
    td.apply_mask(found, words[1])
    np.testing.assert_array_equal(found, np.where(allowed[1], logits, -np.inf))


def test_bfloat16_as_uint16():
    values = DICE.standard_normal((2, 70)).astype(np.float32).view(np.uint32) >> 16 << 16
    allowed = some((2, 70), 0.4)
    found = (values >> 16).astype(np.uint16)
    td.apply_mask(found, words_of(allowed))
    widened = (found.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(widened, np.where(allowed, values.view(np.float32), -np.inf))


@pytest.mark.parametrize("rows", [[], [2], [3, 0], [0, 1, 2, 3], (1,), np.array([3, 1])])
def test_rows(rows):
    logits, allowed = DICE.standard_normal((4, 90)).astype(np.float32), some((4, 90), 0.3)
    for words, by_row in ((words_of(allowed), allowed), (words_of(allowed[0]), np.broadcast_to(allowed[0], allowed.shape))):
        found, expected = logits.copy(), logits.copy()
        td.apply_mask(found, words, rows)
        chosen = np.asarray(rows, int)
        expected[chosen] = np.where(by_row[chosen], logits[chosen], -np.inf)
        np.testing.assert_array_equal(found, expected)


def test_rows_that_lie_apart():
    logits, allowed = DICE.standard_normal((4, 3, 100)).astype(np.float32), some((8, 77), 0.3)
    found, expected = logits.copy(), logits.copy()
    td.apply_mask(found[:, -1, :77], words_of(allowed)[::2])
    expected[:, -1, :77] = np.where(allowed[::2], logits[:, -1, :77], -np.inf)
    np.testing.assert_array_equal(found, expected)
    td.apply_mask(found[::-1, 0, :77], words_of(allowed)[:4])
    expected[::-1, 0, :77] = np.where(allowed[:4], logits[::-1, 0, :77], -np.inf)
    np.testing.assert_array_equal(found, expected)


def test_logits_of_another_size_than_the_mask():
    logits, words = np.zeros((2, 100), np.float32), np.full((2, 2), -1, np.int32)
    td.apply_mask(logits, words)
    assert (logits[:, :64] == 0).all() and np.isneginf(logits[:, 64:]).all()
    logits = np.zeros(40, np.float32)
    td.apply_mask(logits, np.array([-1, 1, 0, 0], np.int32))
    assert (logits[:33] == 0).all() and np.isneginf(logits[33:]).all()


def test_what_is_no_numpy():
    logits = array.array("f", [0.5] * 40)
    td.apply_mask(logits, bytearray(b"\1\0\0\0\2\0\0\0"))
    assert [t for t, logit in enumerate(logits) if logit == 0.5] == [0, 33]
    td.apply_mask(logits, memoryview(bytes(8)).cast("I"))  # masks may be read-only
    assert set(logits) == {-float("inf")}


def test_masks_of_a_constraint(vocabulary, tools):
    constraint = td.tool_calls(vocabulary, tools, "hermes")
    dice, state, words = random.Random(1), constraint.initial(), np.zeros(vocabulary.mask_words, np.int32)
    while not constraint.is_finished(state):
        constraint.fill_mask(state, words)
        logits = np.zeros(vocabulary.size, np.float32)
        td.apply_mask(logits, words)
        allowed = np.flatnonzero(logits == 0)
        assert allowed.tolist() == [t for t in range(vocabulary.size) if constraint.advance(state, t) is not None]
        state = constraint.advance(state, dice.choice(vocabulary.end_tokens if constraint.is_accepting(state) else allowed))


REFUSED = [
    (np.zeros(64, np.int32), np.zeros(2, np.int32), None, "unknown_format", "logits/dtype"),
    (np.zeros(64, np.complex64), np.zeros(2, np.int32), None, "unknown_format", "logits/dtype"),
    (np.zeros(64, ">f4"), np.zeros(2, np.int32), None, "unknown_format", "logits/dtype"),
    (np.zeros(64, np.float32), np.zeros(2, np.int64), None, "unknown_format", "mask/dtype"),
    (np.zeros(64, np.float32), np.zeros(2, np.float32), None, "unknown_format", "mask/dtype"),
    (np.zeros(64, np.float32), np.zeros(64, bool), None, "unknown_format", "mask/dtype"),
    (np.zeros((2, 2, 64), np.float32), np.zeros(2, np.int32), None, "shape_mismatch", "logits/shape"),
    (np.zeros((), np.float32), np.zeros(2, np.int32), None, "shape_mismatch", "logits/shape"),
    (np.zeros((2, 64), np.float32), np.zeros((2, 2, 2), np.int32), None, "shape_mismatch", "mask/shape"),
    (np.zeros((2, 64), np.float32), np.zeros((3, 2), np.int32), None, "shape_mismatch", "mask/shape"),
    (np.zeros((2, 64), np.float32), np.zeros((2, 2), np.int32), [2], "shape_mismatch", "rows/0"),
    (np.zeros((4, 64), np.float32), np.zeros((2, 2), np.int32), [0, 3], "shape_mismatch", "rows/1"),
    (np.zeros((2, 64), np.float32), np.zeros((2, 2), np.int32), [1, 1], "invalid_option", "rows/1"),
]
REFUSED_OF_THE_CPU = [
    (np.zeros((64, 2), np.float32).T, np.zeros((2, 2), np.int32), None, "shape_mismatch", "logits/strides"),
    (np.zeros(64, np.float32), np.zeros((2, 2), np.int32)[:, 0], None, "shape_mismatch", "mask/strides"),
    (np.lib.stride_tricks.as_strided(np.zeros(99, np.float32), (2, 64), (4, 4)), np.zeros((2, 2), np.int32), None,
     "shape_mismatch", "logits/strides"),
    (np.frombuffer(bytearray(257), np.uint8)[1:].view(np.float32), np.zeros(2, np.int32), None, "invalid_option",
     "logits/data"),
    (np.frombuffer(bytes(256), np.float32), np.zeros(2, np.int32), None, "invalid_option", "logits"),
    ([0.0] * 64, np.zeros(2, np.int32), None, "unknown_format", "logits"),
    (np.zeros(64, np.float32), [0, 0], None, "unknown_format", "mask"),
    (None, np.zeros(2, np.int32), None, "unknown_format", "logits"),
    (np.zeros(64, "V0"), np.zeros(2, np.int32), None, "unknown_format", "dtype"),
]


@pytest.mark.parametrize("logits, mask, rows, code, where", REFUSED + REFUSED_OF_THE_CPU)
def test_refusals(logits, mask, rows, code, where):
    before = logits.tobytes() if isinstance(logits, np.ndarray) else None
    with pytest.raises(td.Error) as error:
        td.apply_mask(logits, mask, rows)
    assert (error.value.code, error.value.where) == (code, where)
    assert before is None or logits.tobytes() == before
    with pytest.raises(TypeError):
        td.apply_mask(np.zeros((2, 64), np.float32), np.zeros((2, 2), np.int32), [-1])


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("apply", [td.apply_mask, _masks._apply_on_device])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_torch(torch, apply, kind):
    """In place on the CPU, and by the operations that a device's tensors get."""
    for size, density in ((1, 0.5), (33, 0.5), (100, 0.1), (1000, 0.9)):
        logits = torch.randn(4, size, dtype=torch.float64).to(getattr(torch, kind))
        allowed = some((4, size), density)
        words = torch.from_numpy(words_of(allowed))
        by_where = torch.where(torch.from_numpy(allowed), logits, -torch.inf)
        given = [words, words.view(torch.uint32), words.numpy()] if hasattr(torch, "uint32") else [words, words.numpy()]
        for mask in given:
            found = logits.clone()
            apply(found, mask, None)
            assert torch.equal(found, by_where)
            apply(found := logits.clone(), mask, [2, 0])
            assert torch.equal(found[[0, 2]], by_where[[0, 2]]) and torch.equal(found[[1, 3]], logits[[1, 3]])
            apply(found := logits.clone(), mask, [])
            assert torch.equal(found, logits)
        apply(found := logits[1].clone(), words[1], None)
        assert torch.equal(found, by_where[1])
        apply(found := logits.clone(), bytearray(words[1].numpy().tobytes()), [3])
        assert torch.equal(found[3], torch.where(torch.from_numpy(allowed[1]), logits[3], -torch.inf))
        wide = torch.randn(4, 3, size + 70).to(getattr(torch, kind))
        before = wide.clone()
        apply(wide[:, -1], words, [1])
        width = words.shape[1] * 32
        is_allowed = torch.from_numpy(np.unpackbits(words_of(allowed).view(np.uint8), axis=-1, bitorder="little").astype(bool))
        assert torch.equal(wide[1, -1, :width], torch.where(is_allowed[1], before[1, -1, :width], -torch.inf))
        assert torch.isneginf(wide[1, -1, width:]).all()
        wide[1, -1] = before[1, -1]
        assert torch.equal(wide, before)


def test_torch_refusals(torch):
    for logits, mask, rows, code, where in REFUSED:
        if logits.dtype.byteorder == ">" or mask.dtype == bool:
            continue
        logits = torch.from_numpy(logits) if logits.dtype != np.complex64 else torch.zeros(64, dtype=torch.complex64)
        for apply in (td.apply_mask, _masks._apply_on_device):
            with pytest.raises(td.Error) as error:
                apply(logits, torch.from_numpy(mask), rows)
            assert (error.value.code, error.value.where) == (code, where)
    for mask in ([1, 2], np.zeros(2, np.int64), None):
        with pytest.raises(td.Error):
            _masks._apply_on_device(torch.zeros(64), mask, None)
    weights = torch.zeros(64, requires_grad=True)
    td.apply_mask(weights * 2, np.zeros(2, np.int32))  # which DLPack does not give
    td.apply_mask(torch.zeros(64, device="meta"), np.zeros(2, np.int32))
    if torch.cuda.is_available():
        logits = torch.randn(3, 200, device="cuda")
        allowed = some((3, 200), 0.3)
        expected = torch.where(torch.from_numpy(allowed).cuda(), logits, -torch.inf)
        td.apply_mask(logits, words_of(allowed))
        assert torch.equal(logits, expected)
