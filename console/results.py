"""A study's results, computed by the background worker and kept until what they rest on changes.

A result is a plain JSON value. Its content is what a page shows, the API answers and a
download holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django.db.models import (
    Case,
    Count,
    IntegerField,
    Max,
    Q,
    QuerySet,
    Value,
    When,
)

from annotation.models import Judgment, Study, Submission
from console.agreement_parts import (
    AGREEMENT,
    DISAGREEMENT,
    DISPUTES,
    PAIRS,
    Content,
    agreement_parts,
)
from console.models import StoredResult
from console.report_files import REPORT_FILES
from metrics.exceptions import NothingToValidate
from metrics.models import Score
from presentation.progress import Progress, silently
from validation.models import ReportFile, ValidationVersion
from validation.study_report import ReportRequest
from validation.versions import make_validation

# A new form of the contents makes what is stored in the old one out of date.
FORM = 4
VALIDATION = "validation"
REPORT = "report"


def fingerprint(study: Study) -> str:
    """What the results of a study depend on, as one string."""
    rejected = Q(status=Submission.Status.REJECTED)
    flagged = ~Q(flag_reason="")
    submissions = Submission.objects.of(study).filter(rejected | flagged).order_by()
    marked = submissions.values_list("pk", _as_integer(rejected), _as_integer(flagged))
    # One query, since every page of a study asks it: three numbers a row, told apart by the last.
    rows = marked.union(
        _counted(Judgment.objects.of(study), "question__study", -1),
        _counted(Score.objects.filter(run__study=study), "run__study", -2),
        all=True,
    )
    state = (FORM, study.pk, sorted(rows))
    return sha256(repr(state).encode()).hexdigest()


def _as_integer(condition: Q) -> Case:
    return Case(When(condition, then=1), default=0, output_field=IntegerField())


def _counted(rows: QuerySet[Any], study: str, mark: int) -> QuerySet[Any, tuple[Any, ...]]:
    """How many there are of a study, the last key, and a mark."""
    counted = rows.order_by().values(study).annotate(n=Count("pk"), last=Max("pk"))
    return counted.values_list("n", "last", Value(mark, output_field=IntegerField()))


def stored(study: Study, name: str, basis: str) -> Content | None:
    """The result as it was computed from what has that fingerprint; None where it was not yet."""
    kept = StoredResult.objects.filter(study=study, name=name, fingerprint=basis)
    return kept.values_list("content", flat=True).first()


def current(study: Study, name: str) -> Content:
    """The result, computed now where none is stored: for tasks and commands, not for pages."""
    found = stored(study, name, fingerprint(study))
    return compute(study, MADE_WITH.get(name, name))[name] if found is None else found


def compute(study: Study, name: str, progress: Progress = silently) -> dict[str, Content]:
    """Compute the result of that name and keep it, with what comes of the same computing."""
    # Taken first: what changes meanwhile makes the result out of date, and never wrong.
    basis = fingerprint(study)
    found = {
        part: content | {"study": study.slug, "input": basis}
        for part, content in MAKERS[name](study, progress).items()
    }
    made: dict[str, Content] = json.loads(json.dumps(found, allow_nan=False))
    for part, content in made.items():
        StoredResult.objects.update_or_create(
            study=study, name=part, defaults={"fingerprint": basis, "content": content}
        )
    return made


def _validation(study: Study, progress: Progress) -> dict[str, Content]:
    """Which version holds the metrics against people as they are now: its number alone."""
    found: dict[str, Content] = {}
    for part in progress((VALIDATION,), 1):
        try:
            found[part] = {"report": make_validation(study=study).version.number}
        except NothingToValidate as nothing:
            found[part] = {"report": None, "reason": str(nothing)}
    return found


def _report(study: Study, progress: Progress) -> dict[str, Content]:
    """The report's files, written beside its version."""
    try:
        version = make_validation(study=study).version
    except NothingToValidate as nothing:
        return {REPORT: {"report": None, "reason": str(nothing)}}
    for name in progress(REPORT_FILES, len(REPORT_FILES)):
        content = REPORT_FILES[name](ReportRequest(study, number=version.number))
        ReportFile.objects.update_or_create(
            version=version, name=name, defaults={"content": content}
        )
    return {REPORT: {"report": version.number}}


def current_version(study: Study, result: Content | None) -> ValidationVersion | None:
    """The version that a stored result of validation leads to; None where there is none."""
    number = (result or {}).get("report")
    return None if number is None else ValidationVersion.objects.of(study).numbered(number)


MAKERS: dict[str, Callable[[Study, Progress], dict[str, Content]]] = {
    AGREEMENT: agreement_parts,
    VALIDATION: _validation,
    REPORT: _report,
}
# Parts too large for every page, which come with the computing of another result.
MADE_WITH = dict.fromkeys((PAIRS, DISAGREEMENT, DISPUTES), AGREEMENT)
