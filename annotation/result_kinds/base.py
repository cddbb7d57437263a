from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Max
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from accounts.models import User
from annotation.exceptions import StudyUnfit
from annotation.models import Study
from annotation.study_facts import AGREEMENT, RESULT, RESULTS, VALIDATION, jobs_of
from error_codes import CorrectableError
from presentation.progress import Progress, silently
from results.computing import compute_variants, digest_inputs, find_computed, name_subject
from results.kinds import ResultKind, SubjectOnly, result_kinds
from results.models import Result, ResultQuerySet
from work.models import Job
from work.tasks import request_job

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


class StudyKind(ResultKind[Study]):
    """A kind of results of a study, such as its agreement: current until the study changes.

    `page` is the name of the page that shows it, and of the result in requests of the API.
    `depends_on` are the study's counters of changes, so that a fingerprint needs no other read.
    Only the newest result is kept.
    """

    subject = "study"
    job = RESULT
    job_label = gettext_lazy("Computing")
    refusals = (CorrectableError,)
    settings: ClassVar[type] = SubjectOnly
    page: ClassVar[str]
    depends_on: ClassVar[Sequence[str]] = ("judgments_version",)

    def open_subject(self, key: int) -> Study:
        study = Study.objects.filter(pk=key).first()
        if study is None:
            raise StudyUnfit(_("The study was deleted meanwhile."))
        return study

    def find_subject(self, name: str) -> Study:
        return Study.objects.named(name)

    def load_inputs(self, subject: Study, keys: Sequence[int]) -> Sequence[Any]:
        return ()

    def describe_inputs(self, subject: Study, inputs: Sequence[Any]) -> list[Any]:
        return [subject.pk, *(getattr(subject, name) for name in self.depends_on)]

    def finish(self, subject: Study, inputs: Sequence[Any]) -> None:
        _newest, *older = self.list_results(subject).values_list("pk", flat=True)
        Result.objects.filter(pk__in=older).delete()

    def list_results(self, study: Study) -> ResultQuerySet:
        """Current or not, the newest first."""
        return Result.objects.of(study, self.name)

    def fingerprint(self, study: Study, settings: Mapping[str, Any] | None = None) -> str:
        return digest_inputs(self, study, (), settings or {})

    def find_current(self, study: Study) -> Result | None:
        """The result of the study as loaded."""
        current = self.list_results(study).filter(fingerprint=self.fingerprint(study))
        if (result := current.defer(None).first()) is not None:
            result.subject = study
        return result

    def is_stored(self, study: Study) -> bool:
        return find_computed(self, study, (), {}) is not None

    def compute_now(self, study: Study, progress: Progress = silently) -> Result:
        # Loaded first: what changes meanwhile makes the result out of date, and never wrong.
        study = Study.objects.get(pk=study.pk)
        return compute_variants(self, study, (), {}, progress=lambda what: progress)[0]

    def require(self, study: Study) -> Result:
        """Computed now if it is not stored: for tasks and commands, not for pages."""
        study = Study.objects.get(pk=study.pk)
        return self.find_current(study) or self.compute_now(study)

    def request(self, study: Study, actor: User | None) -> Job:
        return request_job(
            kind=self.job,
            subject=name_subject(study),
            arguments={"kind": self.name, "subject": study.pk, "inputs": [], "settings": {}},
            title=f"{self.job_label} {self.page}",
            basis=self.fingerprint(study),
            requested_by=actor,
        )


# Answers arrive every 30 s, and agreement of a million judgments takes 20 s: a result is requested
# again after ten times its own duration, so that it uses at most a tenth of a worker.
PAUSE_PER_COMPUTATION = 10


def request_results(study: Study) -> None:
    """Request the results that pages show, after judgments have arrived."""
    for page in (RESULTS, AGREEMENT, VALIDATION):
        kind = find_study_kind(page)
        # Without scores of a metric there is nothing to validate.
        if page == VALIDATION and not kind.list_results(study).exists():
            continue
        last = jobs_of(study).of_kind(kind.job).filter(arguments__kind=kind.name).first()
        if last is not None and last.started_at and last.finished_at:
            pause = PAUSE_PER_COMPUTATION * (last.finished_at - last.started_at)
            if timezone.now() < last.finished_at + pause:
                continue
        kind.request(study, None)


# Of these only the newest result is kept.
KEPT_ONCE = ("agreement", "human_results", "evidence")


def newest_results(study: Study) -> dict[str, Result]:
    """By kind, in one statement, whether they are current or not; asked once of a loaded study."""
    stored: dict[str, Result] | None = getattr(study, "_newest_results", None)
    if stored is None:
        of_study = Result.objects.about(study).filter(kind__in=KEPT_ONCE)
        newest = of_study.order_by().values("kind").annotate(last=Max("pk")).values("last")
        stored = {one.kind: one for one in of_study.filter(pk__in=newest)}
        study._newest_results = stored  # type: ignore[attr-defined]
    return stored


def since_result(study: CountedStudy, kind: StudyKind, result: Result) -> dict[str, Any]:
    """Empty for a current result; otherwise how many submissions came since, None if unknown."""
    if result.fingerprint == kind.fingerprint(study):
        return {}
    n = result.facts.get("n_submissions")
    return {"state": "stale", "n_since": None if n is None else max(study.n_submissions - n, 0)}


def find_study_kind(page: str) -> StudyKind:
    for kind in result_kinds("study").values():
        if isinstance(kind, StudyKind) and kind.page == page:
            return kind
    raise Http404(f"There are no results called {page}.")
