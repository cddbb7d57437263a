"""The results of a study that pages show: computed in the background, kept until their input
changes. Each app registers its own in a module `study_results`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from django.utils.module_loading import autodiscover_modules

from annotation.agreement_versions import (
    agreement_fingerprint,
    compute_agreement,
    current_agreement,
)
from annotation.models import AgreementVersion, Study
from presentation.progress import Progress, silently

AGREEMENT, VALIDATION, REPORT, RESULTS = "agreement", "validation", "report", "results"


@dataclass(frozen=True)
class StudyResult:
    """A result of studies: what it depends on, whether it is stored of the study as it was loaded,
    and how it is computed and stored."""

    fingerprint: Callable[[Study], str]
    is_stored: Callable[[Study], bool]
    compute: Callable[[Study, Progress], object]


_results: dict[str, StudyResult] = {}


def register_result(name: str, result: StudyResult) -> None:
    _results[name] = result


def fingerprint(study: Study, name: str = VALIDATION) -> str:
    """What the result of that name depends on in a study, as one string of constant cost.

    The study counts its changes, so that nothing has to be read to know of them.
    """
    studies = Study.objects.only("judgments_version", "scores_version")
    return loaded_fingerprint(studies.get(pk=study.pk), name)


def loaded_fingerprint(study: Study, name: str = VALIDATION) -> str:
    """That of the study as it was loaded, for a page that has just done so."""
    return _result(name).fingerprint(study)


def is_stored(study: Study, name: str) -> bool:
    return _result(name).is_stored(study)


def compute(study: Study, name: str, progress: Progress = silently) -> None:
    # Loaded first: what changes meanwhile makes the result out of date, and never wrong.
    _result(name).compute(Study.objects.get(pk=study.pk), progress)


def require_agreement(study: Study) -> AgreementVersion:
    """The agreement, computed now if it is not stored: for tasks and commands, not for pages."""
    study = Study.objects.get(pk=study.pk)
    return current_agreement(study) or compute_agreement(study)


def result_names() -> list[str]:
    _import_results()
    return list(_results)


def _result(name: str) -> StudyResult:
    _import_results()
    return _results[name]


@cache
def _import_results() -> None:
    autodiscover_modules("study_results")


register_result(
    AGREEMENT,
    StudyResult(
        agreement_fingerprint,
        lambda study: current_agreement(study) is not None,
        compute_agreement,
    ),
)
