"""Constraints that are kept for requests to come, without the states and masks of memory that was given up."""
from __future__ import annotations

import collections
import threading
from collections.abc import Hashable
from typing import Any

from . import Constraint

__all__ = ["Known", "KnownConstraints", "shares_memory"]


def shares_memory(one: Constraint, other: Constraint) -> bool:
    """Whether two constraints of a vocabulary keep their states and masks in the same memory, which only grows. Others are
    taken for sharing it if they happen to have grown alike."""
    before = one.memory_bytes
    return before <= other.memory_bytes <= one.memory_bytes


class Known:
    """A constraint, and what it forces, by state."""

    __slots__ = ("__weakref__", "constraint", "forced")

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.forced: dict[Any, list[int]] = {}

    def renew(self) -> bool:
        """Goes over to other memory if this has grown past the vocabulary's limit; whether it did."""
        renewed = self.constraint.renew()
        if renewed.initial() == self.constraint.initial():
            return False
        # States are those of one memory.
        self.constraint, self.forced = renewed, {}
        return True


class KnownConstraints:
    """The constraints of one vocabulary that were asked for last, at most `most`, for any number of threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[Hashable, Known] = collections.OrderedDict()
        self._newest: Known | None = None

    def get(self, key: Hashable) -> tuple[Constraint, dict[Any, list[int]]] | None:
        """The constraint for a new text, and what it forces."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return None
            self._known.move_to_end(key)
            if known.renew():
                self._renew_all()
            return known.constraint, known.forced

    def _renew_all(self) -> None:
        """One that is not asked for again would keep the old memory."""
        for known in self._known.values():
            known.renew()
        if self._newest is not None:
            self._newest.renew()

    def add(self, key: Hashable, constraint: Constraint) -> tuple[Constraint, dict[Any, list[int]]]:
        """Keeps a constraint that was made for a text. Where it is the first in new memory, those of older memory go."""
        made = Known(constraint)
        with self._lock:
            if self._newest is not None and not shares_memory(self._newest.constraint, constraint):
                self._known.clear()
            self._newest = self._known[key] = made
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
            return made.constraint, made.forced

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self._newest = None
