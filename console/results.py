"""A study's results, computed by the background worker and kept until what they rest on changes.

A result is a plain JSON value. Its content is what a page shows, the API answers and a
download holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

from annotation.models import Study
from console.agreement_parts import (
    AGREEMENT,
    PAIRS,
    Content,
    agreement_parts,
)
from console.models import StoredResult
from console.report_files import REPORT_FILES
from metrics.exceptions import NothingToValidate
from presentation.progress import Progress, silently
from validation.models import ReportFile, ValidationVersion
from validation.study_report import ReportRequest
from validation.versions import make_validation

# A new form of the contents makes what is stored in the old one out of date.
FORM = 5
VALIDATION = "validation"
REPORT = "report"
# Scores that arrive leave these as they are.
RESTS_ON_JUDGMENTS = (AGREEMENT, PAIRS)


def fingerprint(study: Study, name: str = VALIDATION) -> str:
    """What the result of that name depends on in a study, as one string of constant cost.

    The study counts its changes, so that nothing has to be read to know of them.
    """
    counted = Study.objects.only("judgments_version", "scores_version")
    return loaded_fingerprint(counted.get(pk=study.pk), name)


def loaded_fingerprint(study: Study, name: str = VALIDATION) -> str:
    """That of the study as it was loaded, for a page that has just done so."""
    versions: tuple[int, ...] = (study.judgments_version,)
    if name not in RESTS_ON_JUDGMENTS:
        versions += (study.scores_version,)
    return sha256(repr((FORM, study.pk, *versions)).encode()).hexdigest()


def stored(study: Study, name: str, basis: str) -> Content | None:
    """The result as it was computed from what has that fingerprint; None where it was not yet."""
    kept = StoredResult.objects.filter(study=study, name=name, fingerprint=basis)
    return kept.values_list("content", flat=True).first()


def is_stored(study: Study, name: str, basis: str) -> bool:
    """Whether the result is there, without reading it."""
    return StoredResult.objects.filter(study=study, name=name, fingerprint=basis).exists()


def current(study: Study, name: str) -> Content:
    """The result, computed now where none is stored: for tasks and commands, not for pages."""
    found = stored(study, name, fingerprint(study, name))
    return compute(study, MADE_WITH.get(name, name))[name] if found is None else found


def compute(study: Study, name: str, progress: Progress = silently) -> dict[str, Content]:
    """Compute the result of that name and keep it, with what comes of the same computing."""
    # Taken first: what changes meanwhile makes the result out of date, and never wrong.
    basis = fingerprint(study, name)
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
MADE_WITH = {PAIRS: AGREEMENT}
