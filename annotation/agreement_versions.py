"""Keeping the agreement of a study's annotators as rows, computed once for a state of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from django.db import transaction
from django.db.models import Max

from annotation.agreement import rounds_of
from annotation.disagreement import unit_table
from annotation.frames import judgment_frame
from annotation.models import AgreementVersion, Question, Study, UnitAgreement
from presentation.records import plain_records

BATCH_SIZE = 1000
COLUMNS = ["candidate_id", "n_judgments", "mean", "low", "high", "spread", "agreement"]
# Neighbours on a scale of five steps are a quarter of it apart, and no dispute; two steps are.
SCALE_SHARE = 0.25


@dataclass(frozen=True)
class UnitTable:
    """The rows of `unit_table` of one question in one round."""

    question: Question
    round: int
    rows: pd.DataFrame

    @property
    def n_disputed(self) -> int:
        return int((self.rows["spread"] > default_threshold(self.question)).sum())


def default_threshold(question: Question) -> float:
    """The spread beyond which judgments are in dispute: any difference between categories, and
    on a scale more than a quarter of it."""
    return 0.0 if question.level == Question.Level.NOMINAL else SCALE_SHARE


def compute_units(study: Study) -> AgreementVersion:
    """Compute the rows of every question and round, and keep them."""
    judgments_version = Study.objects.get(pk=study.pk).judgments_version
    frame = judgment_frame(study)
    tables = [
        UnitTable(question, round, unit_table(question, round=round, frame=frame))
        for question in study.questions.all()
        for round in rounds_of(study)
    ]
    return write_units(study=study, judgments_version=judgments_version, tables=tables)


@transaction.atomic
def write_units(
    *, study: Study, judgments_version: int, tables: Sequence[UnitTable]
) -> AgreementVersion:
    """Keep the rows as the study's next version, in place of those before."""
    Study.objects.select_for_update().get(pk=study.pk)
    versions = AgreementVersion.objects.of(study)
    last = versions.aggregate(last=Max("version"))["last"] or 0
    UnitAgreement.objects.filter(version__study=study).delete()
    versions.delete()
    version = AgreementVersion.objects.create(
        study=study,
        version=last + 1,
        judgments_version=judgments_version,
        n_disputed=sum(table.n_disputed for table in tables),
    )
    rows = (row for table in tables for row in _unit_rows(version, table))
    UnitAgreement.objects.bulk_create(rows, batch_size=BATCH_SIZE)
    return version


def _unit_rows(version: AgreementVersion, table: UnitTable) -> Iterator[UnitAgreement]:
    for row in plain_records(table.rows[COLUMNS]):
        yield UnitAgreement(version=version, question=table.question, round=table.round, **row)
