"""What the pages, the API and the downloads tell of agreement, as plain values."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotation.agreement import AgreementReport, rounds_of, study_agreement
from annotation.agreement_versions import UnitTable, write_units
from annotation.disagreement import annotator_records, unit_table
from annotation.frames import judgment_frame
from annotation.models import Study
from annotation.reassessment import round_agreement
from console.pair_matrix import pair_matrix
from presentation.progress import Progress

AGREEMENT, PAIRS = "agreement", "pairs"
Content = dict[str, Any]
EMPTY = {"n_units": 0, "n_disputed": 0, "statistic": "Agreement", "annotators": []}
# The annotators' agreement with the others, by what it is called at each level.
STATISTICS = {
    "loo_kappa": "Kappa with the other annotators",
    "loo_correlation": "Correlation with the other annotators' mean",
}


def agreement_parts(study: Study, progress: Progress) -> dict[str, Content]:
    """Coefficients, matrices and annotators for a page, and all pairs beside them.

    The candidates are written as rows, which the pages of disagreement and disputes read.
    """
    judgments_version = Study.objects.get(pk=study.pk).judgments_version
    rounds = rounds_of(study) or [1]
    frame = judgment_frame(study)
    questions = list(study.questions.all())
    steps = [(round, question) for round in rounds for question in questions]
    reports = {round: study_agreement(study, round=round, frame=frame) for round in rounds}
    # Lists wherever order counts: PostgreSQL's JSON forgets the order of keys.
    judged: dict[int, list[Content]] = {round: [] for round in rounds}
    tables = []
    for round, question in progress(steps, len(steps)):
        units = UnitTable(question, round, unit_table(question, round=round, frame=frame))
        tables.append(units)
        judged[round].append(_of_question(units, frame))
    first = reports[rounds[0]]
    page = {
        "round": first.round,
        "coefficients": first.records(),
        "rounds": [_of_round(reports[round], judged[round]) for round in rounds],
        "between_rounds": [
            record
            for across in round_agreement(study, frame=frame)
            for record in across.coefficient_records()
        ],
    }
    write_units(study=study, judgments_version=judgments_version, tables=tables)
    return {AGREEMENT: page, PAIRS: {"pairs": first.pair_records()}}


def _of_round(report: AgreementReport, questions: list[Content]) -> Content:
    return {
        "round": report.round,
        "n_flagged": report.n_flagged,
        "coefficients": report.coefficient_records(),
        "questions": questions,
    }


def _of_question(units: UnitTable, frame: pd.DataFrame) -> Content:
    question, round = units.question, units.round
    asked = frame[(frame["question"] == question.name) & (frame["round"] == round)]
    named = {"question": question.name, "level": question.level}
    if asked.empty:
        nobody = {"statistic": "", "n_annotators": 0, "n_shown": 0, "pairs": []}
        return EMPTY | named | {"matrix": nobody}
    annotators = annotator_records(question, round=round, frame=asked)
    statistic = next(name for name in STATISTICS if name in annotators[0])
    return named | {
        "n_units": len(units.rows),
        "n_disputed": units.n_disputed,
        "matrix": pair_matrix(question, asked).record(),
        "statistic": STATISTICS[statistic],
        "annotators": [
            row | {"agreement": row[statistic], "seconds": row["median_seconds"]}
            for row in annotators
        ],
    }
