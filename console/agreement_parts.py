"""What the pages, the API and the downloads tell of agreement, as plain values."""

from __future__ import annotations

from typing import Any

from annotation.agreement import AgreementReport, rounds_of, study_agreement
from annotation.disagreement import annotator_records, unit_records
from annotation.frames import judgment_frame
from annotation.models import Question, Study
from annotation.reassessment import round_agreement
from console.pair_matrix import pair_matrix
from presentation.progress import Progress

AGREEMENT, PAIRS, DISAGREEMENT, DISPUTES = "agreement", "pairs", "disagreement", "disputes"
Content = dict[str, Any]
EMPTY = {"n_units": 0, "n_disputed": 0, "statistic": "Agreement", "annotators": []}
# The annotators' agreement with the others, by what it is called at each level.
STATISTICS = {
    "loo_kappa": "Kappa with the other annotators",
    "loo_correlation": "Correlation with the other annotators' mean",
}


def agreement_parts(study: Study, progress: Progress) -> dict[str, Content]:
    """Coefficients, matrices and annotators for a page; all pairs and candidates beside them."""
    rounds = rounds_of(study) or [1]
    questions = list(study.questions.all())
    steps = [(round, question) for round in rounds for question in questions]
    reports = {round: study_agreement(study, round=round) for round in rounds}
    # Lists wherever order counts: PostgreSQL's JSON forgets the order of keys.
    judged: dict[int, list[Content]] = {round: [] for round in rounds}
    units: dict[int, Content] = {round: {} for round in rounds}
    for round, question in progress(steps, len(steps)):
        found = unit_records(question, round=round)
        units[round][question.name] = found
        judged[round].append(_of_question(question, round, found))
    first = reports[rounds[0]]
    page = {
        "round": first.round,
        "coefficients": first.records(),
        "rounds": [_of_round(reports[round], judged[round]) for round in rounds],
        "between_rounds": [
            record for across in round_agreement(study) for record in across.coefficient_records()
        ],
    }
    n_disputed = sum(row["n_disputed"] for found in judged.values() for row in found)
    return {
        AGREEMENT: page,
        DISPUTES: {"n_disputed": n_disputed},
        PAIRS: {"pairs": first.pair_records()},
        # JSON has no numbers for keys.
        DISAGREEMENT: {"rounds": {str(round): found for round, found in units.items()}},
    }


def _of_round(report: AgreementReport, questions: list[Content]) -> Content:
    return {
        "round": report.round,
        "n_flagged": report.n_flagged,
        "coefficients": report.coefficient_records(),
        "questions": questions,
    }


def _of_question(question: Question, round: int, units: list[dict[str, Any]]) -> Content:
    frame = judgment_frame(question.study, question=question)
    asked = frame[frame["round"] == round]
    named = {"question": question.name, "level": question.level}
    if asked.empty:
        nobody = {"statistic": "", "n_annotators": 0, "n_shown": 0, "pairs": []}
        return EMPTY | named | {"matrix": nobody}
    annotators = annotator_records(question, round=round)
    statistic = next(name for name in STATISTICS if name in annotators[0])
    agreements = [unit["agreement"] for unit in units if unit["agreement"] is not None]
    return named | {
        "n_units": len(units),
        "n_disputed": sum(agreement < 1 for agreement in agreements),
        "matrix": pair_matrix(question, asked).record(),
        "statistic": STATISTICS[statistic],
        "annotators": [
            row | {"agreement": row[statistic], "seconds": row["median_seconds"]}
            for row in annotators
        ],
    }
