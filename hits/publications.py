import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from annotation.study_facts import PUBLISH, jobs_of, request_study_job
from hits.calls import (
    WaitCallback,
    calls_at_once,
    create_hit,
    identifier,
    match_published,
    sole_publisher,
)
from hits.connections import client_of
from hits.costs import Estimate, estimate, price_hits, price_practice, require_funds
from hits.endpoints import MTurkClient, translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused, MarketplaceUnreachable, require
from hits.limits import earning, run_time
from hits.models import Batch, Hit, PracticeHit
from hits.plans import add_hits
from hits.practice import create_practice_type, publish_practice
from hits.qualification_tests import create_tests
from hits.questions import html_question
from hits.readiness import CHUNK, forget_funds
from hits.recruiter_api import keep_for_participants
from hits.requirements import requirements_of, requirements_to_practise, send_exclusions
from hits.selections import items_without_hit
from hits.wages import duration_of, with_duration
from presentation.progress import Progress, silently
from work.exceptions import JobPostponed
from work.execution import RunningJob
from work.models import Job

# A marketplace forgets a UniqueRequestToken after a day; past this we ask before we repeat. The
# four hours between are for an attempt that begins within it and takes long.
TOKEN_TRUSTED_FOR = timedelta(hours=20)
# A process that is killed leaves no more than this for the next one to ask about again.
UNWRITTEN_SECONDS = 1.0


@dataclass(frozen=True)
class Publication:
    n_hits: int
    cost: Estimate


def publish_batch(
    *,
    batch: Batch,
    client: MTurkClient,
    progress: Progress = silently,
    is_checking_funds: bool = False,
    on_wait: WaitCallback | None = None,
) -> Publication:
    """Publish what is unpublished of a batch. It can be stopped anywhere and run again: a HIT
    has one request token for all attempts, so that the marketplace refuses a second one and
    names the first. MarketplaceSlow if it takes longer than a run may (hits.limits)."""
    if batch.connection.closed_at is not None:
        raise BatchUnfit(
            _(
                "Connection '{connection}' is closed, so nothing more is published over it. What "
                "is out is collected and paid all the same."
            ).format(connection=batch.connection),
            code="connection_closed",
        )
    with run_time(), sole_publisher(batch, on_wait) as publisher:
        require(
            not batch.closed_at,
            BatchUnfit(
                _("Batch {batch} is closed; launch another one.").format(batch=batch.pk),
                code="batch_closed",
            ),
        )
        if batch.is_of_all_items:
            add_hits(batch=batch)
        if is_checking_funds:
            require_funds(cost=estimate(batch), client=client)
        practice: list[PracticeHit] = []
        if (first := Hit.objects.due(batch).first()) is not None:
            _start(batch, client, wave=first.wave)
            practice = publish_practice(batch, client, requirements_to_practise(batch))
        # Less those of an earlier attempt, which starting has found.
        due = list(Hit.objects.due(batch).values_list("pk", flat=True))
        new_hits = _NewHits()
        try:
            for hit, hit_id in earning(progress)(_create_hits(client, batch, due), len(due)):
                is_written = new_hits.add(hit, hit_id)
                if is_written and not Batch.objects.open().filter(pk=batch.pk).exists():
                    break  # whoever closed it waits for this, and then expires what is out
                publisher.renew()
        finally:
            new_hits.write()
        n_by_size = new_hits.n_by_size
    return Publication(
        n_by_size.total(), price_hits(batch, n_by_size) + price_practice(batch, practice)
    )


class _NewHits:
    """HITs that the marketplace has made, written down some at a time. The request tokens bring
    back what a killed process did not write down."""

    def __init__(self) -> None:
        self.n_by_size: Counter[int] = Counter()
        self._unwritten: dict[int, list[Hit]] = defaultdict(list)
        self._written_at = time.monotonic()

    def add(self, hit: Hit, hit_id: str) -> bool:
        hit.hit_id = hit_id
        self._unwritten[hit.n_assignments].append(hit)
        is_late = time.monotonic() - self._written_at > UNWRITTEN_SECONDS
        is_due = is_late or sum(map(len, self._unwritten.values())) >= CHUNK
        if is_due:
            self.write()
        return is_due

    def write(self) -> None:
        for size, hits in self._unwritten.items():
            # Those that nobody else has written down meanwhile.
            self.n_by_size[size] += Hit.objects.unpublished().bulk_update(hits, ["hit_id"])
        self._unwritten.clear()
        self._written_at = time.monotonic()


