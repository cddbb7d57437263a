"""Designs of paired comparisons: the two systems of each comparison, and which one is left."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations
from random import Random
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def draw_pairs(
    items: Sequence[Sequence[Name]], *, per_item: int | None = None, seed: int = 0
) -> list[list[tuple[Name, Name]]]:
    """The pairs of each item, as (left, right).

    Parameters
    ----------
    items : sequence of sequences
        The names of the systems that each item has, two at least, each once.
    per_item : int, optional
        Pairs per item, at most all of an item's systems; all of them without it.
    seed : int
        From which the order of items and of systems is drawn.

    Notes
    -----
    Each pair is one that was drawn least often so far, with the system that was left less often in
    this pair on the left; ties are broken by how often each system was drawn and was left. So, if
    all items have the same systems, each pair is drawn equally often, and each of its two orders,
    within one. Of 3 to 8 systems each system is also left and right equally often within one, with
    up to 10 pairs per item or all (shown by enumeration).

    Examples
    --------
    >>> draw_pairs([["a", "b", "c"]] * 3, per_item=1)
    [[('c', 'b')], [('a', 'c')], [('b', 'a')]]
    """
    rng = Random(seed)
    order = rng.sample(range(len(items)), len(items))
    names = list(dict.fromkeys(name for item in items for name in item))
    rng.shuffle(names)
    place = {name: number for number, name in enumerate(names)}
    drawn = _Drawn(is_odd=len(names) % 2 == 1)
    designs: list[list[tuple[Name, Name]]] = [[] for _item in items]
    for number in order:
        pairs = list(combinations(sorted(place[name] for name in items[number]), 2))
        for _pair in range(len(pairs) if per_item is None else min(per_item, len(pairs))):
            left, right = drawn.next_of(pairs)
            pairs.remove((min(left, right), max(left, right)))
            designs[number].append((names[left], names[right]))
    return designs


class _Drawn:
    """Counts of the pairs drawn so far; systems are numbers."""

    def __init__(self, *, is_odd: bool) -> None:
        self.is_odd = is_odd
        self.n_ordered: Counter[tuple[int, int]] = Counter()
        self.n_times: Counter[int] = Counter()
        # Times left less times right.
        self.lean: Counter[int] = Counter()

    def next_of(self, pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        both = [pair for a, b in pairs for pair in ((a, b), (b, a))]
        left, right = min(
            (pair for pair in both if self.n_ordered[pair] <= self.n_ordered[pair[::-1]]),
            key=self._rank,
        )
        self.n_ordered[left, right] += 1
        self.n_times.update((left, right))
        self.lean[left] += 1
        self.lean[right] -= 1
        return left, right

    def _rank(self, pair: tuple[int, int]) -> tuple[object, ...]:
        left, right = pair
        n = self.n_ordered[pair] + self.n_ordered[pair[::-1]]
        times = self.n_times[left], self.n_times[right]
        often = (max(times), sum(times))
        leans = abs(self.lean[left] + 1), abs(self.lean[right] - 1)
        # The order of the two that keeps sides within one, by enumeration.
        if self.is_odd:
            return n, *often, max(leans), sum(leans)
        return n, max(leans), *often, sum(leans)
