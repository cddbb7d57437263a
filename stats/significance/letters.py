from collections.abc import Iterable, Sequence


def significance_groups(
    names: Sequence[str], differing: Iterable[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """The groups of a compact letter display: two names share a group if they do not differ.

    Parameters
    ----------
    names
        Systems, best first; their order is that of the groups and of the names in a group.
    differing
        Pairs of names that differ significantly.

    Returns
    -------
    list of tuple of str
        Largest groups without a pair that differs, by their first names. Their number can grow
        fast with that of the names, if the differing pairs have no order.

    References
    ----------
    Piepho, H.-P. (2004). An algorithm for a letter-based representation of all-pairwise
    comparisons. Journal of Computational and Graphical Statistics 13, 456-466.

    Examples
    --------
    >>> significance_groups(["a", "b", "c"], [("a", "c")])
    [('a', 'b'), ('b', 'c')]
    """
    groups = {frozenset(names)} if names else set[frozenset[str]]()
    for pair in differing:
        split = {group for group in groups if group.issuperset(pair)}
        groups = (groups - split) | {group - {name} for group in split for name in pair}
        groups = {group for group in groups if not any(group < other for other in groups)}
    place = {name: number for number, name in enumerate(names)}
    return sorted(
        (tuple(sorted(group, key=place.__getitem__)) for group in groups),
        key=lambda group: [place[name] for name in group],
    )
