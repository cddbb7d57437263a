"""Publishing batches in the background: requested when launched, and again for each wave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.study_jobs import PUBLISH, jobs_of, request_study_job
from hits.connections import client_of
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable
from hits.launch_checks import forget_funds
from hits.models import Batch, Hit
from hits.publish import publish_batch
from hits.selections import items_without_hit
from work.exceptions import JobPostponed
from work.models import Job

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob


def request_publication(*, batch: Batch, requested_by: User | None = None) -> Job:
    """Request that what is due of a batch be published; the same that waits is not doubled."""
    return request_study_job(
        study=batch.study,
        kind=PUBLISH,
        names=[f"batch {batch.pk}"],
        arguments={"batch": batch.pk},
        requested_by=requested_by,
    )


def awaits_publication(batch: Batch) -> bool:
    """Whether anything of a batch is to be published now: later waves come by themselves."""
    if batch.closed_at is not None:
        return False
    is_short = batch.is_of_all_items and items_without_hit(batch).exists()
    return is_short or Hit.objects.due(batch).exists()


def is_being_published(batch: Batch) -> bool:
    """Whether a job is at it, or is to be."""
    jobs = jobs_of(batch.study).of_kind(PUBLISH).unfinished()
    return jobs.filter(arguments__batch=batch.pk).exists()


def publish_in_background(running: RunningJob) -> str:
    """Publish what is due of a batch; where an answer was lost, again later."""
    batches = Batch.objects.select_related("connection", "study")
    batch = batches.get(pk=running.arguments["batch"])
    try:
        publication = publish_batch(
            batch=batch,
            client=client_of(batch.connection),
            progress=running.progress(f"HITs of batch {batch.pk}"),
            is_checking_funds=True,
        )
    except MarketplaceUnreachable as error:
        raise JobPostponed(
            _(
                "The marketplace's answer was lost, so it is not known yet whether the last HIT is "
                "published. Trying again is safe: each HIT is published once. ({error})"
            ).format(error=error)
        ) from error
    except MarketplaceRefused as refusal:
        if refusal.is_momentary:
            raise JobPostponed(str(refusal)) from refusal
        raise
    forget_funds(batch.connection_id)
    n = publication.cost.n_assignments
    if batch.is_recruited:
        text = ngettext(
            "{n:,} assignment published, kept for participants of a recruiter.",
            "{n:,} assignments published, kept for participants of a recruiter.",
            n,
        )
        return text.format(n=n)
    return ngettext(
        "{n:,} assignment published, for ${usd:.2f} with fees.",
        "{n:,} assignments published, for ${usd:.2f} with fees.",
        n,
    ).format(n=n, usd=publication.cost.total_usd)


def batches_with_a_wave_due() -> list[Batch]:
    """Batches whose next wave may be published, since all before it is in."""
    batches = Batch.objects.started().filter(closed_at=None, wave_size__isnull=False)
    batches = batches.filter(hits__hit_id="", hits__wave__gt=1).distinct()
    return [batch for batch in batches.select_related("study") if _is_due(batch)]


def _is_due(batch: Batch) -> bool:
    last = jobs_of(batch.study).of_kind(PUBLISH).filter(arguments__batch=batch.pk).first()
    # What failed or was stopped waits for a person.
    is_held_up = last is not None and last.state != Job.State.DONE
    return not is_held_up and Hit.objects.due(batch).exists()
