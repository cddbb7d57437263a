"""What a reader must know beside the numbers of a comparison of qrels."""

from collections.abc import Iterator

from error_codes import CodedText
from presentation.counts import count_of
from retrieval.rankings.assessors import NO_CHOICE, ONE_EACH
from retrieval.rankings.compared_sets import ComparedSets
from retrieval.rankings.records import QrelsComparison
from stats.inference.two_way_bootstrap import LEAST_ASSESSORS
from stats.ranking.resampled_topics import UNMOVED
from stats.ranking.topic_means import LEAST_TOPICS

FEW_SYSTEMS = 10


def notes(compared: QrelsComparison, sets: ComparedSets) -> Iterator[str]:
    yield from _of_topics(compared, sets)
    yield from _of_rules(compared)
    yield from _of_systems(compared)
    if (
        compared.crossed
        and max(each.mean.n_annotators for each in compared.crossed) < LEAST_ASSESSORS
    ):
        yield CodedText(
            f"below {LEAST_ASSESSORS} assessors limits of means with both resampled are a rough "
            "guide; those of topics x assessors allow for few",
            code="few_assessors",
        )
    if any(each.reason == ONE_EACH for each in compared.crossed):
        yield ONE_EACH
        yield NO_CHOICE
    if "union" in sets.grades and "majority" not in sets.grades:
        yield CodedText(
            "no document has three judgments, so that a majority would be the intersection",
            code="no_majority",
        )


def _of_rules(compared: QrelsComparison) -> Iterator[str]:
    """Which qrels are the same judgments by several rules."""
    names: dict[str, list[str]] = {}
    for one in compared.qrels:
        if whose := compared.settings.judgments.get(one.name):
            names.setdefault(whose, []).append(one.name)
    for whose, of_one in names.items():
        if len(of_one) > 1:
            yield CodedText(
                f"{', '.join(of_one)} are the same judgments ({whose}) by several rules, and count "
                f"as one assessor, by {of_one[0]}",
                code="same_judgments",
            )


def _of_topics(compared: QrelsComparison, sets: ComparedSets) -> Iterator[str]:
    if compared.n_topics < LEAST_TOPICS:
        yield CodedText(
            f"below {LEAST_TOPICS} topics intervals are a rough guide", code="few_topics"
        )
    for name, n in sets.n_left_out.items():
        if n and name in sets.grades:
            yield CodedText(
                f"{name} has {count_of(n, 'topic')} that not all have, which nothing here counts",
                code="topics_not_shared",
            )


def _of_systems(compared: QrelsComparison) -> Iterator[str]:
    n = compared.pairs[0].tau_b.n_systems
    if 2 <= n <= FEW_SYSTEMS:
        n_pairs = n * (n - 1) // 2
        yield CodedText(
            f"{count_of(n, 'system')} have {count_of(n_pairs, 'pair')}: tau-b is coarse, and moves "
            f"by {2 / n_pairs:.2f} with one swap",
            code="few_systems",
        )
    coefficients = ((pair.tau_b, pair.tau_ap, pair.rbo) for pair in compared.pairs)
    if any(one.reason == UNMOVED for three in coefficients for one in three):
        yield CodedText(
            "where a coefficient has no interval every sample of topics gives the same value: that "
            "is no certainty, since new topics may be unlike all of these",
            code="no_interval",
        )
    p = compared.settings.rbo_p
    yield CodedText(
        f"ranks below the {count_of(n, 'system')}, where all agree, weigh {p**n:.2f} in "
        f"rank-biased overlap with p = {p:g}",
        code="rank_biased_tail",
    )
