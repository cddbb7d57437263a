"""The archive, of studies that are out of the way; and deleting a study: what goes with it, and
what keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import User
from annotation.models import Candidate, Item, Judgment, LabelSet, Study, Submission
from annotation.study_jobs import jobs_of, request_study_job
from error_codes import CodedText
from hits.exceptions import BatchUnfit, StudyUnfinished
from hits.models import (
    Assignment,
    Batch,
    Budget,
    DraftDecision,
    Hit,
    Message,
    Payment,
    PracticeAnswer,
    RecruiterCall,
    Recruitment,
)
from metrics.models import Score
from work.models import Job


def unfinished_work(study: Study) -> list[CodedText]:
    return list(_unfinished(study))


def _unfinished(study: Study) -> Iterator[CodedText]:
    now = timezone.now()
    batches = Batch.objects.of(study).started().filter(closed_at=None)
    if n := sum(batch.offered_until > now for batch in batches):
        yield CodedText(
            ngettext(
                "%(n)s batch is still on offer. Let it expire, or close it.",
                "%(n)s batches are still on offer. Let them expire, or close them.",
                n,
            )
            % {"n": n},
            "open_batches",
        )
    if n := Recruitment.objects.of(study).live().count():
        yield CodedText(
            ngettext(
                "%(n)s study is open at a recruiter. Stop it.",
                "%(n)s studies are open at a recruiter. Stop them.",
                n,
            )
            % {"n": n},
            "open_studies",
        )
    calls = RecruiterCall.objects.to_look_after()
    if n := calls.filter(recruitment__batch__study=study).count():
        text = ngettext(
            "%(n)s call to a recruiter waits for you: settle it, or put it away.",
            "%(n)s calls to a recruiter wait for you: settle them, or put them away.",
            n,
        )
        yield CodedText(text % {"n": n}, "calls_to_look_after")
    if n := Assignment.objects.undecided().filter(hit__batch__study=study).count():
        yield CodedText(
            ngettext(
                "%(n)s submission waits for your decision.",
                "%(n)s submissions wait for your decision.",
                n,
            )
            % {"n": f"{n:,}"},
            "undecided_work",
        )
    if n := DraftDecision.objects.of(study).count():
        yield CodedText(
            ngettext("%(n)s decision is not sent.", "%(n)s decisions are not sent.", n)
            % {"n": f"{n:,}"},
            "unsent_decisions",
        )


@transaction.atomic
def archive_study(*, study: Study, actor: User | None) -> None:
    """Put a study into the archive, or StudyUnfinished where something of it is still going on."""
    row = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    if row.archived_at is not None:
        return
    if reasons := unfinished_work(row):
        raise StudyUnfinished(" ".join(reasons))
    Study.objects.filter(pk=row.pk).update(archived_at=timezone.now())
    record(team=row.team, actor=actor, action="study.archive", subject=row.slug)


@transaction.atomic
def restore_study(*, study: Study, actor: User | None) -> None:
    if Study.objects.archived().filter(pk=study.pk).update(archived_at=None):
        record(team=study.team, actor=actor, action="study.restore", subject=study.slug)


def require_current(study: Study) -> None:
    """Refuse to launch anything of a study in the archive."""
    if study.archived_at is not None:
        raise BatchUnfit(
            _("Study '{slug}' is in the archive. Take it out to launch.").format(slug=study.slug),
            code="archived",
        )


DELETE_STUDY = "delete_study"
# With more judgments a study is deleted in the background.
AT_ONCE_JUDGMENTS = 5_000


def contents_of(study: Study) -> dict[str, int]:
    return {
        "items": Item.objects.filter(study=study).count(),
        "candidates": Candidate.objects.filter(item__study=study).count(),
        "submissions": Submission.objects.filter(item__study=study).count(),
        "judgments": Judgment.objects.filter(question__study=study).count(),
        "label_sets": LabelSet.objects.filter(study=study).count(),
        "scores": Score.objects.filter(run__study=study).count(),
        "hits": Hit.objects.filter(batch__study=study).count(),
        "assignments": Assignment.objects.filter(hit__batch__study=study).count(),
    }


def obstacles_to_deletion(study: Study) -> list[CodedText]:
    """All that keeps a study, in sentences; nothing where it may be deleted."""
    return list(_obstacles(study))


def _obstacles(study: Study) -> Iterator[CodedText]:
    yield from unfinished_work(study)
    if n := Payment.objects.of(study).unsent().count():
        yield CodedText(
            ngettext("%(n)s payment is not sent.", "%(n)s payments are not sent.", n)
            % {"n": f"{n:,}"},
            "unsent_payments",
        )
    if jobs_of(study).unfinished().exclude(kind=DELETE_STUDY).exists():
        yield CodedText(
            _("A job on it is under way. Wait for its end, or stop it."), "job_under_way"
        )
    if _counts_against_a_budget(study):
        text = _(
            "What its answers cost counts against the team's budget, which would be forgotten. Put "
            "the study into the archive instead."
        )
        yield CodedText(text, "counts_against_budget")


def _counts_against_a_budget(study: Study) -> bool:
    """Deleting what was spent would give it to a team to be spent again."""
    has_cap = study.team_id is not None and Budget.objects.filter(team=study.team_id).exists()
    answers = (
        rows.filter(hit__batch__study=study)
        for rows in (Assignment.objects, PracticeAnswer.objects)
    )
    return has_cap and any(rows.exists() for rows in answers)


@transaction.atomic
def remove_study(*, study: Study, actor: User | None) -> Job | None:
    """Delete a study now, or request the job that does where there is much of it."""
    if contents_of(study)["judgments"] <= AT_ONCE_JUDGMENTS:
        delete_study(study=study, actor=actor)
        return None
    if reasons := obstacles_to_deletion(study):
        raise StudyUnfinished(" ".join(reasons))
    # Out of the way at once: nothing is launched of it any more.
    Study.objects.filter(pk=study.pk).update(archived_at=timezone.now())
    return request_study_job(study=study, kind=DELETE_STUDY, requested_by=actor)


@transaction.atomic
def delete_study(*, study: Study, actor: User | None) -> None:
    """Delete a study and all that is of it, or StudyUnfinished with every reason."""
    row = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    if reasons := obstacles_to_deletion(row):
        raise StudyUnfinished(" ".join(reasons))
    contents = contents_of(row)
    of_assignments = {"assignment__hit__batch__study": row}
    Payment.objects.filter(**of_assignments).delete()
    Message.objects.filter(**of_assignments).delete()
    Assignment.objects.filter(hit__batch__study=row).delete()
    Hit.objects.filter(batch__study=row).delete()
    Recruitment.objects.filter(batch__study=row).delete()
    Batch.objects.filter(study=row).delete()
    Submission.objects.filter(item__study=row).delete()
    jobs_of(row).finished().delete()
    team, slug, title = row.team, row.slug, row.title
    row.delete()
    details = {"title": title, **contents}
    record(team=team, actor=actor, action="study.delete", subject=slug, details=details)
