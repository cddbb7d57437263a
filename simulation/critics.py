"""What a user says of an item, relative to the one in mind: as a vector, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from error_codes import CodedText
from simulation.catalogue import Attribute, Catalogue
from simulation.exceptions import CaptionsUnfit, CatalogueUnfit
from stats.arguments import Floats, Integers

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


class Critic(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        """(n, width): what recommenders observe."""
        ...

    def texts(self, shown: Integers, wanted: Integers) -> list[str]: ...

    def record(self) -> dict[str, Any]: ...


class AttributeCritic:
    """Names the attributes in which the wanted item differs most, in words.

    Of an attribute whose values have an order it says which way ("has a higher heel"), of others
    the value ("is red"). Equal differences go by a fixed order of the attributes: the one that
    fewest items share comes first.
    """

    name = "attribute differences"

    def __init__(self, catalogue: Catalogue, *, n_named: int = 2) -> None:
        if catalogue.attributes is None:
            raise CatalogueUnfit("This catalogue has no attributes to critique items by.")
        if n_named < 1:
            raise ValueError(f"n_named must be at least 1, not {n_named}")
        self.attributes, self.n_named = catalogue.attributes, n_named
        self.features = _features(self.attributes.kinds)
        self.offsets = np.cumsum(
            [0, *(1 if kind.is_ordered else len(kind.values) for kind in self.attributes.kinds)]
        )
        self.rank = _by_rarity(self.attributes.codes)

    @property
    def width(self) -> int:
        return len(self.features)

    def named(self, shown: Integers, wanted: Integers) -> Integers:
        """(n, n_named), -1 if fewer attributes differ."""
        codes = self.attributes.codes
        gaps = np.abs(codes[wanted] - codes[shown]).astype(np.float64)
        for column, kind in enumerate(self.attributes.kinds):
            span = max(1, len(kind.values) - 1)
            gaps[:, column] = gaps[:, column] / span if kind.is_ordered else gaps[:, column] > 0
        order = np.lexsort((np.broadcast_to(self.rank, gaps.shape), -gaps), axis=1)
        first = order[:, : self.n_named]
        return np.where(np.take_along_axis(gaps, first, axis=1) > 0, first, -1)

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        """1 for each value that is wished for (or wished more of), -1 for each that should go."""
        codes = self.attributes.codes
        vectors = np.zeros((len(shown), self.width))
        for column in self.named(shown, wanted).T:
            for number, kind in enumerate(self.attributes.kinds):
                rows = np.flatnonzero(column == number)
                has, wants = codes[shown[rows], number], codes[wanted[rows], number]
                offset = self.offsets[number]
                if kind.is_ordered:
                    vectors[rows, offset] = np.sign(wants - has)
                else:
                    vectors[rows, offset + has] = -1.0
                    vectors[rows, offset + wants] = 1.0
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        named = self.named(shown, wanted)
        return [
            self._text(attributes, self.attributes.codes[a], self.attributes.codes[b])
            for attributes, a, b in zip(named.tolist(), shown, wanted, strict=True)
        ]

    def _text(self, named: Sequence[int], has: Integers, wants: Integers) -> str:
        words = []
        for number in named:
            if number == -1:
                continue
            kind = self.attributes.kinds[number]
            if kind.is_ordered:
                words.append(kind.more if wants[number] > has[number] else kind.less)
            else:
                words.append(f"is {kind.values[wants[number]]}")
        return " and ".join(words) or "is what I am looking for"

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "n_named": self.n_named}


def _features(kinds: Sequence[Attribute]) -> list[str]:
    return [
        name
        for kind in kinds
        for name in (
            [kind.name] if kind.is_ordered else [f"{kind.name} {value}" for value in kind.values]
        )
    ]


def _by_rarity(codes: Integers) -> Integers:
    commonest = [np.bincount(column).max() for column in codes.T]
    return np.asarray(np.argsort(np.argsort(commonest, kind="stable"), kind="stable"))


class DirectionCritic:
    """For catalogues without attributes: which way the wanted item lies in the space, coarsely.

    Of the catalogue's principal directions those are named in which the two differ most, with the
    sign alone. It is a stand-in for words: what recommenders learn of it holds for no text.
    """

    name = "principal directions"

    def __init__(self, catalogue: Catalogue, *, n_directions: int = 16, n_named: int = 3) -> None:
        if n_directions < 1 or n_named < 1:
            raise ValueError("n_directions and n_named must be at least 1")
        centred = catalogue.positions - catalogue.positions.mean(axis=0)
        _, _, rows = np.linalg.svd(centred.T @ centred)
        projected = centred @ rows[:n_directions].T
        spread = projected.std(axis=0)
        self.projected = projected[:, spread > 1e-9] / spread[spread > 1e-9]
        self.n_named = min(n_named, self.width)

    @property
    def width(self) -> int:
        return int(self.projected.shape[1])

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        gaps = self.projected[wanted] - self.projected[shown]
        first = np.argsort(-np.abs(gaps), axis=1, kind="stable")[:, : self.n_named]
        vectors: Floats = np.zeros_like(gaps)
        np.put_along_axis(vectors, first, np.sign(np.take_along_axis(gaps, first, 1)), axis=1)
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        return [_directions(row) for row in self.vectors(shown, wanted)]

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "n_directions": self.width, "n_named": self.n_named}


def _directions(vector: Floats) -> str:
    words = [
        f"{'more' if vector[at] > 0 else 'less'} of direction {at + 1}"
        for at in np.flatnonzero(vector)
    ]
    return " and ".join(words) or "is what I am looking for"


def critic_of(catalogue: Catalogue) -> Critic:
    return (
        DirectionCritic(catalogue) if catalogue.attributes is None else AttributeCritic(catalogue)
    )


LEAST_CAPTIONS_OF_A_WORD = 3
SHOES = ("ReferenceImageName", "ImageName", "RelativeCaption")
# Fields of either layout: the item referred to, the item described, the text or texts.
FASHION_IQ = ("candidate", "target", "captions")
NO_TEXT = CodedText("the caption is empty", "empty_caption")


@dataclass(frozen=True)
class RelativeCaption:
    text: str
    reference: str = ""
    target: str = ""


def read_captions(path: Path, *, report: ReadingReport | None = None) -> list[RelativeCaption]:
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
    for reference, target, text in (SHOES, FASHION_IQ):
        value = row.fields.get(text)
        if isinstance(value, str | list):
            values = value if isinstance(value, list) else [value]
            inside = row.child({str(n): each for n, each in enumerate(values)}, text)
            texts = [inside.text(name).strip() for name in inside.fields]
            return row.text(reference), row.text(target), texts
    raise row.refuse(f"there is neither {SHOES[2]} nor {FASHION_IQ[2]}.", code="no_caption")


def caption_words(captions: Sequence[str]) -> tuple[TfidfVectorizer, Any]:
    """TF-IDF vectors of length 1. All words count if captions are few, or if no word is common."""
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
        return [
            self.captions[number] if number >= 0 else text
            for number, text in zip(self._numbers(texts).tolist(), texts, strict=True)
        ]

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "captions": len(self.captions),
            "source": self.source,
            "of": self.critic.record(),
        }

    def _numbers(self, texts: Sequence[str]) -> Integers:
        """The first of the nearest captions; -1 if none shares a word."""
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
        """TF-IDF of the caption; 0 if both are the same item."""
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
