"""Where masks may be written to, and what is refused before anything is."""
import array
import ctypes

import numpy as np
import pytest
import tooldecode as td


@pytest.fixture(scope="module")
def constraint(vocabulary):
    return td.regex(vocabulary, "a[^]*")


@pytest.fixture(scope="module")
def expected(constraint):
    words = np.zeros(constraint.mask_words, np.int32)
    constraint.fill_mask(constraint.initial(), words)
    assert words[ord("a") // 32] == 1 << ord("a") % 32
    return words


class Tensor:
    """Memory that is offered as a DLPack tensor, of any device and type."""

    class DLTensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int),
                    ("ndim", ctypes.c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                    ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
                    ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, shape, strides=None, device=1, code=0, bits=32, offset=0):
        self.memory = np.full(4096, 7, np.int32)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.tensor = self.DLTensor(self.memory.ctypes.data, device, 0, len(shape), code, bits, 1, self.shape,
                                    self.strides, offset, None, None)

    def __dlpack_device__(self):
        return (self.tensor.device_type, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_arrays(constraint, expected):
    words, state = constraint.mask_words, constraint.initial()
    for array_ in (np.zeros(words, np.int32), np.zeros(words, np.uint32), np.zeros((1, words), np.int32)):
        constraint.fill_mask(state, array_)
        assert (array_.view(np.int32).ravel() == expected).all()
    for row in range(3):
        rows = np.full((3, words), 7, np.int32)
        constraint.fill_mask(state, rows, row)
        assert (rows[row] == expected).all() and (np.delete(rows, row, 0) == 7).all()
    plain = array.array("i", [0] * words)
    constraint.fill_mask(state, plain)
    assert list(plain) == expected.tolist()
    view = memoryview(bytearray(4 * words)).cast("I")
    constraint.fill_mask(state, view)
    assert list(view) == expected.view(np.uint32).tolist()
    memory = bytearray(4 * words)
    constraint.fill_mask(state, memory)
    assert memory == expected.tobytes()
    part = np.full((4, words), 7, np.int32)
    constraint.fill_masks([state], part[2:3])
    assert (part[2] == expected).all() and (part[[0, 1, 3]] == 7).all()


def test_dlpack(constraint, expected):
    words, state = constraint.mask_words, constraint.initial()
    for tensor in (Tensor([words]), Tensor([2, words]), Tensor([2, words], [words, 1]), Tensor([words], code=1),
                   Tensor([words], device=3), Tensor([words], [1], offset=0)):
        constraint.fill_mask(state, tensor)
        assert (tensor.memory[:words] == expected).all() and (tensor.memory[words:] == 7).all()
    shifted = Tensor([words], offset=8)
    constraint.fill_mask(state, shifted)
    assert (shifted.memory[2 : words + 2] == expected).all() and (shifted.memory[:2] == 7).all()


def test_refusals(constraint):
    words, state = constraint.mask_words, constraint.initial()
    read_only = np.zeros(words, np.int32)
    read_only.setflags(write=False)
    arrays = [
        (np.zeros(words, np.int64), "unknown_format", "dtype"),
        (np.zeros(words, np.float32), "unknown_format", "dtype"),
        (np.zeros(words, np.int8), "unknown_format", "dtype"),
        (np.zeros(words, ">i4"), "unknown_format", "dtype"),
        (np.zeros(words, "i2,i2"), "unknown_format", "dtype"),
        (bytearray(4 * words + 1), "unknown_format", "dtype"),
        (bytearray(4 * words - 4), "shape_mismatch", "shape"),
        (bytearray(8 * words), "shape_mismatch", "shape"),
        (bytearray(), "shape_mismatch", "shape"),
        (np.zeros(words, "V0"), "unknown_format", "dtype"),
        (memoryview(bytearray(4 * words)), "unknown_format", "dtype"),
        (np.zeros(words + 1, np.int32), "shape_mismatch", "shape"),
        (np.zeros(words - 1, np.int32), "shape_mismatch", "shape"),
        (np.zeros((words, 2), np.int32), "shape_mismatch", "shape"),
        (np.zeros((1, 1, words), np.int32), "shape_mismatch", "shape"),
        (np.zeros((), np.int32), "shape_mismatch", "shape"),
        (np.zeros(2 * words, np.int32)[::2], "shape_mismatch", "strides"),
        (np.zeros(words, np.int32)[::-1], "shape_mismatch", "strides"),
        (np.zeros((2, 2 * words), np.int32)[:, :words], "shape_mismatch", "strides"),
        (np.asfortranarray(np.zeros((2, words), np.int32)), "shape_mismatch", "strides"),
        (np.zeros((0, words), np.int32), "shape_mismatch", "row"),
        (np.frombuffer(bytearray(4 * words + 1), np.uint8)[1:].view(np.int32), "invalid_option", "data"),
        (read_only, "invalid_option", "array"),
        (bytes(4 * words), "invalid_option", "array"),
        (None, "unknown_format", "array"),
        ([0] * words, "unknown_format", "array"),
        (Tensor([words], device=2), "invalid_option", "device"),
        (Tensor([words], bits=64), "unknown_format", "dtype"),
        (Tensor([words], code=2), "unknown_format", "dtype"),
        (Tensor([words, 2]), "shape_mismatch", "shape"),
        (Tensor([2, words], [words + 1, 1]), "shape_mismatch", "strides"),
        (Tensor([words], offset=2), "invalid_option", "data"),
    ]
    for array_, code, where in arrays:
        before = array_.tobytes() if isinstance(array_, np.ndarray) else None
        for fill in (lambda: constraint.fill_mask(state, array_), lambda: constraint.fill_masks([state], array_),
                     lambda: td.fill_masks([constraint], [state], array_),
                     lambda: td.Completions(constraint).narrow(state, 9, array_)):
            with pytest.raises(td.Error) as error:
                fill()
            assert (error.value.code, error.value.where) == (code, where)
        if before is not None:
            assert array_.tobytes() == before
        if isinstance(array_, Tensor):
            assert (array_.memory == 7).all()
    with pytest.raises(td.Error) as error:
        constraint.fill_mask(state, np.zeros((2, words), np.int32), 2)
    assert (error.value.code, error.value.where) == ("shape_mismatch", "row")


def test_torch(constraint, expected):
    torch = pytest.importorskip("torch")
    words, state = constraint.mask_words, constraint.initial()
    tensor = torch.full((3, words), 7, dtype=torch.int32)
    constraint.fill_mask(state, tensor, 1)
    assert tensor[1].tolist() == expected.tolist() and (tensor[[0, 2]] == 7).all()
    constraint.fill_masks([state] * 2, tensor[:2])
    assert tensor[0].tolist() == expected.tolist()
    for refused in (torch.zeros(words), torch.zeros(words, dtype=torch.int64), torch.zeros(words + 1, dtype=torch.int32),
                    torch.zeros(2 * words, dtype=torch.int32)[::2], torch.zeros(words, dtype=torch.int32, device="meta")):
        with pytest.raises(td.Error):
            constraint.fill_mask(state, refused)
    if torch.cuda.is_available():
        with pytest.raises(td.Error, match="device"):
            constraint.fill_mask(state, torch.zeros(words, dtype=torch.int32, device="cuda"))
        pinned = torch.zeros(words, dtype=torch.int32).pin_memory()
        constraint.fill_mask(state, pinned)
        assert pinned.tolist() == expected.tolist()
