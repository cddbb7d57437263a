"""Which items a batch is of, and how a sample of them is drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any

from annotation.models.studies import ItemQuerySet
from hits.exceptions import BatchUnfit
from hits.models import Batch, Hit

# Of Batch.selection: nothing stands for all items, those imported later too.
ALL_ITEMS: dict[str, Any] = {}
REST: dict[str, Any] = {"rest": True}
MOST_NAMED = 5

Row = tuple[int, str, str]
"""An item's primary key, key and condition."""


def sample(n_items: int, seed: int) -> dict[str, Any]:
    """A selection of so many items, drawn by the seed from those without a HIT."""
    return {"n": n_items, "seed": seed}


def listed(keys: Iterable[str]) -> dict[str, Any]:
    """A selection of items by their keys."""
    return {"keys": list(dict.fromkeys(keys))}


def items_without_hit(batch: Batch) -> ItemQuerySet:
    """The study's items that no batch of this round and connection has, a draft's too."""
    beside = Hit.objects.filter(batch__in=Batch.objects.parts_beside(batch).order_by())
    return batch.study.items.exclude(pk__in=beside.values("item"))


def selected_items(draft: Batch) -> list[int]:
    """The items that a draft would get HITs for, in the study's order."""
    rows: list[Row] = list(items_without_hit(draft).values_list("pk", "key", "condition"))
    if "keys" in draft.selection:
        return _listed(draft, rows)
    if "n" in draft.selection:
        drawn = draw(rows, n_items=draft.selection["n"], seed=draft.selection["seed"])
        return [pk for pk, _, _ in rows if pk in drawn]
    return [pk for pk, _, _ in rows]


def draw(rows: Sequence[Row], *, n_items: int, seed: int) -> set[int]:
    """So many items by the seed, spread over the conditions as evenly as there are items.

    An item's rank rests on its key alone, so that one imported later changes no other's.
    """
    if not 1 <= n_items <= len(rows):
        available = f"{len(rows):,} {'item' if len(rows) == 1 else 'items'}"
        raise BatchUnfit(
            f"{n_items} items cannot be drawn: {available} without a HIT. Choose 1 to {len(rows)}."
        )
    by_condition: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: sha256(f"{seed}\n{row[1]}".encode()).digest()):
        by_condition[row[2]].append(row)
    in_turn = chain.from_iterable(zip_longest(*by_condition.values()))
    return {row[0] for row in [row for row in in_turn if row is not None][:n_items]}


def _listed(draft: Batch, rows: Sequence[Row]) -> list[int]:
    """Those of the listed keys, or BatchUnfit with all that are unknown or have a HIT."""
    keys = set(draft.selection["keys"])
    matches = [pk for pk, key, _ in rows if key in keys]
    missing = sorted(keys - {key for _, key, _ in rows})
    if not missing:
        return matches
    known = set(draft.study.items.filter(key__in=missing).values_list("key", flat=True))
    raise BatchUnfit(" ".join(_missing_messages(missing, known)))


def _missing_messages(missing: Sequence[str], known: set[str]) -> Iterable[str]:
    if unknown := [key for key in missing if key not in known]:
        yield f"The study has no item {_named(unknown)}."
    if taken := [key for key in missing if key in known]:
        yield f"A HIT of this round is there already for {_named(taken)}."


def _named(keys: Sequence[str]) -> str:
    names = ", ".join(f"'{key}'" for key in keys[:MOST_NAMED])
    return f"{names} and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else names
