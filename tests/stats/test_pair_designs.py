from collections import Counter
from itertools import combinations

import pytest

from stats.pair_designs import draw_pairs


def spread(counts, keys) -> int:
    times = [counts[key] for key in keys]
    return max(times) - min(times)


@pytest.mark.parametrize("n", range(3, 9))
def test_pairs_and_sides_are_equally_frequent_within_one(n):
    systems = [f"s{number}" for number in range(n)]
    ordered = [pair for a, b in combinations(systems, 2) for pair in ((a, b), (b, a))]
    n_pairs = len(ordered) // 2
    for per_item in {1, 2, min(5, n_pairs - 1), min(10, n_pairs - 1), None}:
        for n_items in (1, 2, 7, n_pairs, 40):
            designs = draw_pairs([systems] * n_items, per_item=per_item, seed=n_items)
            drawn = Counter(pair for pairs in designs for pair in pairs)
            unordered = Counter(frozenset(pair) for pair in drawn.elements())
            assert spread(unordered, map(frozenset, ordered)) <= 1
            assert spread(drawn, ordered) <= 1
            left, right = (Counter(pair[side] for pair in drawn.elements()) for side in (0, 1))
            assert max(abs(left[name] - right[name]) for name in systems) <= 1
            for pairs in designs:
                assert len({frozenset(pair) for pair in pairs}) == (per_item or n_pairs)


def test_pairs_of_items_with_missing_systems_are_among_those_that_are_there():
    items = [["a", "b", "c"], ["a", "c"], ["b", "c"]] * 20
    designs = draw_pairs(items, per_item=2, seed=3)
    assert [len(pairs) for pairs in designs] == [2, 1, 1] * 20
    assert all(
        {*pair} <= {*item} for item, pairs in zip(items, designs, strict=True) for pair in pairs
    )
    assert designs == draw_pairs(items, per_item=2, seed=3)
    assert designs != draw_pairs(items, per_item=2, seed=4)
