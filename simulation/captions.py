"""Critiques in people's words: the nearest human caption to what a critic would say.

A file of relative captions has for pairs of items what somebody said of the second, relative to the
first: Shoes' ``relative_captions_shoes.json`` (ImageName, ReferenceImageName, RelativeCaption) or
FashionIQ's ``cap.dress.train.json`` (target, candidate, captions).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotation.readers.rows import unstorable
from presentation.files import plain_file, reason_of
from simulation.catalogue_files import UNREADABLE
from simulation.critics import Critic
from simulation.exceptions import CaptionsUnfit
from stats.arguments import Floats, Integers

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


LEAST_CAPTIONS_OF_A_WORD = 3
SHOES = ("ReferenceImageName", "ImageName", "RelativeCaption")
FASHION_IQ = ("candidate", "target", "captions")
"""The fields of either layout: the item referred to, the one described, and the text or texts."""


@dataclass(frozen=True)
class RelativeCaption:
    """What somebody said of an item, relative to another; ids are as the file has them."""

    text: str
    reference: str = ""
    target: str = ""


def read_captions(path: Path) -> list[RelativeCaption]:
    """The captions of a file in either layout, in its order."""
    try:
        rows = json.loads(plain_file(path).read_text(encoding="utf-8"))
    except UNREADABLE as error:
        raise CaptionsUnfit(f"{path.name} cannot be read: {reason_of(error)}.") from None
    if not isinstance(rows, list) or not rows:
        raise CaptionsUnfit(f"{path.name} is not a JSON list of captions.")
    captions: list[RelativeCaption] = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict) and isinstance(row.get(SHOES[2]), str):
            texts, pair = [row[SHOES[2]]], (row.get(SHOES[0]), row.get(SHOES[1]))
        elif isinstance(row, dict) and isinstance(row.get(FASHION_IQ[2]), list):
            texts, pair = row[FASHION_IQ[2]], (row.get(FASHION_IQ[0]), row.get(FASHION_IQ[1]))
        else:
            raise CaptionsUnfit(
                f"Entry {number} of {path.name} has neither {SHOES[2]} nor {FASHION_IQ[2]}."
            )
        for text in texts:
            if problem := unstorable(str(text)):
                raise CaptionsUnfit(f"Entry {number} of {path.name}: {problem}")
        reference, target = (str(one or "") for one in pair)
        captions += [RelativeCaption(str(one).strip(), reference, target) for one in texts]
    kept = [one for one in captions if one.text]
    if not kept:
        raise CaptionsUnfit(f"{path.name} holds no caption.")
    return kept


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
