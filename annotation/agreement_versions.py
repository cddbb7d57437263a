"""The agreement of a study's annotators, computed once for a state of its judgments."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max

from annotation.agreement import (
    AgreementReport,
    protocol_reports,
    rounds_of,
    study_agreement,
)
from annotation.agreement_rows import (
    ANNOTATOR_COLUMNS,
    ComputedAgreement,
    QuestionTables,
    write_rows,
)
from annotation.annotator_pairs import pair_table
from annotation.disagreement import annotator_table, unit_table
from annotation.frames import judgment_frame
from annotation.models import AgreementVersion, Judgment, Question, Study, UnitAgreement
from annotation.positions import position_effects, random_positions
from annotation.reassessment import round_agreement
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    import pandas as pd


FORM = 8
"""Of the rows; versions of another form are out of date."""


def agreement_fingerprint(study: Study) -> str:
    """What agreement depends on: the count of changes of the judgments of the loaded study."""
    return sha256(repr((FORM, study.pk, study.judgments_version)).encode()).hexdigest()


def current_agreement(study: Study) -> AgreementVersion | None:
    """The agreement of the study as it was loaded; None where it is not computed yet."""
    return AgreementVersion.objects.of(study).fingerprinted(agreement_fingerprint(study))


def compute_agreement(study: Study, progress: Progress = silently) -> AgreementVersion:
    """Compute coefficients, candidates, pairs and annotators of every question and round, and
    keep them as the study's next version."""
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    frame = judgment_frame(study)
    frame = frame.assign(position=random_positions(study, frame))
    reports = [
        study_agreement(study, round=round, frame=frame) for round in rounds_of(study) or [1]
    ]
    steps = [(report, question) for report in reports for question in study.questions.all()]
    tables = [
        _tables_of(question, report, frame) for report, question in progress(steps, len(steps))
    ]
    across = round_agreement(study, frame=frame)
    return _store(study, ComputedAgreement(reports, across, tables, protocol_reports(study)))


def _tables_of(question: Question, report: AgreementReport, frame: pd.DataFrame) -> QuestionTables:
    rows = frame[(frame["question"] == question.name) & (frame["round"] == report.round)]
    return QuestionTables(
        question=question,
        round=report.round,
        n_flagged=report.n_flagged,
        n_cannot_judge=_n_cannot_judge(question, report.round),
        units=unit_table(question, round=report.round, frame=frame),
        pairs=pair_table(question, rows, report.pairs),
        annotators=_annotators(question, report.round, rows),
        positions=list(position_effects(question, rows)),
    )


def _n_cannot_judge(question: Question, round: int) -> int:
    """Answers that a frame leaves out, since they have no place in the order."""
    if question.level != Question.Level.ORDINAL or question.highest >= question.scale_max:
        return 0
    answers = Judgment.objects.accepted().filter(question=question, submission__round=round)
    return answers.filter(value__gt=question.highest).count()


def _annotators(question: Question, round: int, rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    if rows.empty:
        return pd.DataFrame(columns=ANNOTATOR_COLUMNS)
    return annotator_table(question, round=round, frame=rows)


@transaction.atomic
def _store(study: Study, computed: ComputedAgreement) -> AgreementVersion:
    Study.objects.select_for_update().get(pk=study.pk)
    versions = AgreementVersion.objects.of(study)
    last = versions.aggregate(last=Max("version"))["last"] or 0
    UnitAgreement.objects.filter(version__study=study).delete()
    versions.delete()
    version = AgreementVersion.objects.create(
        study=study,
        version=last + 1,
        judgments_version=study.judgments_version,
        fingerprint=agreement_fingerprint(study),
        first_round=computed.reports[0].round,
        n_disputed=sum(table.n_disputed for table in computed.tables),
    )
    write_rows(version, computed)
    return version
