"""Applies masks to logits."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._types import Error

__all__ = ["apply_mask"]


def apply_mask(logits: Any, mask: Any, rows: Sequence[int] | None = None) -> None:
    """Sets the logits of tokens that a mask does not allow to minus infinity, in place.

    logits: [V] or [rows, V] of float16, float32, float64 or bfloat16 (in NumPy: viewed as uint16); each row is
    contiguous. mask: int32 or uint32, [rows, W] with one mask per row of logits, or [W] for all rows.
    rows: the rows to change, as in fill_masks (None: all).

    Logits past the words of a mask are not allowed; words past the logits are not read. CPU arrays, of the kinds that
    Constraint accepts, are changed without a copy and without the GIL. Torch tensors may be on any device; the mask is
    copied there. Errors are those of fill_mask, and are raised before anything is written.
    """
    device = getattr(getattr(logits, "device", None), "type", "cpu")
    if device == "cpu" and not getattr(logits, "requires_grad", False):
        _core.apply_mask(logits, mask, rows)
    else:
        _apply_on_device(logits, mask, rows)


def _tensor_of(mask: Any) -> Any:
    """Copies an array of words to a torch tensor."""
    import torch

    try:
        view = memoryview(mask)
    except TypeError:
        raise Error("unknown_format", "mask", "must be a tensor of torch, or offer the buffer protocol") from None
    if not isinstance(mask, bytearray) and (view.itemsize != 4 or view.format.lstrip("@=<") not in ("i", "I", "l", "L")):
        raise Error("unknown_format", "mask/dtype", f"{view.format}: must be int32 or uint32")
    words = torch.frombuffer(bytearray(view), dtype=torch.int32) if view.nbytes else torch.empty(0, dtype=torch.int32)
    return words if isinstance(mask, bytearray) else words.reshape(view.shape)


def _apply_on_device(logits: Any, mask: Any, rows: Sequence[int] | None) -> None:
    """apply_mask with torch, on any device."""
    import torch

    if not isinstance(logits, torch.Tensor):
        raise Error("unknown_format", "logits", "must be a tensor of torch where it is not in the CPU's memory")
    if not logits.dtype.is_floating_point:
        raise Error("unknown_format", "logits/dtype", f"{logits.dtype}: must be a floating type")
    words = mask if isinstance(mask, torch.Tensor) else _tensor_of(mask)
    if words.dtype is getattr(torch, "uint32", None):
        words = words.view(torch.int32)
    if words.dtype is not torch.int32:
        raise Error("unknown_format", "mask/dtype", f"{words.dtype}: must be int32 or uint32")
    if logits.ndim not in (1, 2):
        raise Error("shape_mismatch", "logits/shape", f"{list(logits.shape)}: must be [rows, V] or [V]")
    if words.ndim not in (1, 2):
        raise Error("shape_mismatch", "mask/shape", f"{list(words.shape)}: must be [rows, W] or [W]")
    table = logits if logits.ndim == 2 else logits[None]
    chosen = list(range(len(table))) if rows is None else [int(row) for row in rows]
    if rows is None and words.ndim == 2 and len(words) != len(table):
        raise Error("shape_mismatch", "mask/shape", f"{list(words.shape)}: must be as many rows as logits, {len(table)}, "
                                                    "or one mask without rows")
    known = len(table) if words.ndim == 1 else min(len(table), len(words))
    for i, row in enumerate(chosen):
        if not 0 <= row < known:
            raise Error("shape_mismatch", f"rows/{i}", f"{row}: must be below the number of rows, of logits and of masks")
    if len(set(chosen)) != len(chosen):
        twice = next(i for i, row in enumerate(chosen) if row in chosen[:i])
        raise Error("invalid_option", f"rows/{twice}", "must be named once")
    if not chosen or not table.shape[1]:
        return
    if words.ndim == 2 and rows is not None:
        words = words[torch.tensor(chosen, device=words.device)]
    words = words.to(logits.device)
    bits = torch.arange(32, dtype=torch.int32, device=words.device)
    removed = ((words.unsqueeze(-1) >> bits) & 1).logical_not().flatten(-2)  # [rows, 32 W] or [32 W]
    width, rest = table.shape[1], table.shape[1] - removed.shape[-1]
    removed = torch.nn.functional.pad(removed, (0, rest), value=True) if rest > 0 else removed[..., :width]
    if rows is None:
        table.masked_fill_(removed, float("-inf"))
    else:
        index = torch.tensor(chosen, device=table.device)
        table.index_copy_(0, index, table.index_select(0, index).masked_fill_(removed, float("-inf")))
