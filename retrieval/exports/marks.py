"""The mark of simulated answers in qrels.

It is in column 2, which trec_eval does not evaluate: it stays with the lines, whatever happens to
the file. A comment or a fifth column would make other programs refuse the file.
"""

SIMULATED, UNMARKED = "simulated", "0"
PREFIX = f"{SIMULATED}-"


def iteration_of(is_simulated: bool) -> str:
    """Column 2 of qrels."""
    return SIMULATED if is_simulated else UNMARKED


def assessor_name(name: str, is_simulated: bool) -> str:
    """Column 2 of each assessor's grades."""
    return f"{PREFIX}{name}" if is_simulated else name


def is_simulated_name(name: str) -> bool:
    """Whether column 2 has the mark.

    Examples
    --------
    >>> [is_simulated_name(name) for name in ("0", "simulated", "simulated-A12", "A12")]
    [False, True, True, False]
    """
    return name == SIMULATED or name.startswith(PREFIX)
