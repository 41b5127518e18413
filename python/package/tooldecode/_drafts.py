"""What the drafters of both engines guess from a request's own tokens."""
from __future__ import annotations

import numpy as np

__all__ = ["draft_of_history", "guess_of_history"]

_LONGEST = 16  # tokens of history that are compared


def guess_of_history(tokens: np.ndarray, room: int) -> list[int]:
    """What followed the latest of the longest earlier occurrences of the last tokens, at most as many tokens as agree and
    one more; empty without an occurrence. tokens [L], of which there is one or more.

    Complexity O(L)."""
    last = len(tokens) - 1
    places = np.flatnonzero(tokens[:last] == tokens[last])  # of the last token, earlier
    if room <= 0 or len(places) == 0:
        return []
    length = 1
    while length < _LONGEST:
        longer = places[places >= length]
        longer = longer[tokens[longer - length] == tokens[last - length]] if length <= last else longer[:0]
        if len(longer) == 0:
            break
        places, length = longer, length + 1
    begin = int(places[-1]) + 1
    size = min(room, length + 1 if length > 1 else 1)
    return tokens[begin : begin + size].tolist()


def draft_of_history(tokens: np.ndarray, room: int) -> list[int]:
    """The guess of history, and the last token where there is none, so that the grammar is asked: never empty for room > 0.
    tokens [L].

    Complexity O(L)."""
    return guess_of_history(tokens, room) or ([int(tokens[-1])] if room > 0 else [])
