"""Counts in what commands say: the noun agrees with its number."""


def count_of(n: int, singular: str, plural: str = "") -> str:
    """The number with its noun.

    >>> count_of(1, "assignment"), count_of(2500, "study", "studies")
    ('1 assignment', '2,500 studies')
    """
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"
