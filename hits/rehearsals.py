"""Rehearsals: simulated annotators answer a hidden copy of a study through the pages of the
worker site, before anybody is paid (docs/rehearsal.md).

The copy has neither a team nor an owner, so no list, budget or API of the study's team has it. Its
HITs pay nothing, and only the simulated annotators hold the qualification to discover them.
"""

import hashlib
import hmac
import logging
import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from annotation.access import record_in
from annotation.flags import count_judgments_change, store_evidence
from annotation.models import (
    Candidate,
    Study,
    Submission,
)
from annotation.new_studies import copy_for_rehearsal
from annotation.pairs import imported_items
from annotation.protocols.records import ProtocolDocument, Qualifications
from annotation.protocols.versions import current_document, launch_faults, require_no_faults
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import (
    AGREEMENT,
    REHEARSE,
    RESULTS,
    VALIDATION,
    jobs_of,
    request_study_job,
)
from encryption import encrypt
from hits.calls import calls_at_once, create_type, grant_qualification
from hits.collect import collect_batch
from hits.connections import client_of, enrol_requester
from hits.crowd.replay import AnswerSource, CrowdWorker
from hits.crowd.similarity import Qualities, study_qualities
from hits.crowd.simulated import FaultyAnswers, SimulatedAnswers
from hits.endpoints import MTurkClient, translated_errors
from hits.exceptions import HitsError, MarketplaceRefused, RehearsalUnfit, require
from hits.limits import THIS_SITE, is_marketplace_here, run_time
from hits.models import Assignment, Batch, Connection, Hit
from hits.plans import draft_batch, plan_batch
from hits.publications import publish_batch
from hits.rehearsal_report import make_report
from hits.studies import delete_contents, require_current
from metrics.study_scores import named_scorer, score_study
from work.execution import RunningJob
from work.models import Job

logger = logging.getLogger(__name__)
# About two minutes of work; items beyond them are drawn.
MOST_ASSIGNMENTS = 240
LEAST_ITEMS = 10
HITS_PER_ANNOTATOR, MOST_ANNOTATORS = 10, 20
SECONDS_PER_ASSIGNMENT = 0.6
# Of the connection and of the requester.
CONNECTION = "rehearsals"
# Cheap ones, so that the page of metrics is filled too.
METRICS = ("rougeL", "chrf")
FAULTS_OF_CARELESS = ("random", "straight_line", "fast")
MOST_SEEDS = 10**6


@dataclass(frozen=True)
class Crew:
    noise: float
    careless_share: float


CREWS = {"careful": Crew(0.12, 0.0), "mixed": Crew(0.18, 0.25), "careless": Crew(0.25, 0.6)}
DEFAULT_CREW = "careful"


def rehearsal_of(study: Study) -> Study | None:
    return Study.objects.filter(rehearsal_of=study.pk).first()


def planted_order(study: Study) -> list[str]:
    """The systems in the order in which a rehearsal may plant them: by name, the best first."""
    systems = Candidate.objects.filter(item__study=study).exclude(system="").order_by()
    return sorted(systems.values_list("system", flat=True).distinct())


