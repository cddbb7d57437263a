"""The archive: studies that are out of the way, read as before and launched no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.audit import record
from annotation.models import Study
from error_codes import CodedText
from hits.changes import expiry_of
from hits.exceptions import BatchUnfit, StudyUnfinished
from hits.models import Assignment, Batch, DraftDecision, RecruiterCall, Recruitment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accounts.models import User


def unfinished_work(study: Study) -> list[CodedText]:
    """Reasons why the study cannot be archived yet."""
    return list(_unfinished(study))


def _unfinished(study: Study) -> Iterator[CodedText]:
    now = timezone.now()
    batches = Batch.objects.of(study).started().filter(closed_at=None)
    if n := sum(expiry_of(batch) > now for batch in batches):
        text = ngettext(
            "%(n)s batch is still on offer. Let it expire, or close it.",
            "%(n)s batches are still on offer. Let them expire, or close them.",
            n,
        )
        yield CodedText(text % {"n": n}, "open_batches")
    if n := Recruitment.objects.of(study).live().count():
        text = ngettext(
            "%(n)s study is open at a recruiter. Stop it.",
            "%(n)s studies are open at a recruiter. Stop them.",
            n,
        )
        yield CodedText(text % {"n": n}, "open_studies")
    calls = RecruiterCall.objects.to_look_after()
    if n := calls.filter(recruitment__batch__study=study).count():
        text = ngettext(
            "%(n)s call to a recruiter waits for you: settle it, or put it away.",
            "%(n)s calls to a recruiter wait for you: settle them, or put them away.",
            n,
        )
        yield CodedText(text % {"n": n}, "calls_to_look_after")
    if n := Assignment.objects.undecided().filter(hit__batch__study=study).count():
        text = ngettext(
            "%(n)s submission waits for your decision.",
            "%(n)s submissions wait for your decision.",
            n,
        )
        yield CodedText(text % {"n": f"{n:,}"}, "undecided_work")
    if n := DraftDecision.objects.of(study).count():
        text = ngettext("%(n)s decision is not sent.", "%(n)s decisions are not sent.", n)
        yield CodedText(text % {"n": f"{n:,}"}, "unsent_decisions")


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
    """Take a study out of the archive."""
    if Study.objects.archived().filter(pk=study.pk).update(archived_at=None):
        record(team=study.team, actor=actor, action="study.restore", subject=study.slug)


def require_current(study: Study) -> None:
    """Refuse to launch anything of a study in the archive."""
    if study.archived_at is not None:
        raise BatchUnfit(
            _("Study '{slug}' is in the archive. Take it out to launch.").format(slug=study.slug),
            code="archived",
        )
