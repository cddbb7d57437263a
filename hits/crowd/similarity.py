"""How good simulated annotators take candidates to be, by similarity, by system or at random."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from statistics import fmean

from PIL import Image, UnidentifiedImageError

from annotation.models import Candidate, Item, Picture, Study

# What the qualities of an item's candidates rest on, the first that tells them apart.
REFERENCE, CONTEXT, TEXTS, PICTURES, RANDOM = "reference", "context", "texts", "pictures", "random"
# An item's key and a candidate's; "" is the item itself.
QualityKey = tuple[str, str]
# Of the whole scale of qualities, from 0 to 1.
SPREAD, SPREAD_BESIDE_PLANTED, PLANTED_SPREAD = 0.7, 0.35, 0.5
HASH_SIDE = 8
# Larger pictures would take too much memory to be read.
MOST_PIXELS = 20_000_000


@dataclass(frozen=True)
class Qualities:
    """`values` from 0 to 1, by item and candidate; `basis` is what most items' rest on.

    No system is better than another by its similarity: its mean is subtracted, so that systems
    differ only in what is planted.
    """

    values: Mapping[QualityKey, float]
    basis: str


def study_qualities(study: Study, *, seed: int, planted: Sequence[str] = ()) -> Qualities:
    """The qualities of a study's candidates. `planted` are systems, the best first."""
    items = list(
        study.items.select_related("picture").prefetch_related("candidates__picture").all()
    )
    raw: dict[QualityKey, float] = {}
    bases: dict[str, list[QualityKey]] = defaultdict(list)
    for item in items:
        basis, similarities = _similarities(item, seed)
        for candidate in item.candidates.all():
            key = item.key, candidate.key
            raw[key] = similarities[candidate.key]
            bases[basis].append(key)
    places = {key: place for keys in bases.values() for key, place in _places(keys, raw).items()}
    values = _by_system(
        places,
        {
            (item.key, candidate.key): candidate.system
            for item in items
            for candidate in item.candidates.all()
        },
        planted,
    )
    for item in items:
        values[item.key, ""] = 0.2 + 0.6 * _random(seed, item.key).random()
    basis = max(bases, key=lambda name: len(bases[name]), default=RANDOM)
    return Qualities(values, basis)


def shared_words(text: str, target: str) -> float:
    """The words that two texts share, of all words of either."""
    words, targets = set(text.lower().split()), set(target.lower().split())
    return len(targets & words) / len(targets | words) if targets | words else 0.0


def _similarities(item: Item, seed: int) -> tuple[str, dict[str, float]]:
    candidates = list(item.candidates.all())
    for basis, target in ((REFERENCE, item.reference), (CONTEXT, item.context)):
        shared = {each.key: shared_words(each.text, target) for each in candidates}
        if _says_something(shared):
            return basis, shared
    mutual = {each.key: _mean_shared(each, candidates) for each in candidates}
    if _says_something(mutual):
        return TEXTS, mutual
    hashes = {each.key: _average_hash(each.picture) for each in candidates if each.picture}
    if len([one for one in hashes.values() if one is not None]) == len(candidates):
        target_hash = _average_hash(item.picture) if item.picture else None
        likeness = {key: _likeness(key, hashes, target_hash) for key in hashes}
        if _says_something(likeness):
            return PICTURES, likeness
    chance = _random(seed, item.key, RANDOM)
    return RANDOM, {each.key: chance.random() for each in candidates}


def _says_something(similarities: Mapping[str, float]) -> bool:
    """Whether they tell candidates apart; a single one is compared with other items'."""
    values = similarities.values()
    return any(values) and (len(values) == 1 or len(set(values)) > 1)


def _mean_shared(candidate: Candidate, candidates: Sequence[Candidate]) -> float:
    others = [each for each in candidates if each.pk != candidate.pk]
    return fmean(shared_words(candidate.text, each.text) for each in others) if others else 0.0


def _likeness(
    key: str, hashes: Mapping[str, Sequence[bool] | None], target: Sequence[bool] | None
) -> float:
    own = hashes[key] or ()
    others = [one for name, one in hashes.items() if name != key and one is not None]
    compared = [target] if target is not None else others
    return fmean(_equal_share(own, other) for other in compared) if compared else 0.5


def _equal_share(first: Sequence[bool], second: Sequence[bool]) -> float:
    return fmean(one == other for one, other in zip(first, second, strict=True))


@cache
def _hash_of(sha256: str, content: bytes) -> tuple[bool, ...] | None:
    try:
        with Image.open(BytesIO(content)) as image:
            if image.width * image.height > MOST_PIXELS:
                return None
            grey = image.convert("L").resize((HASH_SIDE, HASH_SIDE))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None
    pixels = list(grey.tobytes())
    return tuple(pixel > fmean(pixels) for pixel in pixels)


def _average_hash(picture: Picture) -> tuple[bool, ...] | None:
    """Which of 64 fields of the picture are lighter than its mean; None if it cannot be read, as a
    drawing (SVG) cannot."""
    return _hash_of(picture.sha256, bytes(picture.content))


def _places(keys: Sequence[QualityKey], raw: Mapping[QualityKey, float]) -> dict[QualityKey, float]:
    """Each one's place in the order of all, from 0 to 1: similarities of few shared words are
    small, and would make all answers low."""
    counts = Counter(raw[key] for key in keys)
    below, places = 0, {}
    for value in sorted(counts):
        places[value] = (below + counts[value] / 2) / len(keys)
        below += counts[value]
    return {key: places[raw[key]] for key in keys}


def _by_system(
    places: Mapping[QualityKey, float], systems: Mapping[QualityKey, str], planted: Sequence[str]
) -> dict[QualityKey, float]:
    of_system: dict[str, list[float]] = defaultdict(list)
    for key, place in places.items():
        of_system[systems[key]].append(place)
    means = {system: fmean(values) for system, values in of_system.items()}
    spread = SPREAD_BESIDE_PLANTED if planted else SPREAD
    last = max(len(planted) - 1, 1)
    offsets = {
        system: PLANTED_SPREAD * (0.5 - place / last) for place, system in enumerate(planted)
    }
    return {
        key: 0.5 + offsets.get(systems[key], 0.0) + spread * (place - means[systems[key]])
        for key, place in places.items()
    }


def _random(seed: int, *names: Iterable[str]) -> random.Random:
    return random.Random(":".join(map(str, (seed, *names))))