def rehearsed_size(study: Study) -> tuple[int, int]:
    """How many items a rehearsal is of, and annotators per item."""
    n_annotators = current_document(study).completion.assignments_per_item
    n_items = max(MOST_ASSIGNMENTS // n_annotators, LEAST_ITEMS)
    return min(study.items.count(), n_items), n_annotators


@transaction.atomic
def request_rehearsal(
    *, study: Study, actor: User | None, crew: str = DEFAULT_CREW, is_planted: bool = False
) -> Job:
    """Request a rehearsal, or return the one that is under way."""
    require_current(study)
    require(
        is_marketplace_here(),
        RehearsalUnfit(_("This site has no marketplace of its own."), code="no_marketplace"),
    )
    if study.rehearsal_of_id is not None or not study.items.exists():
        raise RehearsalUnfit(_("There are no items to rehearse with."), code="no_items")
    require_no_faults(launch_faults(study))
    if under_way := jobs_of(study).of_kind(REHEARSE).unfinished().first():
        return under_way
    planted = planted_order(study) if is_planted else []
    chosen = {"seed": secrets.randbelow(MOST_SEEDS), "crew": crew, "planted": planted}
    job = request_study_job(study=study, kind=REHEARSE, arguments=chosen, requested_by=actor)
    record_in(study, actor=actor, action="rehearsal.start", details=chosen)
    return job


def rehearse(running: RunningJob, study: Study) -> str:
    """The whole rehearsal. Killed or stopped anywhere, it continues when it runs again."""
    chosen = running.arguments
    rehearsal = _copied_study(study, chosen["seed"])
    qualities = study_qualities(rehearsal, seed=chosen["seed"], planted=chosen["planted"])
    connection = rehearsal_connection()
    client = client_of(connection)
    batch = _planned_batch(rehearsal, connection, client)
    if batch.closed_at is None:
        workers = _admitted_workers(running, batch, client)
        source = answer_source(
            rehearsal, qualities, list(workers), seed=chosen["seed"], crew=chosen["crew"]
        )
        with run_time():
            _set_discoverable(client, batch, is_active=True)
            publish_batch(
                batch=batch, client=client, progress=running.progress(_("HITs published"))
            )
            _set_discoverable(client, batch, is_active=False)
        _answer(running, batch, client, workers, source)
        _end_hits(client, batch)
    _use_simulated_times(rehearsal)
    _compute_results(running, rehearsal)
    n = make_report(rehearsal, qualities, chosen).facts["n_submitted"]
    return ngettext(
        "Simulated annotators completed {n:,} assignment.",
        "Simulated annotators completed {n:,} assignments.",
        n,
    ).format(n=n)


def _copied_study(study: Study, seed: int) -> Study:
    slug = f"{study.slug[:60]}-rehearsal-{seed:06d}"
    rehearsal = rehearsal_of(study)
    if rehearsal is not None and rehearsal.slug != slug:
        end_rehearsal(study)
        delete_rehearsal(study=study, actor=None)
        rehearsal = None
    if rehearsal is not None:
        return rehearsal
    document = current_document(study)
    n_items, _n_annotators = rehearsed_size(study)
    keys = list(imported_items(study).order_by("position", "pk").values_list("key", flat=True))
    n_drawn = max(len(keys) * n_items // study.items.count(), 1)
    drawn = set(random.Random(seed).sample(keys, n_drawn)) | _named_keys(document)
    return copy_for_rehearsal(
        source=study,
        slug=slug,
        # Simulated annotators live nowhere, speak nothing and have practised nothing.
        document=replace(document, qualifications=Qualifications()),
        keys=drawn,
    )


def _named_keys(document: ProtocolDocument) -> set[str]:
    cases = (case for check in document.checks for case in check.cases)
    return {key for case in cases for key in (case.item, case.source_item) if key}


def rehearsal_connection() -> Connection:
    """The site's requester account for rehearsals, enrolled when it is first needed."""
    connection, is_new = Connection.objects.get_or_create(
        team=None, name=CONNECTION, defaults={"marketplace": THIS_SITE}
    )
    if is_new or not connection.access_key_id or not _is_known(connection):
        # Nobody else's account has a name that follows from the site's secret.
        key = enrol_requester(
            site_url=settings.SITE_URL, name=f"Rehearsals {_derived('requester')}"
        )
        connection.access_key_id = key.access_key_id
        connection.encrypted_secret = encrypt(key.secret_access_key)
        connection.save(update_fields=["access_key_id", "encrypted_secret"])
    return connection


def _derived(purpose: str) -> str:
    return hmac.new(
        settings.SECRET_KEY.encode(), f"rehearsal:{purpose}".encode(), hashlib.sha256
    ).hexdigest()[:12]


def _is_known(connection: Connection) -> bool:
    try:
        with translated_errors():
            client_of(connection).get_account_balance()
    except MarketplaceRefused as refusal:
        if refusal.has_code("UnrecognizedClientException"):
            return False
        raise
    return True


def _planned_batch(rehearsal: Study, connection: Connection, client: MTurkClient) -> Batch:
    if (batch := Batch.objects.of(rehearsal).first()) is not None:
        return batch
    document = current_document(rehearsal)
    type_id = create_type(
        client, name=rehearsal.slug, description="Held by simulated annotators of a rehearsal."
    )
    return plan_batch(
        draft=draft_batch(
            study=rehearsal,
            title=rehearsal.title,
            description=_("Simulated annotators rehearse a study."),
            reward_usd=Decimal("0.00"),
            connection=connection,
            max_assignments=document.completion.assignments_per_item,
            requirements=[
                {
                    "QualificationTypeId": type_id,
                    "Comparator": "Exists",
                    "ActionsGuarded": "DiscoverPreviewAndAccept",
                }
            ],
            auto_approval_delay_seconds=0,
            lifetime_seconds=24 * 3600,
        )
    ).batch


def _admitted_workers(
    running: RunningJob, batch: Batch, client: MTurkClient
) -> dict[str, CrowdWorker]:
    n_assignments = Hit.objects.of(batch).count() * batch.max_assignments
    # One more than an item needs, so that not everybody answers everything.
    n = max(
        batch.max_assignments + 1, min(-(-n_assignments // HITS_PER_ANNOTATOR), MOST_ANNOTATORS)
    )
    prefix = f"rehearsal-{_derived('worker')}"
    names = [f"{prefix}-{number}" for number in range(1, n + 1)]
    type_id = batch.requirements[0]["QualificationTypeId"]
    workers = {}
    for name, worker in running.progress(_("annotators signed in"))(
        calls_at_once(_sign_in, names), len(names)
    ):
        grant_qualification(client, type_id, worker.worker_id, 1)
        workers[name] = worker
    return workers


def _sign_in(name: str) -> CrowdWorker:
    worker = CrowdWorker(settings.SITE_URL, name, secret=settings.SECRET_KEY)
    worker.arrive()
    return worker


def _set_discoverable(client: MTurkClient, batch: Batch, *, is_active: bool) -> None:
    # An inactive qualification is not listed among those that workers can request.
    with translated_errors():
        client.update_qualification_type(
            QualificationTypeId=batch.requirements[0]["QualificationTypeId"],
            QualificationTypeStatus="Active" if is_active else "Inactive",
        )


def answer_source(
    rehearsal: Study, qualities: Qualities, names: Sequence[str], *, seed: int, crew: str
) -> AnswerSource:
    chosen = CREWS[crew]
    careless = random.Random(seed).sample(list(names), round(len(names) * chosen.careless_share))
    faults = {
        name: FAULTS_OF_CARELESS[number % len(FAULTS_OF_CARELESS)]
        for number, name in enumerate(careless)
    }
    source = SimulatedAnswers(
        rehearsal,
        seed=seed,
        noise=chosen.noise,
        qualities=qualities,
        careless=[name for name, fault in faults.items() if fault == "random"],
    )
    return FaultyAnswers(source, faults, seed=seed) if faults else source


def _answer(
    running: RunningJob,
    batch: Batch,
    client: MTurkClient,
    workers: dict[str, CrowdWorker],
    source: AnswerSource,
) -> None:
    # Of an earlier attempt, so that progress counts only what is left.
    collect_batch(batch=batch, client=client)
    total = Hit.objects.of(batch).count() * batch.max_assignments
    for _name in running.progress(_("assignments"))(
        _answer_in_turns(workers, source, batch.hit_type_id),
        total - Assignment.objects.of(batch).count(),
    ):
        pass
    collect_batch(batch=batch, client=client, progress=running.progress(_("HITs collected")))
    held = Hit.objects.of(batch).short_of_answers()
    if held.exists():
        _submit_held(workers, source, [hit.hit_id for hit in held])
        collect_batch(batch=batch, client=client)


def _answer_in_turns(
    workers: dict[str, CrowdWorker], source: AnswerSource, hit_type_id: str
) -> Iterator[str]:
    """Let all annotators do a HIT each, round after round, until none is left for anybody."""

    def answer_next(name: str) -> bool:
        task = workers[name].accept_next(hit_type_id)
        if task is not None:
            workers[name].submit(task, source.answer(name, task.page))
        return task is not None

    names = list(workers)
    while names:
        at_work = []
        for name, has_answered in calls_at_once(answer_next, names):
            if has_answered:
                at_work.append(name)
                yield name
        names = at_work


def _submit_held(
    workers: dict[str, CrowdWorker], source: AnswerSource, hit_ids: Sequence[str]
) -> None:
    """Submit what annotators of an attempt that was killed had accepted."""
    for hit_id in hit_ids:
        for name, worker in workers.items():
            if (task := worker.accept(hit_id)) is not None:
                worker.submit(task, source.answer(name, task.page))


def _end_hits(client: MTurkClient, batch: Batch) -> None:
    """Expire and delete a batch's HITs and its qualification at the marketplace, as far as it
    allows; a HIT that is being worked on only expires."""
    for hit in Hit.objects.of(batch).published():
        with suppress(MarketplaceRefused), translated_errors():
            client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=timezone.now())
            client.delete_hit(HITId=hit.hit_id)
    with suppress(MarketplaceRefused), translated_errors():
        client.delete_qualification_type(
            QualificationTypeId=batch.requirements[0]["QualificationTypeId"]
        )
    Batch.objects.filter(pk=batch.pk).update(closed_at=timezone.now())


def _use_simulated_times(rehearsal: Study) -> None:
    # A program submits at once what its model took a while for.
    Submission.objects.of(rehearsal).exclude(active_seconds=None).update(
        seconds=F("active_seconds")
    )
    with transaction.atomic():
        count_judgments_change(study_ids=[rehearsal.pk])
    store_evidence(rehearsal)


def _compute_results(running: RunningJob, rehearsal: Study) -> None:
    has_references = rehearsal.items.exclude(reference="").exists()
    has_texts = Candidate.objects.filter(item__study=rehearsal).exclude(text="").exists()
    metrics = METRICS if has_references and has_texts else ()
    names = (RESULTS, AGREEMENT, VALIDATION)
    steps = [*metrics, *names]
    for step in running.progress(_("results computed"))(steps, len(steps)):
        if step in names:
            find_study_kind(step).compute_now(rehearsal)
        else:
            score_study(study=rehearsal, scorer=named_scorer(step))


@transaction.atomic
def delete_rehearsal(*, study: Study, actor: User | None) -> bool:
    """Delete the rehearsal's copy with all that was made of it. Its HITs at the marketplace are
    ended by `end_rehearsal` before."""
    rehearsal = rehearsal_of(study)
    if rehearsal is None:
        return False
    delete_contents(rehearsal)
    record_in(study, actor=actor, action="rehearsal.delete", details={"slug": rehearsal.slug})
    return True


def end_rehearsal(study: Study) -> None:
    """End what a rehearsal that was stopped has at the marketplace. Its HITs expire within a day
    in any case, so a marketplace that is away is no obstacle."""
    rehearsal = rehearsal_of(study)
    for batch in Batch.objects.of(rehearsal).started().open() if rehearsal else ():
        try:
            _end_hits(client_of(batch.connection), batch)
        except HitsError as problem:
            logger.warning("The HITs of %s were not deleted: %s", batch, problem)
