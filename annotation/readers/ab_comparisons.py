"""A/B comparisons: which of two systems won, as names, sides and ties say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from django.utils.translation import ngettext

from annotation.readers.coded_table import CodedTable
from annotation.readers.policies import Reading
from annotation.readers.words import coded
from error_codes import CodedText

SIDES = ("model_a", "model_b", "winner")


def pairs_to_orders(
    cells: CodedTable,
    first: str,
    second: str,
    winner: str,
    reading: Reading,
    *,
    pair: str = "pair",
    value: str = "value",
) -> CodedTable:
    """A row per comparison: `pair` names both systems in one order, `value` is "a>b" or "a=b".

    A missing word in place of a winner stays.
    """
    columns = [cells.words(name).to_list() for name in (first, second, winner)]
    outcomes = comparison_outcomes(cells, first, second, winner, reading)
    pairs, values = [], []
    for one, other, said, won in zip(*columns, outcomes, strict=True):
        a, b = sorted((one, other))
        pairs.append(f"{a} | {b}")
        values.append(said if won is None else _order(one, other, a, b, won))
    return replace(cells, columns={**cells.columns, pair: coded(pairs), value: coded(values)})


def _order(one: str, other: str, a: str, b: str, won: int) -> str:
    if won == 0:
        return f"{a}={b}"
    return f"{one}>{other}" if won > 0 else f"{other}>{one}"


TIES = frozenset({"tie", "ties", "tied", "draw", "equal", "=", "both", "neither"})
BOTH_BAD = frozenset({"bothbad", "tiebothbad", "bothgood", "tiebothgood"})
FIRST = frozenset({"first", "a", "1", "left", "modela", "model1", "systema", "system1"})
SECOND = frozenset({"second", "b", "2", "right", "modelb", "model2", "systemb", "system2"})


def comparison_outcomes(
    cells: CodedTable, first: str, second: str, winner: str, reading: Reading
) -> list[int | None]:
    """1 if the first won, -1 if the second won, 0 for a tie, None for a missing word.

    A winner is a system's name, or a side's, or the name of its column, in any case; an empty
    one is a tie.
    """
    sides = [cells.words(name) for name in (first, second)]
    words = cells.words(winner)
    if n := int(words.mask(lambda text: not text).sum()):
        text = ngettext(
            "%(n)s empty winner was read as a tie.", "%(n)s empty winners were read as ties.", n
        )
        reading.report.note(CodedText(text % {"n": f"{n:,}"}, "empty_winner_is_tie"))
    known: dict[tuple[int, int, int], int | str | None] = {}
    outcomes: list[int | None] = []
    wrong = np.zeros(len(cells), dtype=np.bool_)
    codes = zip(sides[0].codes.tolist(), sides[1].codes.tolist(), words.codes.tolist(), strict=True)
    for row, key in enumerate(codes):
        if key not in known:
            one, other = (side.words[code] for side, code in zip(sides, key, strict=False))
            said = words.words[key[2]]
            is_missing = bool(said) and reading.policies.is_missing(said)
            known[key] = None if is_missing else _outcome(said, (one, first), (other, second))
        found = known[key]
        wrong[row] = isinstance(found, str)
        outcomes.append(None if isinstance(found, str) else found)
    if wrong.any():
        row = int(np.argmax(wrong))
        one, other = (side.words[side.codes[row]] for side in sides)
        raise cells.refuse(
            f"'{words.words[words.codes[row]]}' is neither '{one}' nor '{other}'. Write the "
            f"winner's name, its side ('{first}', '{second}'), or 'tie'.",
            winner,
            wrong,
            code="unknown_winner",
        )
    return outcomes


def _outcome(said: str, first: tuple[str, str], second: tuple[str, str]) -> int | str | None:
    """By names as they are written, then in any case, then by sides and ties."""
    for fold in (str, str.casefold):
        word = fold(said)
        # A name before a column's name: a system may be called "model_b".
        for at in (0, 1):
            is_first, is_second = (fold(side[at]) == word for side in (first, second))
            if is_first != is_second:
                return 1 if is_first else -1
    plain = "".join(each for each in said.casefold() if each.isalnum() or each == "=")
    if not said or plain in TIES or plain in BOTH_BAD:
        return 0
    if plain in FIRST:
        return 1
    return -1 if plain in SECOND else said
