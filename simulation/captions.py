"""Critiques in people's words: the nearest human caption to what a critic would say.

A file of relative captions has for pairs of items what somebody said of the second, relative to the
first: Shoes' ``relative_captions_shoes.json`` (ImageName, ReferenceImageName, RelativeCaption) or
FashionIQ's ``cap.dress.train.json`` (target, candidate, captions).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from error_codes import CodedText
from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.exceptions import CaptionsUnfit
from stats.arguments import Floats, Integers

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

LEAST_CAPTIONS_OF_A_WORD = 3
SHOES = ("ReferenceImageName", "ImageName", "RelativeCaption")
FASHION_IQ = ("candidate", "target", "captions")
"""The fields of either layout: the item referred to, the one described, and the text or texts."""
NO_TEXT = CodedText("the caption is empty", "empty_caption")


@dataclass(frozen=True)
class RelativeCaption:
    """What somebody said of an item, relative to another; ids are as the file has them."""

    text: str
    reference: str = ""
    target: str = ""


def read_captions(path: Path, *, report: ReadingReport | None = None) -> list[RelativeCaption]:
    """The captions of a file in either layout, in its order; the report counts empty ones."""
    report = report or ReadingReport()
    captions: list[RelativeCaption] = []
    try:
        for row in each_row(path, report=report):
            reference, target, texts = _caption_texts(row)
            kept = [text for text in texts if text]
            captions += [RelativeCaption(text, reference, target) for text in kept]
            if not kept:
                report.leave_out(NO_TEXT, row.place)
            elif n := len(texts) - len(kept):
                report.leave_out_part(NO_TEXT, row.place, n)
    except ImportRefused as refused:
        raise CaptionsUnfit(refused.statement, code=refused.code) from None
    if not captions:
        raise CaptionsUnfit(f"{path.name} has no captions.")
    return captions


def _caption_texts(row: Row) -> tuple[str, str, list[str]]:
    """The item referred to, the item described, and the texts."""
    for reference, target, text in (SHOES, FASHION_IQ):
        value = row.fields.get(text)
        if isinstance(value, str | list):
            values = value if isinstance(value, list) else [value]
            inside = row.child({str(n): each for n, each in enumerate(values)}, text)
            texts = [inside.text(name).strip() for name in inside.fields]
            return row.text(reference), row.text(target), texts
    raise row.refuse(f"there is neither {SHOES[2]} nor {FASHION_IQ[2]}.", code="no_caption")


def caption_words(captions: Sequence[str]) -> tuple[TfidfVectorizer, Any]:
    """Their words that a few captions have, and each caption's vector of length 1; all words where
    captions are few, or none of their words comes often."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    for least in (LEAST_CAPTIONS_OF_A_WORD, 1) if len(captions) > 100 else (1,):
        words = TfidfVectorizer(min_df=least, sublinear_tf=True)
        with suppress(ValueError):  # no word is left
            return words, words.fit_transform(captions)
    raise CaptionsUnfit(
        "The captions hold no word of two letters or more, which critiques are compared by."
    )


class CaptionCritic:
    """Says what another critic would, in the human caption that is nearest to it by TF-IDF.

    A vector is that of the caption's words, of length 1, as people's captions hold them; where no
    caption shares a word with the critique, its own words are said. What a caption says beside the
    difference comes with it, and may be untrue of the item: so it is with people's words elsewhere.
    """

    def __init__(self, critic: Critic, captions: Sequence[str], *, source: str = "") -> None:
        if not captions:
            raise ValueError("captions must not be empty")
        self.critic, self.source = critic, source
        self.captions = list(dict.fromkeys(captions))
        self.words, self.matrix = caption_words(self.captions)
        self.nearest: dict[str, int] = {}
        self.name = f"nearest human caption to {critic.name}"

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        texts = self.critic.texts(shown, wanted)
        numbers = self._numbers(texts)
        vectors = np.zeros((len(texts), self.width))
        has = numbers >= 0
        if has.any():
            vectors[has] = self.matrix[numbers[has]].toarray()
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        texts = self.critic.texts(shown, wanted)
        numbers = self._numbers(texts).tolist()
        return [
            self.captions[number] if number >= 0 else text
            for number, text in zip(numbers, texts, strict=True)
        ]

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "captions": len(self.captions),
            "source": self.source,
            "of": self.critic.record(),
        }

    def _numbers(self, texts: Sequence[str]) -> Integers:
        """The nearest caption of each text, -1 where none shares a word; the first of equals."""
        if new := [text for text in dict.fromkeys(texts) if text not in self.nearest]:
            likeness = (self.words.transform(new) @ self.matrix.T).toarray()
            found = np.where(likeness.max(axis=1) > 0, likeness.argmax(axis=1), -1)
            self.nearest.update(zip(new, found.tolist(), strict=True))
        return np.array([self.nearest[text] for text in texts], dtype=np.intp)


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
