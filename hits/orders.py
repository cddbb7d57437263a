"""Orders in which the pages of an item show its candidates.

`order_rows` computes the balanced orders when a HIT is published. A page picks its row by the slot
of its assignment. `shown_order` does in Python what `ordered` in `templates/worker_page/page.js`
does in the browser: a test compares them (docs/adr/0023-orders-by-slots.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

LATIN_SQUARE, FIXED = "latin_square", "fixed"
# The slot of an assignment in its HIT, in the address of a page on Assay's marketplace.
SLOT = "assaySlot"


def balanced_orders(n: int) -> list[list[int]]:
    """The rows of a Williams design of n treatments: n rows for an even n, 2n for an odd n.

    Every n rows from a multiple of n on are a Latin square. In the whole design each treatment also
    directly follows each other one equally often. Source: Williams (1949), Experimental designs
    balanced for the estimation of residual effects of treatments, Australian Journal of Scientific
    Research A 2, 149-168.
    """
    first = [(position + 1) // 2 if position % 2 else -position // 2 for position in range(n)]
    rows = [[(place + turn) % n for place in first] for turn in range(n)]
    return rows + [row[::-1] for row in rows] if n % 2 else rows


def order_rows(is_check: Sequence[bool], seed: str, first_slot: int = 0) -> list[list[int]]:
    """Indices into the candidates of a page, a row per slot, for the slots from `first_slot` on.

    Quality checks have the same place in all rows, so that the candidates are balanced among
    themselves and over the places of the page.
    """
    own = [index for index, each in enumerate(is_check) if not each]
    turn = int.from_bytes(sha256(seed.encode()).digest()[:4]) % len(own)
    rows = []
    for order in balanced_orders(len(own)):
        shown = iter(own[(place + turn) % len(own)] for place in order)
        rows.append([index if each else next(shown) for index, each in enumerate(is_check)])
    first = first_slot % len(rows)
    return rows[first:] + rows[:first]


def shown_order(task: Mapping[str, Any], assignment_id: str, slot: int | None = None) -> list[str]:
    """The blind keys of a page's candidates in the order that this assignment shows.

    Without a slot, as on marketplaces that give none, a hash of the assignment's id picks the row.
    """
    keys, order = list(task["candidates"]), task["order"]
    if order["policy"] == FIXED:
        return keys
    drawn = _fnv1a(f"{order['seed'] or ''}{assignment_id}")
    if rows := order.get("rows"):
        return [keys[index] for index in rows[(drawn if slot is None else slot) % len(rows)]]
    return _shuffled(keys, drawn)


def _fnv1a(text: str) -> int:
    """The 32-bit FNV-1a hash of a text, by code points."""
    value = 2166136261
    for character in text:
        value = (value ^ ord(character)) * 16777619 & 0xFFFFFFFF
    return value


def _shuffled(keys: list[str], seed: int) -> list[str]:
    """Fisher-Yates on mulberry32, whose numbers are of 32 bits."""
    for last in range(len(keys) - 1, 0, -1):
        seed = (seed + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = (seed ^ seed >> 15) * (1 | seed) & 0xFFFFFFFF
        mixed ^= mixed + ((mixed ^ mixed >> 7) * (61 | mixed) & 0xFFFFFFFF) & 0xFFFFFFFF
        other = (mixed ^ mixed >> 14) * (last + 1) >> 32
        keys[last], keys[other] = keys[other], keys[last]
    return keys


def is_even(orders: Iterable[Sequence[str]]) -> bool:
    """Whether the places of each candidate differ by at most one submission, as close as a number
    of submissions that is no multiple of the number of candidates allows."""
    orders = list(orders)
    counts = Counter((place, key) for order in orders for place, key in enumerate(order))
    keys = {key for order in orders for key in order}
    times = [counts[place, key] for place in range(len(keys)) for key in keys]
    return not times or max(times) - min(times) <= 1
