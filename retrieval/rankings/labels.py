"""How far the labels of two sets agree on the documents that both judged."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from retrieval.rankings.assessor_records import AssessorsAgreement, LabelComparison
from retrieval.rankings.label_sets import LabelSets
from stats.agreement import cohen_kappa, krippendorff_alpha
from stats.agreement.specific import relevant_overlap
from stats.arguments import Integers, pairs_within


def labels_compared(
    sets: LabelSets, names: Sequence[str], confidence: float
) -> Iterator[LabelComparison]:
    """Overlap and kappa of every two of the named sets, clustered by topic."""
    for first, second in combinations(names, 2):
        topic, one, other = sets.shared(first, second)
        relevant = one > 0, other > 0
        kappa = cohen_kappa(*relevant, clusters=topic, confidence=confidence)
        grades = np.union1d(one, other)
        of_grades = weighted = None
        if len(grades) > 2:
            of_grades = cohen_kappa(one, other, clusters=topic, confidence=confidence)
            weighted = cohen_kappa(
                one,
                other,
                weights="linear",
                # grades that neither gave are steps between those given, too
                categories=range(int(grades[0]), int(grades[-1]) + 1),
                clusters=topic,
                confidence=confidence,
            )
        yield LabelComparison(
            first,
            second,
            relevant_overlap(*relevant, topic, confidence=confidence),
            kappa,
            of_grades,
            weighted,
            len(np.unique(topic)),
            grades.tolist(),
            _counts(one, other, grades),
        )


def assessors_agree(sets: LabelSets, confidence: float) -> AssessorsAgreement:
    """How far any two assessors of a document agree, whoever they are."""
    pair, number, grade = sets.judgments()
    topic, relevant = sets.topic_of(pair), grade > 0
    document = np.unique(pair, return_inverse=True)[1]
    one, other = pairs_within(document, len(pair))
    return AssessorsAgreement(
        len(sets.names),
        relevant_overlap(relevant[one], relevant[other], topic[one], confidence=confidence),
        krippendorff_alpha(pair, number, relevant, clusters=topic, confidence=confidence),
    )


def _counts(one: Integers, other: Integers, grades: Integers) -> list[list[int]]:
    """Documents by the grade of the first set, a row each, and of the second."""
    table = np.zeros((len(grades), len(grades)), dtype=np.intp)
    np.add.at(table, (np.searchsorted(grades, one), np.searchsorted(grades, other)), 1)
    counts: list[list[int]] = table.tolist()
    return counts
