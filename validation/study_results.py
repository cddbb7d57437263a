from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from annotation.agreement import judged_protocols
from annotation.models import Study
from annotation.study_facts import REPORT, RESULTS, VALIDATION, StudyResult, register_result
from metrics.exceptions import NothingToValidate
from presentation.progress import Progress, silently
from results.models import Result
from validation.analysis.settings import Settings
from validation.datasheet import whole_report
from validation.human_results import (
    compute_human_results,
    current_human_results,
    human_results_fingerprint,
)
from validation.models import ValidationOutcome
from validation.study_report import REPORT_FILES
from validation.versions import make_validation

# What a report's files hold; another form makes those that are stored out of date.
FORM = 7
# Followed by the number of a version of the protocol, of whose judgments alone it is.
OF_PROTOCOL = "validation-protocol-"


def _fingerprint(study: Study) -> str:
    """Of the study as it was loaded."""
    versions = (study.judgments_version, study.scores_version)
    return sha256(repr((FORM, study.pk, *versions)).encode()).hexdigest()


def outcome_of(study: Study, name: str) -> ValidationOutcome | None:
    """None if the outcome of the study as loaded is not computed yet."""
    outcomes = ValidationOutcome.objects.filter(study=study, name=name)
    outcome = outcomes.filter(fingerprint=_fingerprint(study)).select_related("version").first()
    if outcome is not None and outcome.version is not None:
        outcome.version.subject = study
    return outcome


def current_version(study: Study) -> Result | None:
    outcome = outcome_of(study, VALIDATION)
    return outcome.version if outcome else None


def require_validation(study: Study) -> ValidationOutcome:
    study = Study.objects.get(pk=study.pk)
    return outcome_of(study, VALIDATION) or _compute_validation(study, silently)


def _compute_validation(study: Study, progress: Progress) -> ValidationOutcome:
    """Validate all judgments, and those of each protocol version if there are several."""
    numbers = judged_protocols(study, round=Settings().round)
    parts: list[int | None] = [None, *(numbers if len(numbers) > 1 else ())]
    outcomes = []
    for number in progress(parts, len(parts)):
        name = VALIDATION if number is None else f"{OF_PROTOCOL}{number}"
        outcomes.append(_store(study, name, *_validate(study, Settings(protocol=number))))
    return outcomes[0]


def _compute_report(study: Study, progress: Progress) -> ValidationOutcome:
    version, reason = _validate(study)
    if version is not None:
        request = whole_report(study, version.number)
        for name in progress(REPORT_FILES, len(REPORT_FILES)):
            content = REPORT_FILES[name](request)
            version.parts.update_or_create(name=name, defaults={"content": content})
    return _store(study, REPORT, version, reason)


def _validate(study: Study, settings: Settings | None = None) -> tuple[Result | None, str]:
    """The version, or why there is none."""
    try:
        return make_validation(study=study, settings=settings).version, ""
    except NothingToValidate as nothing:
        return None, str(nothing)


def _store(study: Study, name: str, version: Result | None, reason: str) -> ValidationOutcome:
    values = {"fingerprint": _fingerprint(study), "version": version, "reason": reason}
    return ValidationOutcome.objects.update_or_create(study=study, name=name, defaults=values)[0]


def _is_computed(name: str) -> Callable[[Study], bool]:
    return lambda study: outcome_of(study, name) is not None


register_result(
    RESULTS,
    StudyResult(
        human_results_fingerprint,
        lambda study: current_human_results(study) is not None,
        compute_human_results,
    ),
)
for name, compute in ((VALIDATION, _compute_validation), (REPORT, _compute_report)):
    register_result(name, StudyResult(_fingerprint, _is_computed(name), compute))
