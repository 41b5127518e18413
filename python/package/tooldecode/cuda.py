"""The CUDA kernels as PyTorch operators: masked softmax, choice of tokens, products with a pruned head, tree attention,
verification of draft trees, compaction of the cache.

    tokens = cuda.find_tokens(logits, positions, mask, temperature=0.7, top_p=0.9, seed=seeds)

Each runs on torch's current stream and waits for nothing; `torch.compile` traces them as `torch.ops.tooldecode.*`, and a
CUDA graph may capture them. A graph follows tensors on the device; `temperature`, `top_k`, `top_p`, `min_p`, `seed`,
`shift` and the runs of rows with equal values stay as they were when it was captured. A mask is int32 [B, ceil(V / 32)] as
`fill_masks` and XGrammar write it, on the device.

Needs torch and the kernels' library, `libtooldecode_cuda_c.so`: configure tooldecode with -DTOOLDECODE_CUDA=ON and install
it. `TOOLDECODE_CUDA_LIBRARY` is its path, if the loader does not find it.
"""
from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ._types import Error

__all__ = ["Verdicts", "compact_cache", "find_tokens", "masked_log_softmax", "masked_softmax", "project_topk",
           "tree_attention", "verify_trees"]

_DEVICE = "cuda"  # that of the library's pointers
_MAX_NODES = 64
_VERDICT = 3 + 2 * _MAX_NODES  # words
_DTYPES = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}
_CODES = {100: "error", 101: "invalid_argument", 103: "out_of_memory", 219: "shape_mismatch", 220: "invalid_option",
          221: "device_failure"}
_WORDS = [torch.int32, *([torch.uint32] if hasattr(torch, "uint32") else [])]
_HALVES = [torch.float16, torch.bfloat16]
_ABI_VERSION = 1
_TO_BUILD = "build it with cmake -DTOOLDECODE_CUDA=ON, and set the variable to the path of libtooldecode_cuda_c.so"


class _Sampling(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("temperature", ctypes.c_float), ("top_k", ctypes.c_int32),
                ("top_p", ctypes.c_float), ("min_p", ctypes.c_float)]