def _create_hits(client: MTurkClient, batch: Batch, keys: list[int]) -> Iterator[tuple[Hit, str]]:
    document = batch.document
    document = with_duration(document, duration_of(batch.study, document=document))
    pages = (
        (hit, html_question(hit.item, document, hit.placed_checks, first_slot=hit.first_slot))
        for hit in _in_chunks(batch, keys)
    )

    def create(page: tuple[Hit, str]) -> str:
        hit, question = page
        return create_hit(client, hit, batch.hit_type_id, question)

    for (hit, _page), hit_id in calls_at_once(create, pages):
        yield hit, hit_id


def _in_chunks(batch: Batch, keys: list[int]) -> Iterator[Hit]:
    rows = Hit.objects.select_related("item__study", "item__picture").prefetch_related(
        "item__candidates__picture", "item__study__questions", "item__placed_checks__picture"
    )
    for start in range(0, len(keys), CHUNK):
        for hit in rows.filter(pk__in=keys[start : start + CHUNK]):
            hit.batch = batch  # one for all: a protocol is too much to read again for every HIT
            yield hit


def _start(batch: Batch, client: MTurkClient, *, wave: int) -> None:
    now, started_at = timezone.now(), batch.publishing_started_at
    if started_at and now - started_at > TOKEN_TRUSTED_FOR:
        match_published(batch=batch, client=client)
        started_at = None
    send_exclusions(batch=batch, client=client, wave=wave)
    create_tests(batch, client)
    create_practice_type(batch, client)
    batch.hit_type_id = _create_hit_type(client, batch)
    if batch.is_recruited:  # before the first HIT, for which money would be held
        keep_for_participants(batch.connection, batch.hit_type_id)
    # The first attempt whose tokens we still rely on, and not the latest one.
    batch.publishing_started_at = started_at or now
    batch.save(update_fields=["hit_type_id", "publishing_started_at"])


def _create_hit_type(client: MTurkClient, batch: Batch) -> str:
    with translated_errors():
        answer = client.create_hit_type(
            Title=batch.title,
            Description=batch.description,
            Keywords=batch.keywords,
            Reward=str(batch.reward_usd),
            AssignmentDurationInSeconds=batch.assignment_duration_seconds,
            AutoApprovalDelayInSeconds=batch.auto_approval_delay_seconds,
            QualificationRequirements=requirements_of(batch),
        )
    return identifier(answer, "HITTypeId")


def request_publication(*, batch: Batch, requested_by: User | None = None) -> Job:
    return request_study_job(
        study=batch.study,
        kind=PUBLISH,
        names=[f"batch {batch.pk}"],
        arguments={"batch": batch.pk},
        requested_by=requested_by,
    )


def awaits_publication(batch: Batch) -> bool:
    # Later waves are requested by themselves.
    if batch.closed_at is not None:
        return False
    is_short = batch.is_of_all_items and items_without_hit(batch).exists()
    return is_short or Hit.objects.due(batch).exists()


def is_being_published(batch: Batch) -> bool:
    return (
        jobs_of(batch.study)
        .of_kind(PUBLISH)
        .unfinished()
        .filter(arguments__batch=batch.pk)
        .exists()
    )


def publish_in_background(running: RunningJob) -> str:
    batch = Batch.objects.select_related("connection", "study").get(pk=running.arguments["batch"])
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
    if batch.is_invited:
        return ngettext(
            "{n:,} assignment published. Invite people on the page of the batch.",
            "{n:,} assignments published. Invite people on the page of the batch.",
            n,
        ).format(n=n)
    if batch.is_recruited:
        return ngettext(
            "{n:,} assignment published, kept for participants of a recruiter.",
            "{n:,} assignments published, kept for participants of a recruiter.",
            n,
        ).format(n=n)
    return ngettext(
        "{n:,} assignment published, for ${usd:.2f} with fees.",
        "{n:,} assignments published, for ${usd:.2f} with fees.",
        n,
    ).format(n=n, usd=publication.cost.total_usd)


def batches_with_a_wave_due() -> list[Batch]:
    return [
        batch
        for batch in Batch.objects.started()
        .filter(closed_at=None, wave_size__isnull=False)
        .filter(hits__hit_id="", hits__wave__gt=1)
        .distinct()
        .select_related("study")
        if _is_due(batch)
    ]


def _is_due(batch: Batch) -> bool:
    last = jobs_of(batch.study).of_kind(PUBLISH).filter(arguments__batch=batch.pk).first()
    # What failed or was stopped waits for a person.
    is_held_up = last is not None and last.state != Job.State.DONE
    return not is_held_up and Hit.objects.due(batch).exists()
