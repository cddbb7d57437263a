"""Critiques in people's words for catalogues without attributes.

What somebody said of the pair of items whose difference is most like that of the two at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulation.captions import RelativeCaption, caption_words
from simulation.catalogue import Catalogue
from simulation.exceptions import CaptionsUnfit
from stats.arguments import Floats, Integers

N_DIRECTIONS = 32
LEAST_PAIRS = 20
CELLS_AT_ONCE = 4_000_000


class PairedCaptionCritic:
    """Says the caption of the pair whose difference has the highest cosine with this one's.

    Differences are taken in the catalogue's first 32 principal directions. Pairs with an item
    that is not in the catalogue are left out.
    """

    name = "human caption of the pair most alike"

    def __init__(
        self, catalogue: Catalogue, captions: Sequence[RelativeCaption], *, source: str = ""
    ) -> None:
        reference = catalogue.numbers([one.reference for one in captions])
        target = catalogue.numbers([one.target for one in captions])
        kept = np.flatnonzero((reference >= 0) & (target >= 0) & (reference != target))
        if len(kept) < LEAST_PAIRS:
            raise CaptionsUnfit(
                f"{source or 'The file'} has captions of {len(kept)} pairs of this catalogue's "
                f"items ({catalogue.source}), and {LEAST_PAIRS} are needed. A catalogue with "
                "attributes can do without pairs."
            )
        centred = catalogue.positions - catalogue.positions.mean(axis=0)
        _, _, rows = np.linalg.svd(centred.T @ centred)
        self.projected = centred @ rows[:N_DIRECTIONS].T
        self.pairs = self._differences(reference[kept], target[kept])
        self.captions = [captions[number].text for number in kept.tolist()]
        _, self.matrix = caption_words(self.captions)
        self.source = source

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        """Of the caption's words; 0 where the two are the same item."""
        vectors: Floats = self.matrix[self._numbers(shown, wanted)].toarray()
        vectors[shown == wanted] = 0.0
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        return [
            "is what I am looking for" if is_same else self.captions[number]
            for number, is_same in zip(
                self._numbers(shown, wanted).tolist(), shown == wanted, strict=True
            )
        ]

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "captions": len(self.captions), "source": self.source}

    def _differences(self, shown: Integers, wanted: Integers) -> Floats:
        gaps = self.projected[wanted] - self.projected[shown]
        length = np.sqrt((gaps**2).sum(axis=1, keepdims=True))
        return np.asarray(gaps / np.where(length > 0, length, 1.0))

    def _numbers(self, shown: Integers, wanted: Integers) -> Integers:
        differences = self._differences(shown, wanted)
        numbers = np.empty(len(differences), dtype=np.intp)
        step = max(1, CELLS_AT_ONCE // len(self.pairs))
        for low in range(0, len(differences), step):
            block = slice(low, low + step)
            # Rounded, so that another batch cannot turn a tie.
            likeness = np.round(differences[block] @ self.pairs.T, 10)
            numbers[block] = likeness.argmax(axis=1)
        return numbers
