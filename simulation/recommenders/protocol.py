"""What a recommender does for many dialogues at once."""

from __future__ import annotations

from typing import Any, Protocol

from stats.arguments import Floats, Integers


class Recommender(Protocol):
    """What it knows of a dialogue is a row of numbers, so that dialogues can share a beginning.

    Shapes: start, seed, shown (n,); state (n, width); critique (n, width of the critic's vectors);
    excluded (n, any) of items not to be ranked, filled up with -1; ranked (n, depth).
    """

    @property
    def name(self) -> str: ...

    def reset(self, start: Integers, seed: Integers) -> Floats:
        """The state of dialogues that begin with these items; the seed is for what is drawn."""
        ...

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        """The state after a critique of the item that was shown."""
        ...

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        """The best items, best first."""
        ...

    def record(self) -> dict[str, Any]:
        """What it is, with its settings, as a result keeps it."""
        ...
