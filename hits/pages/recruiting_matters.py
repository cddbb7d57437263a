"""What about a study's participants waits for a person, on Home and on its Overview."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from error_codes import CodedText
from hits.models import Batch, Recruitment
from hits.recruited_batches import batches_without_study
from hits.recruited_standing import participants_to_look_after


@dataclass(frozen=True)
class RecruitingMatter:
    """Of a batch: what it is, why it matters, and what to press. `tone` is `error` where somebody
    may lose by waiting, else `warning`."""

    batch: Batch
    tone: str
    message: str
    note: str
    action: str
    anchor: str = "participants"

    @property
    def url(self) -> str:
        address = reverse("console:batch", args=[self.batch.study.slug, self.batch.pk])
        return f"{address}#{self.anchor}"


def calls_to_look_after(study_ids: Iterable[int]) -> Iterator[RecruitingMatter]:
    """Calls of recruiters that nobody answered, and submissions that wait to be paid unseen."""
    for batch, n, n_paid_by_time in participants_to_look_after(study_ids):
        message = ngettext(
            "%(n)s participant of batch %(pk)s must be looked after at the recruiter.",
            "%(n)s participants of batch %(pk)s must be looked after at the recruiter.",
            n,
        )
        yield RecruitingMatter(
            batch,
            "error",
            CodedText(message % {"n": f"{n:,}", "pk": batch.pk}, "participants_to_look_after"),
            CodedText(_("What nobody decides on, the recruiter may pay by time."), "paid_by_time")
            if n_paid_by_time
            else CodedText(
                _("A bonus or a message was refused, or nobody knows whether it arrived."),
                "bonus_or_message",
            ),
            _("Look at it"),
            "looked-after",
        )


def places_in_vain(study_ids: Iterable[int]) -> Iterator[RecruitingMatter]:
    """Open studies at recruiters of which nobody hears, or that send people who find no work."""
    rows = Recruitment.objects.live().filter(batch__study__in=list(study_ids))
    for one in rows.select_related("recruiter", "batch__study").order_by("batch"):
        if not one.recruiter.is_connected:
            message = _("%(name)s is disconnected, and a study of batch %(pk)s is open there.")
            yield RecruitingMatter(
                one.batch,
                "error",
                CodedText(
                    message % {"name": one.recruiter.name, "pk": one.batch_id},
                    "recruiter_disconnected",
                ),
                _("Newcomers are turned away, and no decision is sent."),
                _("Look at it"),
            )
        elif n := one.n_for_nobody:
            message = ngettext(
                "%(n)s free place of batch %(pk)s has no work.",
                "%(n)s free places of batch %(pk)s have no work.",
                n,
            )
            yield RecruitingMatter(
                one.batch,
                "warning",
                CodedText(message % {"n": f"{n:,}", "pk": one.batch_id}, "places_without_work"),
                _("Who comes is sent back unpaid."),
                _("Pause or add work"),
            )


def undrafted_batches(batches: Iterable[Batch]) -> Iterator[RecruitingMatter]:
    """Batches kept for participants whom nobody has asked for."""
    for batch in batches_without_study(batches):
        message = _("Nobody comes to batch %(pk)s: no study of it is open at a recruiter.")
        yield RecruitingMatter(
            batch,
            "warning",
            CodedText(message % {"pk": batch.pk}, "batch_without_study"),
            _("Its HITs are kept for participants."),
            _("Recruit participants"),
        )
