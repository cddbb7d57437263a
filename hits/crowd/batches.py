"""A simulated crowd at one batch: sent by a command, or in the background for a page."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import User
from hits.archive import require_current
from hits.connections import client_of
from hits.crowd.replay import CrowdPractice, ReplayResult, crowd_names, crowd_practice, replay_group
from hits.crowd.simulated import FaultyAnswers, SimulatedAnswers, faulty_names
from hits.exceptions import ChangeUnfit
from hits.marketplaces import is_marketplace_here
from hits.models import Batch, Hit
from hits.practice import collect_practice
from hits.qualification_tests import right_choices
from hits.requirements import countries_of
from presentation.progress import Progress, silently
from work.execution import RunningJob

SEED = 0
# Beside those whom every HIT needs, so that not everybody answers everything.
N_SPARE = 1


def may_simulate(batch: Batch) -> bool:
    """Whether pages offer a simulated crowd for this batch: where the site allows it, and at this
    site's own marketplace, for HITs that whoever signs up can accept."""
    is_out = bool(batch.hit_type_id) and batch.closed_at is None
    is_here = batch.connection.is_on_this_site and is_marketplace_here()
    return settings.SIMULATED_CROWD and is_out and is_here and not batch.is_recruited


def crowd_size(batch: Batch) -> int:
    n_needed = batch.max_assignments + batch.n_added
    if batch.max_per_worker:
        n_assignments = Hit.objects.of(batch).published().count() * n_needed
        n_needed = max(n_needed, -(-n_assignments // batch.max_per_worker))
    return n_needed + N_SPARE


@transaction.atomic
def allow_crowd(*, batch: Batch, actor: User) -> None:
    """Write down who has a simulated crowd answer; ChangeUnfit where it cannot."""
    require_current(batch.study)
    require_possible(batch)
    record(
        team=batch.study.team,
        actor=actor,
        action="batch.simulated_crowd",
        subject=batch.study.slug,
        details={"batch": batch.pk, "n_workers": crowd_size(batch)},
    )


def require_possible(batch: Batch) -> None:
    """ChangeUnfit where no simulated worker could accept a HIT of this batch."""
    if not may_simulate(batch):
        raise ChangeUnfit(_("No simulated crowd is offered for this batch."), code="no_crowd")
    if batch.offered_until <= timezone.now():
        raise ChangeUnfit(
            _("The batch has expired: extend it first, or nobody can accept HITs."), code="expired"
        )


def simulate_answers(
    batch: Batch,
    *,
    n_workers: int,
    seed: int,
    site_url: str,
    faulty: Sequence[str] = (),
    progress: Progress = silently,
) -> ReplayResult:
    faults = faulty_names(faulty, seed=seed)
    careful = SimulatedAnswers(batch.study, seed=seed)
    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=[*crowd_names(n_workers, seed=seed), *faults],
        source=FaultyAnswers(careful, faults, seed=seed) if faults else careful,
        site_url=site_url,
        countries=countries_of(batch),
        total=Hit.objects.of(batch).published().count() * batch.max_assignments,
        tests=right_choices(batch),
        practice=simulated_practice(batch, seed=seed),
        progress=progress,
    )


def simulated_practice(batch: Batch, *, seed: int) -> CrowdPractice | None:
    """Practice is collected as soon as it is done, since the batch's own HITs wait for it."""
    return crowd_practice(
        batch,
        SimulatedAnswers(batch.study, seed=seed),
        lambda: collect_practice(batch=batch, client=client_of(batch.connection)),
    )


def answer_in_background(running: RunningJob, batch: Batch) -> str:
    """Have a simulated crowd answer a batch for a page, and say what came of it.

    Done again, it goes on with what is open: a worker accepts no HIT twice.
    """
    require_possible(batch)
    result = simulate_answers(
        batch,
        n_workers=crowd_size(batch),
        seed=SEED,
        site_url=settings.SITE_URL,
        progress=running.progress(_("assignments of batch {batch}").format(batch=batch.pk)),
    )
    n = result.n_submitted
    text = ngettext(
        "Simulated workers submitted {n:,} assignment, which is marked as simulated.",
        "Simulated workers submitted {n:,} assignments, which are marked as simulated.",
        n,
    ).format(n=n)
    return text if n else f"{text} {result.refusal}".strip()
