"""From a study's items to HITs on a marketplace, once each, however often it is tried."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _

from hits.calls import calls_at_once
from hits.checked_pages import checks_on
from hits.costs import Estimate, estimate, price_hits, price_practice, require_funds
from hits.endpoints import translated_errors
from hits.exceptions import BatchUnfit
from hits.exclusions import send_exclusions
from hits.foreign_records import identifier
from hits.hit_creation import create_hit, match_published
from hits.item_faults import CHUNK
from hits.launch_plans import add_hits
from hits.models import Batch, Connection, Hit, PracticeHit
from hits.practice import create_practice_type, publish_practice
from hits.publishers import WaitCallback, sole_publisher, without_a_word
from hits.qualification_tests import create_tests
from hits.qualifications import requirements_of, requirements_to_practise
from hits.questions import html_question
from hits.recruiter_api import keep_for_participants
from hits.run_limits import earning, run_time
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# A marketplace forgets a UniqueRequestToken after a day; past this we ask before we repeat. The
# four hours between are for an attempt that begins within it and takes long.
TOKEN_TRUSTED_FOR = timedelta(hours=20)
# A process that is killed leaves no more than this for the next one to ask about again.
UNWRITTEN_SECONDS = 1.0


@dataclass(frozen=True)
class Publication:
    """What one run published of a batch, and what that may cost; others' work is not in it."""

    n_hits: int
    cost: Estimate


def publish_batch(
    *,
    batch: Batch,
    client: MTurkClient,
    progress: Progress = silently,
    is_checking_funds: bool = False,
    on_wait: WaitCallback = without_a_word,
) -> Publication:
    """Publish what is unpublished of a batch, after whoever else is publishing it.

    It can be stopped anywhere and run again: a HIT has one request token for all
    attempts, so that the marketplace itself refuses a second one and names the first.
    MarketplaceSlow where the marketplace takes longer than a run may (hits.run_limits).
    """
    _require_open(batch.connection)
    with run_time(), sole_publisher(batch, on_wait) as publisher:
        if batch.closed_at:
            raise BatchUnfit(
                _("Batch {batch} is closed; launch another one.").format(batch=batch.pk),
                code="batch_closed",
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
        with _NewHits() as new_hits:
            for hit, hit_id in earning(progress)(_create_hits(client, batch, due), len(due)):
                if (
                    new_hits.add(hit, hit_id)
                    and not Batch.objects.open().filter(pk=batch.pk).exists()
                ):
                    break  # whoever closed it waits for this, and then expires what is out
                publisher.renew()
        n_by_size = new_hits.n_by_size
    cost = price_hits(batch, n_by_size)
    return Publication(n_by_size.total(), cost + price_practice(batch, practice))


def _require_open(connection: Connection) -> None:
    if connection.closed_at is not None:
        raise BatchUnfit(
            _(
                "Connection '{connection}' is closed, so nothing more is published over it. What "
                "is out is collected and paid all the same."
            ).format(connection=connection),
            code="connection_closed",
        )


class _NewHits:
    """HITs that the marketplace has made, written down some at a time. What a killed process did
    not write down, the next attempt is answered with by the HITs' tokens."""

    def __init__(self) -> None:
        self.n_by_size: Counter[int] = Counter()
        self._unwritten: dict[int, list[Hit]] = defaultdict(list)
        self._written_at = time.monotonic()

    def __enter__(self) -> _NewHits:
        return self

    def __exit__(self, *exception: object) -> None:
        self._write()

    def add(self, hit: Hit, hit_id: str) -> bool:
        """Remember one, and write all down once in a while; True where it was done now."""
        hit.hit_id = hit_id
        self._unwritten[hit.n_assignments].append(hit)
        is_late = time.monotonic() - self._written_at > UNWRITTEN_SECONDS
        is_due = is_late or sum(map(len, self._unwritten.values())) >= CHUNK
        if is_due:
            self._write()
        return is_due

    def _write(self) -> None:
        for size, hits in self._unwritten.items():
            # Those that nobody else has written down meanwhile.
            self.n_by_size[size] += Hit.objects.unpublished().bulk_update(hits, ["hit_id"])
        self._unwritten.clear()
        self._written_at = time.monotonic()


def _create_hits(client: MTurkClient, batch: Batch, keys: list[int]) -> Iterator[tuple[Hit, str]]:
    """The batch's HITs of these keys with the ids that the marketplace gave them."""
    document = batch.document
    pages = (
        (hit, html_question(hit.item, document, checks_on(hit), first_slot=hit.first_slot))
        for hit in _in_chunks(batch, keys)
    )

    def create(page: tuple[Hit, str]) -> str:
        hit, question = page
        return create_hit(client, hit, batch.hit_type_id, question)

    for (hit, _page), hit_id in calls_at_once(create, pages):
        yield hit, hit_id


def _in_chunks(batch: Batch, keys: list[int]) -> Iterator[Hit]:
    """The HITs with all that their pages show, not all in memory at once."""
    rows = Hit.objects.select_related("item__study", "item__picture").prefetch_related(
        "item__candidates__picture", "item__study__questions", "item__placed_checks__picture"
    )
    for start in range(0, len(keys), CHUNK):
        for hit in rows.filter(pk__in=keys[start : start + CHUNK]):
            hit.batch = batch  # one for all: a protocol is too much to read again for every HIT
            yield hit


def _start(batch: Batch, client: MTurkClient, *, wave: int) -> None:
    """Exclude workers, give the batch its HIT type, find HITs of an attempt that is long past."""
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
