from itertools import combinations

from hypothesis import given, strategies as st

from stats.significance.letters import significance_groups

NAMES = "abcdef"
PAIRS = list(combinations(NAMES, 2))


def test_of_ordered_systems_only_distant_ones_differ():
    differing = [("A", "D"), ("A", "E"), ("B", "E")]
    assert significance_groups("ABCDE", differing) == [
        ("A", "B", "C"), ("B", "C", "D"), ("C", "D", "E"),
    ]  # fmt: skip
    assert significance_groups("AB", []) == [("A", "B")]
    assert significance_groups("AB", [("B", "A")]) == [("A",), ("B",)]
    assert significance_groups([], []) == []


@given(st.sets(st.sampled_from(PAIRS)))
def test_two_share_a_group_if_and_only_if_they_do_not_differ_and_no_group_can_grow(differing):
    groups = significance_groups(NAMES, differing)
    for pair in PAIRS:
        assert any(set(pair) <= set(group) for group in groups) == (pair not in differing)
    for group in groups:
        for name in set(NAMES) - set(group):
            assert any({name, other} in map(set, differing) for other in group)
    assert groups == sorted(groups)
