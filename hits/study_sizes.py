"""Size, cost and precision of a study as its draft plans it, while the draft is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import combinations, islice
from math import ceil, comb

import numpy as np
from django.core.cache import cache
from django.db.models import Q

from annotation.models import Candidate, Judgment, Question, Study
from annotation.pairs import item_sizes
from annotation.protocols.fields import CANDIDATE
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import range_of
from hits.costs import CENT
from hits.models import Batch
from hits.wages import SUGGESTED_HOURLY_USD, duration_of, reward_for, study_texts, wage_of
from stats.arguments import Floats
from stats.inference.crossed_means import MeanOfCells
from stats.inference.larger_studies import (
    FamilyOfMeans,
    least_of_design,
    variances_of_means,
)
from stats.inference.sample_sizes import least_difference
from stats.inference.two_systems import difference_of_systems, ordered_comparison

POWER, ALPHA = 0.8, 0.05
# HITs that an annotator does on average unless the protocol has a lower maximum; as in rehearsals.
HITS_PER_ANNOTATOR = 10
# One annotator's ratings of two responses to an item differ with this standard deviation, as a
# share of the scale: 0.29 to 0.36 in the pairs of systems of the LMStyle benchmark (0-100, crowd),
# 0.35 in the interactive track of DSTC9 (1-5, crowd). A fifth of the variance is taken as the
# items'. A win counts 1 and a loss -1, of which the variance without ties is 1.
ASSUMED_SD, ASSUMED_ITEM_SHARE = 0.35, 0.2
# As results: with fewer items no two systems are said to differ.
LEAST_ITEMS = 5
# Enough for the variances; a request takes some tenths of a second for them, once.
MOST_JUDGMENTS, MOST_PAIRS = 20_000, 45


@dataclass(frozen=True)
class Precision:
    """The smallest difference of two systems that the study distinguishes with 80 % power, all
    pairs of systems tested. `source` is `pilot`, `rehearsal` or `assumed`."""

    question: ProtocolQuestion
    difference: float
    n_systems: int
    n_items: int
    n_annotators: int
    source: str
    n_judgments: int = 0

    @property
    def is_win_rate(self) -> bool:
        return self.question.options.is_comparison

    @property
    def win_percent(self) -> float:
        return 50 + 50 * self.difference

    @property
    def scale(self) -> tuple[float, float]:
        return range_of(self.question)

    @property
    def is_possible(self) -> bool:
        """Whether the scale has room for the difference."""
        low, high = (0.0, 1.0) if self.is_win_rate else self.scale
        return self.difference <= high - low

    @property
    def alpha(self) -> float:
        return ALPHA / comb(self.n_systems, 2)

    @property
    def sd_of_items(self) -> float:
        """The standard deviation of items' differences with which a paired t test of as many items
        distinguishes the same difference, so that the page on sample sizes continues from here."""
        return self.difference / least_difference(1.0, self.n_items, power=POWER, alpha=self.alpha)


@dataclass(frozen=True)
class StudySize:
    """`n_items` are those that were imported, of which pairs make several HITs."""

    n_items: int
    n_hits: int
    n_annotators: int
    reward_usd: Decimal
    hourly_usd: Decimal
    least_hourly_usd: Decimal | None
    has_practice: bool
    precision: Precision | None

    @property
    def n_hits_per_item(self) -> float:
        return self.n_hits / max(self.n_items, 1)

    @property
    def n_assignments(self) -> int:
        return self.n_hits * self.n_annotators

    @property
    def cost_usd(self) -> Decimal:
        return self.reward_usd * self.n_assignments

    @property
    def is_paid_too_little(self) -> bool:
        return self.least_hourly_usd is not None and self.hourly_usd < self.least_hourly_usd


def study_size(study: Study, document: ProtocolDocument) -> StudySize:
    texts = study_texts(study)
    duration = duration_of(study, texts, document)
    floor_usd = study.team.wage_floor_usd if study.team else None
    last = Batch.objects.of(study).started().filter(is_recruited=False).order_by("-pk").first()
    suggested_usd = max(reward_for(floor_usd or SUGGESTED_HOURLY_USD, duration), CENT)
    reward_usd = last.reward_usd if last else suggested_usd
    sizes = item_sizes(study)
    n_hits = sizes.n_items if document.pairs is None else sizes.n_pairs(document.pairs)
    n_systems, n_shared = _paired_items(
        study, (texts.of_candidates["n"], texts.of_candidates["last"])
    )
    if document.pairs is not None:
        n_shared = round(n_hits / max(comb(n_systems, 2), 1))
    elif sizes.n_items != texts.of_items["n"]:
        n_shared = sizes.n_items  # as saved the items are pairs still
    return StudySize(
        n_items=sizes.n_items,
        n_hits=n_hits,
        n_annotators=document.completion.assignments_per_item,
        reward_usd=reward_usd,
        hourly_usd=wage_of(reward_usd, duration).typical_usd,
        least_hourly_usd=floor_usd,
        has_practice=document.qualifications.practice is not None,
        precision=_precision(study, document, n_hits, n_systems, n_shared),
    )


def _precision(
    study: Study, document: ProtocolDocument, n_hits: int, n_systems: int, n_items: int
) -> Precision | None:
    """Of two systems that share so many items. None if no question rates or compares responses,
    or if there are fewer than two systems."""
    question = next((each for each in document.study_questions if _is_of_systems(each)), None)
    if question is None or n_systems < 2:
        return None
    n_each = document.completion.assignments_per_item
    most = document.qualifications.most_hits_per_worker or HITS_PER_ANNOTATOR
    n_annotators = max(n_each, ceil(n_hits * n_each / min(most, HITS_PER_ANNOTATOR)))
    source, n_judgments, variances = _variances(study, question)
    difference = least_of_design(
        variances,
        n_items=n_items,
        n_annotators=max(n_each, min(n_annotators, n_items * n_each)),
        n_each=n_each,
        power=POWER,
        alpha=ALPHA / comb(n_systems, 2),
    )
    if np.isnan(difference):
        return None
    return Precision(question, difference, n_systems, n_items, n_annotators, source, n_judgments)


def _is_of_systems(question: ProtocolQuestion) -> bool:
    kind = question.options
    if kind.is_comparison:
        return question.kind != "selection"
    has_order = question.kind != "category" or question.level == "ordinal"
    is_number = not kind.is_text and question.kind != "categories" and has_order
    return is_number and question.about == CANDIDATE


def _paired_items(study: Study, candidates: tuple[int, int | None]) -> tuple[int, int]:
    """How many systems there are, and how many items two of them share on average."""
    key = f"paired-items:{study.pk}:{candidates[0]}:{candidates[1]}"
    found: tuple[int, int] | None = cache.get(key)
    if found is None:
        rows = Candidate.objects.filter(item__study=study.pk).exclude(system="").order_by()
        pairs = list(rows.values_list("item_id", "system"))
        found = _shared_items(*zip(*pairs, strict=True)) if pairs else (0, 0)
        cache.set(key, found)
    return found


def _shared_items(items: tuple[int, ...], systems: tuple[str, ...]) -> tuple[int, int]:
    names, system = np.unique(systems, return_inverse=True)
    ids, item = np.unique(items, return_inverse=True)
    has = np.zeros((len(ids), len(names)))
    has[item, system] = 1
    shared = (has.T @ has)[np.triu_indices(len(names), 1)]
    return len(names), round(float(shared[shared > 0].mean())) if shared.any() else 0


def _variances(study: Study, question: ProtocolQuestion) -> tuple[str, int, FamilyOfMeans]:
    """Of the pilot, else of the rehearsal, else assumed."""
    for source, answered in (("pilot", study), ("rehearsal", getattr(study, "rehearsal", None))):
        if answered is not None and (found := _measured_variances(answered, question)):
            return source, *found
    low, high = range_of(question)
    total = 1.0 if question.options.is_comparison else (ASSUMED_SD * (high - low)) ** 2
    items = ASSUMED_ITEM_SHARE * total
    return "assumed", 0, FamilyOfMeans(items=items, annotators=0.0, cells=total - items)


def _measured_variances(
    study: Study, question: ProtocolQuestion
) -> tuple[int, FamilyOfMeans] | None:
    """Cached per version of the judgments; None if there are too few."""
    if not study.judgments_version:
        return None
    low, high = range_of(question)
    scale = sha256(repr((question.name, question.kind, low, high)).encode()).hexdigest()[:16]
    key = f"difference-variances:{study.pk}:{study.judgments_version}:{scale}"
    found: tuple[int, FamilyOfMeans] | tuple[()] | None = cache.get(key)
    if found is None:
        found = _estimated_variances(study, question) or ()
        cache.set(key, found)
    return found or None


def _estimated_variances(
    study: Study, question: ProtocolQuestion
) -> tuple[int, FamilyOfMeans] | None:
    low, high = range_of(question)
    stored = Question.objects.filter(
        study=study.pk, name=question.name, scale_min=low, scale_max=high
    ).first()
    if stored is None:
        return None
    rows = Judgment.objects.of(study).accepted().filter(question=stored, value__lte=stored.highest)
    rows = rows.filter(~Q(candidate__system=""), candidate__isnull=False).order_by("-pk")
    fields = ("submission__item_id", "submission__annotator_id", "candidate__system", "value")
    judgments = list(rows.values_list(*fields)[:MOST_JUDGMENTS])
    if not judgments:
        return None
    item, annotator, system, value = (np.array(column) for column in zip(*judgments, strict=True))
    is_order = question.options.is_comparison
    means = islice(_compared(item, annotator, system, value, is_order=is_order), MOST_PAIRS)
    variances = variances_of_means([mean for mean in means if mean.n_items >= LEAST_ITEMS])
    if variances is None or not variances.items + variances.cells > 0:
        return None
    return len(judgments), variances


def _compared(
    item: Floats, annotator: Floats, system: Floats, value: Floats, *, is_order: bool
) -> Iterator[MeanOfCells]:
    """Pairs of systems, as results compare them: by order where candidates are compared."""
    for one, other in combinations(np.unique(system), 2):
        rows = (system == one) | (system == other)
        shared = np.intersect1d(item[system == one], item[system == other])
        rows &= np.isin(item, shared)
        if not len(shared):
            continue
        pair = (item[rows], annotator[rows], system[rows] == one, value[rows])
        if not is_order:
            yield difference_of_systems(*pair)
        elif (compared := ordered_comparison(*pair)) is not None:
            yield compared.lead