class _Logits(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("logits", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("rows", ctypes.c_int32), ("vocabulary", ctypes.c_int32), ("stride", ctypes.c_int64),
                ("mask", ctypes.c_void_p), ("mask_stride", ctypes.c_int64), ("sampling", ctypes.POINTER(_Sampling)),
                ("sampling_count", ctypes.c_size_t)]


class _Head(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("weights", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("rows", ctypes.c_int32), ("hidden_size", ctypes.c_int32), ("stride", ctypes.c_int64),
                ("tokens", ctypes.c_void_p), ("vocabulary", ctypes.c_int32)]


class _Cache(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("keys", ctypes.c_void_p), ("values", ctypes.c_void_p),
                ("slot_stride", ctypes.c_int64), ("head_stride", ctypes.c_int64), ("page_stride", ctypes.c_int64),
                ("pages", ctypes.c_void_p), ("page_size", ctypes.c_int32), ("max_pages", ctypes.c_int32)]


class _Shape(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("dtype", ctypes.c_int32), ("query_heads", ctypes.c_int32),
                ("key_heads", ctypes.c_int32), ("head_size", ctypes.c_int32), ("scale", ctypes.c_float),
                ("sequences", ctypes.c_int32), ("nodes", ctypes.c_int32), ("max_length", ctypes.c_int32),
                ("slots", ctypes.c_int32)]


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    place = os.environ.get("TOOLDECODE_CUDA_LIBRARY") or ctypes.util.find_library("tooldecode_cuda_c")
    try:
        library = ctypes.CDLL(place or f"libtooldecode_cuda_c.so.{_ABI_VERSION}")
    except OSError as failure:
        raise Error("device_failure", "TOOLDECODE_CUDA_LIBRARY",
                    f"TOOLDECODE_CUDA_LIBRARY: the kernels' library cannot be loaded ({failure}): {_TO_BUILD}") from None
    if not hasattr(library, "td_cuda_abi_version"):
        raise Error("device_failure", "TOOLDECODE_CUDA_LIBRARY",
                    f"TOOLDECODE_CUDA_LIBRARY: {library._name} is not the kernels' library: {_TO_BUILD}")
    if library.td_cuda_abi_version() != _ABI_VERSION:
        raise Error("device_failure", "TOOLDECODE_CUDA_LIBRARY",
                    f"TOOLDECODE_CUDA_LIBRARY: {library._name} is of another version: build it from the sources of this "
                    "package")
    library.td_cuda_last_error.restype = library.td_cuda_last_error_where.restype = ctypes.c_char_p
    library.td_cuda_tree_attention_free.restype = None
    return library


def _call(function: str, *arguments: Any) -> None:
    library = _library()
    code = getattr(library, function)(*arguments)
    if code != 0:
        raise Error(_CODES.get(code, "error"), library.td_cuda_last_error_where().decode(),
                    library.td_cuda_last_error().decode())


def _require(met: bool, where: str, what: str, code: str = "shape_mismatch") -> None:
    if not met:
        raise Error(code, where, f"{where}: {what}")


def _check(tensor: torch.Tensor, where: str, shape: Sequence[int | None], dtypes: Sequence[torch.dtype],
           like: torch.Tensor | None = None, dense: bool = True) -> None:
    """Requires a device, a type, sizes (None: any), and numbers one after another: all, or those of a row."""
    _require(tensor.device.type == _DEVICE, where,
             f"is on {tensor.device}: the kernels need a CUDA device, and a PyTorch that was built for CUDA", "device_failure")
    _require(like is None or tensor.device == like.device, where, "must be on the device of the others")
    _require(tensor.dtype in dtypes, where, f"must be of {' or '.join(map(str, dtypes))} and is of {tensor.dtype}")
    sizes = [str(size) if size is not None else "any" for size in shape]
    _require(tensor.dim() == len(shape) and all(size is None or size == own for size, own in zip(shape, tensor.shape)), where,
             f"must be [{', '.join(sizes)}] and is {list(tensor.shape)}")
    # The sizes of a trace may be symbols, and are checked when the operator runs.
    _require(all(size < 1 << 31 for size in tensor.shape if isinstance(size, int)), where,
             f"must have sizes below 2^31 and is {list(tensor.shape)}")
    if dense:
        _require(tensor.is_contiguous(), where, "must be contiguous")
    else:
        _require(tensor.shape[-1] <= 1 or tensor.stride(-1) == 1, where, "must have the numbers of a row one after another")


def _words(rows: int, size: int) -> list[int]:
    return [rows, (size + 31) // 32]


def _pointer(tensor: torch.Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """0 where the size is 1: such a stride says nothing, and may be any number."""
    return tuple(stride if size > 1 else 0 for size, stride in zip(tensor.shape, tensor.stride()))


def _row_stride(tensor: torch.Tensor, where: str) -> int:
    if tensor.shape[0] <= 1:
        return 0
    _require(tensor.stride(0) >= tensor.shape[1], where, "must have rows that do not overlap")
    return tensor.stride(0)


@contextlib.contextmanager
def _on(tensor: torch.Tensor) -> Any:
    """The tensor's device as the current one; gives its current stream."""
    if tensor.device.type != "cuda":  # the emulator's
        yield ctypes.c_void_p(None)
        return
    with torch.cuda.device(tensor.device):
        yield ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class _Workspace:
    """Memory of torch's allocator, which gives it to others only after what the stream does with it now."""

    def __init__(self, size: int, like: torch.Tensor) -> None:
        self.memory = torch.empty(size + 256, dtype=torch.uint8, device=like.device)
        self.arguments = (ctypes.c_void_p((self.memory.data_ptr() + 255) // 256 * 256), ctypes.c_size_t(size))


@functools.lru_cache(maxsize=1024)
def _bytes(function: str, device: torch.device, *sizes: int) -> int:
    count = ctypes.c_size_t()
    with _on(torch.empty(0, device=device)):
        _call(function, *map(ctypes.c_int32, sizes), ctypes.byref(count))
    return count.value


# ---- masked softmax and choice of tokens


def _column(value: Any, where: str, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        column = value.to(dtype)
    else:
        try:
            column = torch.as_tensor(value, dtype=dtype, device="cpu")  # whatever torch's default device is
        except (TypeError, ValueError, OverflowError, RuntimeError) as failure:
            raise Error("invalid_option", where, f"{where}: must be a number, or [B] ({failure})") from None
    _require(column.device.type == "cpu" and column.dim() <= 1, where, "must be a number, or [B] in CPU memory")
    return column.reshape(-1)


def _sampling(temperature: Any, top_k: Any, top_p: Any, min_p: Any) -> torch.Tensor:
    """[1 or B, 4] in CPU memory."""
    names = ("temperature", "top_k", "top_p", "min_p")
    columns = [_column(value, name, torch.float64) for value, name in zip((temperature, top_k, top_p, min_p), names)]
    several = [column.shape[0] for column in columns if column.shape[0] != 1]
    rows = max(several) if several else 1
    for column, name in zip(columns, names):
        _require(column.shape[0] in (1, rows), name, f"must be a number, or [{rows}]")
    return torch.stack([column.expand(rows) for column in columns], dim=1)


def _seeds(seed: Any) -> torch.Tensor:
    if isinstance(seed, int) and 1 << 63 <= seed < 1 << 64:  # the same 64 bits
        seed -= 1 << 64
    return _column(seed, "seed", torch.int64)


def _float32(value: float) -> float:
    """As the library gets it; 0 has a meaning there."""
    return ctypes.c_float(value).value


def _check_logits(logits: torch.Tensor, mask: torch.Tensor | None, sampling: torch.Tensor) -> None:
    _check(logits, "logits", [None, None], list(_DTYPES), dense=False)
    rows, size = logits.shape
    if mask is not None:
        _check(mask, "mask", _words(rows, size), _WORDS, like=logits, dense=False)
    _require(sampling.shape[0] in (1, rows), "sampling", f"must be of 1 row, or of {rows}")


def _logits(logits: torch.Tensor, mask: torch.Tensor | None, sampling: torch.Tensor, seeds: torch.Tensor | None) -> _Logits:
    values = sampling.tolist()
    own_seeds = [0] if seeds is None else seeds.tolist()
    for temperature, top_k, top_p, _ in values:
        _require(temperature == 0 or _float32(temperature) != 0, "temperature", "must be 0, or from 1e-6 to 1e6",
                 "invalid_option")
        _require(float(top_k).is_integer() and abs(top_k) < 1 << 31, "top_k", "must be an integer of 32 bits",
                 "invalid_option")
        _require(_float32(top_p) != 0, "top_p", "must be above 0 and at most 1", "invalid_option")
    rows = min(max(len(values), len(own_seeds)), logits.shape[0])
    values, own_seeds = (own if len(own) == rows else own * rows for own in (values, own_seeds))
    array = (_Sampling * rows)(*[(seed & (1 << 64) - 1, row[0], int(row[1]), row[2], row[3])
                                 for seed, row in zip(own_seeds, values)])
    return _Logits(ctypes.sizeof(_Logits), logits.data_ptr(), _DTYPES[logits.dtype], logits.shape[0], logits.shape[1],
                   _row_stride(logits, "logits"), None if mask is None else mask.data_ptr(),
                   0 if mask is None else _row_stride(mask, "mask"), array, rows)


@torch.library.custom_op("tooldecode::masked_softmax", mutates_args=(),
                         schema="(Tensor logits, Tensor? mask, Tensor sampling, bool is_log) -> (Tensor, Tensor)")
def _masked_softmax(logits, mask, sampling, is_log):
    _check_logits(logits, mask, sampling)
    out = torch.empty(logits.shape, dtype=torch.float32, device=logits.device)
    kept = torch.empty(logits.shape[0], dtype=torch.int32, device=logits.device)
    size = _bytes("td_cuda_masked_softmax_workspace_bytes", logits.device, *logits.shape)
    with _on(logits) as stream:
        workspace = _Workspace(size, logits)
        batch = _logits(logits, mask, sampling, None)
        _call("td_cuda_fill_masked_log_softmax" if is_log else "td_cuda_fill_masked_softmax", ctypes.byref(batch),
              _pointer(out), _pointer(kept), *workspace.arguments, stream)
    return out, kept


@_masked_softmax.register_fake
def _(logits, mask, sampling, is_log):
    _check_logits(logits, mask, sampling)
    return (logits.new_empty(logits.shape, dtype=torch.float32), logits.new_empty(logits.shape[0], dtype=torch.int32))


def masked_softmax(logits: torch.Tensor, mask: torch.Tensor | None = None, *, temperature: Any = 1.0, top_k: Any = 0,
                   top_p: Any = 1.0, min_p: Any = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities of the tokens that mask and cuts leave, 0 elsewhere, and how many these are.

    logits: [B, V] of float32, float16 or bfloat16. mask: None allows all. The others are numbers, or [B] in CPU memory.
    Neighbouring rows with equal values share launches. Temperature 0 leaves the logits as they are, as 1 does: only
    `find_tokens` is greedy at 0. Returns float32 [B, V] and int32 [B].
    """
    return torch.ops.tooldecode.masked_softmax(logits, mask, _sampling(temperature, top_k, top_p, min_p), False)


def masked_log_softmax(logits: torch.Tensor, mask: torch.Tensor | None = None, *, temperature: Any = 1.0, top_k: Any = 0,
                       top_p: Any = 1.0, min_p: Any = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The logarithms of `masked_softmax`, minus infinity elsewhere, and how many tokens are left."""
    return torch.ops.tooldecode.masked_softmax(logits, mask, _sampling(temperature, top_k, top_p, min_p), True)


def _check_choice(logits, positions, mask, sampling, seeds) -> None:
    _check_logits(logits, mask, sampling)
    if positions is not None:
        _check(positions, "positions", [logits.shape[0]], [torch.int64], like=logits)
    _require(seeds.shape[0] in (1, logits.shape[0]), "seed", f"must be a number, or [{logits.shape[0]}]")


@torch.library.custom_op(
    "tooldecode::find_tokens", mutates_args=(),
    schema="(Tensor logits, Tensor? positions, Tensor? mask, Tensor sampling, Tensor seeds, SymInt shift) -> Tensor")
def _find_tokens(logits, positions, mask, sampling, seeds, shift):
    _check_choice(logits, positions, mask, sampling, seeds)
    tokens = torch.empty(logits.shape[0], dtype=torch.int32, device=logits.device)
    size = _bytes("td_cuda_masked_softmax_workspace_bytes", logits.device, *logits.shape)
    with _on(logits) as stream:
        workspace = _Workspace(size, logits)
        batch = _logits(logits, mask, sampling, seeds)
        _call("td_cuda_find_tokens", ctypes.byref(batch), _pointer(positions), ctypes.c_int64(shift), _pointer(tokens),
              *workspace.arguments, stream)
    return tokens


@_find_tokens.register_fake
def _(logits, positions, mask, sampling, seeds, shift):
    _check_choice(logits, positions, mask, sampling, seeds)
    return logits.new_empty(logits.shape[0], dtype=torch.int32)


def find_tokens(logits: torch.Tensor, positions: torch.Tensor | None = None, mask: torch.Tensor | None = None, *,
                temperature: Any = 0.0, top_k: Any = 0, top_p: Any = 1.0, min_p: Any = 0.0, seed: Any = 0,
                shift: int = 0) -> torch.Tensor:
    """A token of each row, int32 [B]: the most likely one at temperature 0, else a draw; -1 if none is allowed.

    At temperature 0 cuts and seed make no difference; `masked_softmax` leaves the logits as they are there.

    positions: int64 [B], of the tokens to draw, each plus `shift`; the noise is that of seed and position, so rows with one
        seed draw independently if their positions differ. None only if every temperature is 0.
    temperature, top_k, top_p, min_p, seed: numbers, or [B] in CPU memory.
    """
    return torch.ops.tooldecode.find_tokens(logits, positions, mask, _sampling(temperature, top_k, top_p, min_p),
                                            _seeds(seed), shift)


# ---- products with a pruned head


def _check_head(weights, hidden, k, tokens, mask, whole) -> None:
    _check(weights, "weights", [None, None], _HALVES, dense=False)
    _check(hidden, "hidden", [None, weights.shape[1]], [weights.dtype], like=weights)
    _require(1 <= k <= 32, "k", "must be from 1 to 32", "invalid_option")
    if tokens is not None:
        _check(tokens, "tokens", [None if whole else weights.shape[0]], [torch.int32], like=weights)
        _require(tokens.shape[0] <= weights.shape[0], "tokens", "must be at most the rows of the head")
    if mask is not None:
        _check(mask, "mask", [hidden.shape[0], None], _WORDS, like=weights)


@torch.library.custom_op(
    "tooldecode::project_topk", mutates_args=(),
    schema="(Tensor weights, Tensor hidden, int k, Tensor? tokens, Tensor? mask, bool whole) -> (Tensor, Tensor, Tensor)")
def _project_topk(weights, hidden, k, tokens, mask, whole):
    _check_head(weights, hidden, k, tokens, mask, whole)
    states = hidden.shape[0]
    rows = weights.shape[0] if tokens is None else tokens.shape[0]
    words = 0 if mask is None else mask.shape[1]
    best = torch.empty((states, k), dtype=torch.int32, device=weights.device)
    logits = torch.empty((states, k), dtype=torch.float32, device=weights.device)
    sums = torch.empty(states, dtype=torch.float32, device=weights.device)
    size = _bytes("td_cuda_pruned_head_workspace_bytes", weights.device, states, rows, k, words)
    with _on(weights) as stream:
        workspace = _Workspace(size, weights)
        head = _Head(ctypes.sizeof(_Head), weights.data_ptr(), _DTYPES[weights.dtype], rows, weights.shape[1],
                     _row_stride(weights, "weights"), None if tokens is None else tokens.data_ptr(),
                     weights.shape[0] if whole else 0)
        _call("td_cuda_project_topk", ctypes.byref(head), _pointer(hidden), ctypes.c_int32(states), _pointer(mask),
              ctypes.c_int32(words), ctypes.c_int32(k), _pointer(best), _pointer(logits), _pointer(sums),
              *workspace.arguments, stream)
    return best, logits, sums


@_project_topk.register_fake
def _(weights, hidden, k, tokens, mask, whole):
    _check_head(weights, hidden, k, tokens, mask, whole)
    states = hidden.shape[0]
    return (hidden.new_empty((states, k), dtype=torch.int32), hidden.new_empty((states, k), dtype=torch.float32),
            hidden.new_empty(states, dtype=torch.float32))


def project_topk(weights: torch.Tensor, hidden: torch.Tensor, k: int, *, tokens: torch.Tensor | None = None,
                 mask: torch.Tensor | None = None, whole: bool = True) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The k most likely tokens of each hidden state among the rows of a pruned head.

    weights: [V, H] of float16 or bfloat16, the whole head, whose frequent rows are `tokens`; a mask that allows fewer
        tokens than these is answered with all that it allows. With `whole=False`: [K, H], a copy of the rows of `tokens`.
    hidden: [n, H]. tokens: int32 [K], all distinct; None: row i is token i. mask: int32 [n, W].
    Tokens must be from 0 to V - 1: they are data of the device and are not checked.
    Returns int32 [n, k], -1 past the last; float32 [n, k], their logits; float32 [n], the log-sum-exp of all allowed rows.
    """
    return torch.ops.tooldecode.project_topk(weights, hidden, k, tokens, mask, whole)


# ---- tree attention


class _Plan:
    """Tree attention of one shape, planned once."""

    def __init__(self, device: torch.device, *shape: Any) -> None:
        fields = _Shape(ctypes.sizeof(_Shape), *shape)
        self.handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.free = _library().td_cuda_tree_attention_free
        with _on(torch.empty(0, device=device)):
            _call("td_cuda_tree_attention_make", ctypes.byref(fields), ctypes.byref(self.handle))
            _call("td_cuda_tree_attention_workspace_bytes", ctypes.byref(fields), ctypes.byref(size))
        self.bytes = size.value

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.free(self.handle)


_plan = functools.lru_cache(maxsize=256)(_Plan)


def _check_cache(keys, values, pages, sequences: int, dtypes, like) -> None:
    _check(keys, "keys", [None if pages is not None else sequences, None, None, None], dtypes, like=like, dense=False)
    _check(values, "values", list(keys.shape), [keys.dtype], like=keys, dense=False)
    _require(_strides(keys) == _strides(values), "values", "must have the strides of keys")
    if pages is not None:
        _check(pages, "pages", [sequences, None], [torch.int32], like=keys)


def _cache(keys: torch.Tensor, values: torch.Tensor, pages: torch.Tensor | None) -> _Cache:
    page, slot, head, _ = _strides(keys)
    return _Cache(ctypes.sizeof(_Cache), keys.data_ptr(), values.data_ptr(), slot, head, page,
                  None if pages is None else pages.data_ptr(), 0 if pages is None else keys.shape[1],
                  0 if pages is None else pages.shape[1])


def _check_attention(queries, keys, values, ancestors, lengths, pages) -> None:
    _check(queries, "queries", [None, None, None, None], _HALVES)
    sequences, nodes, _, size = queries.shape
    _check_cache(keys, values, pages, sequences, [queries.dtype], queries)
    _require(keys.shape[3] == size, "keys", f"must have heads of {size} numbers")
    _check(ancestors, "ancestors", [sequences, nodes], [torch.int64], like=queries)
    _check(lengths, "lengths", [sequences], [torch.int32], like=queries)


@torch.library.custom_op(
    "tooldecode::tree_attention", mutates_args=(),
    schema="(Tensor queries, Tensor keys, Tensor values, Tensor ancestors, Tensor lengths, SymInt max_length, float scale, "
           "int slots, Tensor? pages) -> Tensor")
def _tree_attention(queries, keys, values, ancestors, lengths, max_length, scale, slots, pages):
    _check_attention(queries, keys, values, ancestors, lengths, pages)
    sequences, nodes, query_heads, size = queries.shape
    out = torch.empty_like(queries)
    _require(0 <= max_length < 1 << 31, "tree_attention: max_length", "must be from 0 to 2^31 - 1", "invalid_option")
    _require(0 <= slots <= _MAX_NODES, "tree_attention: slots", f"must be from 0 to {_MAX_NODES}", "invalid_option")
    _require(scale == 0 or _float32(scale) != 0, "tree_attention: scale",
             "is 0 in 32 bits, and 0 is 1 / sqrt(D)", "invalid_option")
    plan = _plan(queries.device, _DTYPES[queries.dtype], query_heads, keys.shape[2], size, scale, sequences, nodes,
                 max_length, slots)
    with _on(queries) as stream:
        workspace = _Workspace(plan.bytes, queries)
        _call("td_cuda_tree_attention_run", plan.handle, _pointer(queries), _pointer(ancestors), _pointer(lengths),
              ctypes.byref(_cache(keys, values, pages)), _pointer(out), *workspace.arguments, stream)
    return out


@_tree_attention.register_fake
def _(queries, keys, values, ancestors, lengths, max_length, scale, slots, pages):
    _check_attention(queries, keys, values, ancestors, lengths, pages)
    return torch.empty_like(queries)


def tree_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, ancestors: torch.Tensor,
                   lengths: torch.Tensor, max_length: int, *, scale: float = 0.0, slots: int = 0,
                   pages: torch.Tensor | None = None) -> torch.Tensor:
    """Attention of each node of a draft tree to the prefix of its sequence and to its ancestors, [B, N, Hq, D].

    queries: [B, N, Hq, D] of float16 or bfloat16, at most 64 nodes; D is 64, 96, 128 or 256.
    keys, values: [B, slots, Hkv, D], or with `pages` [pages, page size, Hkv, D]. Node i of a sequence of length L is in slot
        L + i.
    ancestors: int64 [B, N], bit j: the node sees slot L + j; 0: padding, which gets zeros.
    lengths: int32 [B], L. max_length: what work is divided for, once for each value: round it up. L may be greater.
    scale: factor of scores; 0: 1 / sqrt(D). slots: that ancestors may name; 0: N. pages: int32 [B, most pages].
    L + slots must fit into the slots, or into most pages * page size, and page numbers must be in range: these are data of the
    device and are not checked.
    """
    return torch.ops.tooldecode.tree_attention(queries, keys, values, ancestors, lengths, max_length, scale, slots, pages)


# ---- verification and compaction


class Verdicts(NamedTuple):
    """What verification accepts of each tree; the properties are views of `rows`, int32 [B, 131]."""

    rows: torch.Tensor

    @property
    def accepted(self) -> torch.Tensor:
        """[B] nodes of the path."""
        return self.rows[:, 0]

    @property
    def kept(self) -> torch.Tensor:
        """[B] slots of the cache that stay: the root's and the path's. Add it to the lengths."""
        return self.rows[:, 1]

    @property
    def emitted(self) -> torch.Tensor:
        """[B] tokens: the path's and the one after it."""
        return self.rows[:, 2]

    @property
    def path(self) -> torch.Tensor:
        """[B, 64] accepted nodes without the root, then -1."""
        return self.rows[:, 3 : 3 + _MAX_NODES]

    @property
    def tokens(self) -> torch.Tensor:
        """[B, 64] the path's and the one after it, then -1."""
        return self.rows[:, 3 + _MAX_NODES :]


def _check_trees(tokens, parents, ancestors, sizes, choices) -> None:
    _check(tokens, "tokens", [None, _MAX_NODES], [torch.int32])
    shape = list(tokens.shape)
    _check(parents, "parents", shape, [torch.int32], like=tokens)
    _check(ancestors, "ancestors", shape, [torch.int64], like=tokens)
    _check(sizes, "sizes", shape[:1], [torch.int32], like=tokens)
    _check(choices, "choices", shape, [torch.int32], like=tokens)


@torch.library.custom_op(
    "tooldecode::verify_trees", mutates_args=(),
    schema="(Tensor tokens, Tensor parents, Tensor ancestors, Tensor sizes, Tensor choices) -> Tensor")
def _verify_trees(tokens, parents, ancestors, sizes, choices):
    _check_trees(tokens, parents, ancestors, sizes, choices)
    rows = torch.empty((tokens.shape[0], _VERDICT), dtype=torch.int32, device=tokens.device)
    with _on(tokens) as stream:
        _call("td_cuda_verify_trees", _pointer(tokens), _pointer(parents), _pointer(ancestors), _pointer(sizes),
              _pointer(choices), _pointer(rows), ctypes.c_int32(tokens.shape[0]), stream)
    return rows


@_verify_trees.register_fake
def _(tokens, parents, ancestors, sizes, choices):
    _check_trees(tokens, parents, ancestors, sizes, choices)
    return tokens.new_empty((tokens.shape[0], _VERDICT))


def verify_trees(tokens: torch.Tensor, parents: torch.Tensor, ancestors: torch.Tensor, sizes: torch.Tensor,
                 choices: torch.Tensor) -> Verdicts:
    """Follows in each tree the tokens drawn after its nodes, as long as a child holds them.

    tokens, parents: int32 [B, 64]; ancestors: int64 [B, 64]. Node 0 is the last emitted token and its own parent, a parent's
        index is less than its children's, siblings hold different tokens, and a node's ancestors are its parent's and itself.
    sizes: int32 [B], nodes, the root included; 0 if there is no tree. choices: int32 [B, 64], drawn by `find_tokens`.
    """
    return Verdicts(torch.ops.tooldecode.verify_trees(tokens, parents, ancestors, sizes, choices))


def _check_compaction(keys, values, verdicts, lengths, pages) -> None:
    _check(verdicts, "verdicts", [None, _VERDICT], [torch.int32])
    sequences = verdicts.shape[0]
    _check(lengths, "lengths", [sequences], [torch.int32], like=verdicts)
    _require(len(keys) == len(values), "values", f"must be of {len(keys)} layers")
    for own_keys, own_values in zip(keys, values):
        _check_cache(own_keys, own_values, pages, sequences, _HALVES, verdicts)
        _require(all(stride != 0 for size, stride in zip(own_keys.shape, own_keys.stride()) if size > 1), "keys",
                 "must not overlap themselves: they are written to")
        _require(own_keys.shape[2:] == keys[0].shape[2:] and own_keys.dtype == keys[0].dtype, "keys",
                 "must have the type, the heads and their size of the first layer's")


@torch.library.custom_op(
    "tooldecode::compact_cache", mutates_args=("keys", "values"),
    schema="(Tensor(a!)[] keys, Tensor(b!)[] values, Tensor verdicts, Tensor lengths, Tensor? pages) -> ()")
def _compact_cache(keys, values, verdicts, lengths, pages):
    _check_compaction(keys, values, verdicts, lengths, pages)
    if not keys:
        return
    layers = (_Cache * len(keys))(*[_cache(own_keys, own_values, pages) for own_keys, own_values in zip(keys, values)])
    with _on(verdicts) as stream:
        _call("td_cuda_compact_cache", layers, ctypes.c_size_t(len(keys)), ctypes.c_int32(_DTYPES[keys[0].dtype]),
              ctypes.c_int32(verdicts.shape[0]), ctypes.c_int32(keys[0].shape[2]), ctypes.c_int32(keys[0].shape[3]),
              _pointer(verdicts), _pointer(lengths), stream)


@_compact_cache.register_fake
def _(keys, values, verdicts, lengths, pages):
    _check_compaction(keys, values, verdicts, lengths, pages)


def compact_cache(keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor], verdicts: Verdicts, lengths: torch.Tensor,
                  *, pages: torch.Tensor | None = None) -> None:
    """Moves the keys and values of accepted nodes to the slots after the root's, in place, in all layers.

    keys, values: of each layer, as in `tree_attention`. lengths: int32 [B] before this round; then `lengths += verdicts.kept`.
    L and the nodes of a tree must fit into the slots, or into most pages * page size, and page numbers must be in range: these
    are data of the device and are not checked.
    """
    torch.ops.tooldecode.compact_cache(list(keys), list(values), verdicts.rows, lengths, pages)
