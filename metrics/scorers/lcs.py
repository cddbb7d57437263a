"""Longest common subsequence by bit-parallel dynamic programming on Python integers.

References
----------
.. [1] H. Hyyrö (2004). Bit-parallel LCS-length computation revisited. AWOCA, 16-27.
"""

from collections.abc import Mapping, Sequence


def positions(sequence: Sequence[str]) -> dict[str, int]:
    """Map each token to a bit mask of where it stands (bit ``i`` for index ``i``).

    Parameters
    ----------
    sequence : sequence of str, length n

    Returns
    -------
    dict of str to int
        One mask of n bits for each distinct token.

    Examples
    --------
    >>> positions(["a", "b", "a"])
    {'a': 5, 'b': 2}
    """
    masks: dict[str, int] = {}
    for index, token in enumerate(sequence):
        masks[token] = masks.get(token, 0) | 1 << index
    return masks


def lcs_length(masks: Mapping[str, int], length: int, other: Sequence[str]) -> int:
    """Length of the longest common subsequence of two sequences.

    Parameters
    ----------
    masks : mapping of str to int
        `positions` of the first sequence.
    length : int
        Number of tokens of the first sequence.
    other : sequence of str, length m
        The second sequence.

    Returns
    -------
    int
        In m steps, each on integers of `length` bits.

    References
    ----------
    .. [1] H. Hyyrö (2004). Bit-parallel LCS-length computation revisited. AWOCA, 16-27.

    Examples
    --------
    >>> lcs_length(positions(["a", "b", "c", "d"]), 4, ["b", "x", "d"])
    2
    """
    full = (1 << length) - 1
    row = full
    for token in other:
        mask = masks.get(token)
        if mask is not None:
            hit = row & mask
            row = ((row + hit) | (row - hit)) & full
    return length - row.bit_count()


def lcs_indices(sequence: Sequence[str], other: Sequence[str]) -> list[int]:
    """Where, in the first of two sequences, one longest common subsequence stands.

    Of several longest ones it takes that of rouge-score's backtracking: from the ends, a match is
    taken; else a step back in `other` where that loses nothing and the other step would; else a
    step back in `sequence`.

    Parameters
    ----------
    sequence : sequence of str, length n
    other : sequence of str, length m

    Returns
    -------
    list of int
        Increasing indices into `sequence`.

    References
    ----------
    .. [1] rouge-score 0.1.2, ``rouge_scorer.py``, ``_backtrack_norec``.

    Examples
    --------
    >>> lcs_indices(["a", "b", "c", "d"], ["b", "x", "d"])
    [1, 3]
    """
    rows = _rows(sequence, other)

    def common(i: int, j: int) -> int:
        return i - (rows[j] & ((1 << i) - 1)).bit_count()

    i, j = len(sequence), len(other)
    indices: list[int] = []
    while i > 0 and j > 0:
        if sequence[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            indices.append(i)
        elif common(i, j - 1) > common(i - 1, j):
            j -= 1
        else:
            i -= 1
    return indices[::-1]


def _rows(sequence: Sequence[str], other: Sequence[str]) -> list[int]:
    """Row j has a 0 at bit i where token i lengthens the LCS with the first j of `other`."""
    masks = positions(sequence)
    full = (1 << len(sequence)) - 1
    rows = [full]
    for token in other:
        hit = rows[-1] & masks.get(token, 0)
        rows.append(((rows[-1] + hit) | (rows[-1] - hit)) & full)
    return rows
