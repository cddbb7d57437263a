"""One trial: people at work on the whole site while its processes are killed and hung in turn."""

import itertools
import signal
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from threading import Event
from typing import Any

from django.conf import settings
from django.db import connection, connections

from accounts.models import User
from accounts.roles import Scope
from accounts.teams import create_team
from accounts.tokens import create_personal_token
from annotation.access import give_to_team
from annotation.models import Study
from benchmarks.big_study import build_items
from benchmarks.commands import in_background, wait_for
from benchmarks.faults.loop_checks import common_faults
from benchmarks.faults.loop_trial import unfinished_jobs
from benchmarks.machines.people import Crowd, Requester, Worker
from benchmarks.machines.processes import RESTART_SECONDS, Machines, Process
from benchmarks.marketplace_site import sign_in_workers
from encryption import encrypt
from hits.crowd.simulated import SimulatedAnswers
from hits.exceptions import HitsError
from hits.models import PART, Assignment, Batch, Connection, Payment
from hits.progress import batch_report, fetch_statement
from marketplace.hits.assignments import answer_document
from marketplace.models import (
    Assignment as MarketAssignment,
    Hit as MarketHit,
    Requester as Account,
)
from marketplace.money import ledger
from marketplace.people.enrolment import issue_access_key

DEPOSIT_USD = Decimal(100_000)
# Of one launch. A study has items for as many answers as this machine will never take in.
N_ITEMS, N_ASSIGNMENTS, ITEMS_PER_SECOND = 12, 5, 1
SETTLED_WITHIN_SECONDS = 300.0
MOST_FAULTS = 20


@dataclass
class Outcome:
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    hangs: Counter[str] = field(default_factory=Counter)
    n_answers: int = 0
    n_approved: int = 0
    n_payments: int = 0
    n_launches: int = 0
    page_retries: Counter[str] = field(default_factory=Counter)
    api_retries: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.faults and self.n_answers > 0 and self.n_payments > 0

    def record(self) -> dict[str, Any]:
        counters = {
            name: dict(value) for name, value in vars(self).items() if isinstance(value, Counter)
        }
        return (
            vars(self) | counters | {"is_good": self.is_good, "faults": self.faults[:MOST_FAULTS]}
        )


def run_trial(machines: Machines, options: Namespace, sources: Sequence[Requester]) -> Outcome:
    outcome, crowd = Outcome(), Crowd()
    started = time.monotonic()
    answers = [SimulatedAnswers(study, seed=options.seed) for study in Study.objects.all()]
    sessions = sign_in_workers(options.workers)
    workers = [
        Worker(f"worker{n}", key, machines.site_url, crowd, answers)
        for n, key in enumerate(sessions)
    ]
    connections.close_all()
    end = time.monotonic() + options.seconds
    every_one_was_killed = Event()

    def is_over() -> bool:
        return time.monotonic() > end and every_one_was_killed.is_set()

    acts: list[Callable[[], None]] = [
        lambda each=each: each.work(is_over=is_over, thinking_seconds=options.thinking)
        for each in workers
    ]
    acts += [
        lambda each=each: each.run(is_over=is_over, n_items=N_ITEMS, n_assignments=N_ASSIGNMENTS)
        for each in sources
    ]
    kill = partial(_kill_in_turn, machines, options.between, outcome, every_one_was_killed)
    with in_background(kill):
        _all_at_once(acts)
    _all_at_once([each.finish for each in sources])
    _settle(outcome)
    outcome.faults += crowd.failures + [fault for each in sources for fault in each.failures]
    outcome.faults += faults_of(sources, crowd.answers, DEPOSIT_USD)
    outcome.page_retries = crowd.retries
    outcome.api_retries = sum((each.retries for each in sources), Counter())
    outcome.n_launches = sum(each.n_launches for each in sources)
    outcome.n_answers, outcome.n_payments = len(crowd.answers), Payment.objects.count()
    outcome.n_approved = Assignment.objects.filter(status=Assignment.Status.APPROVED).count()
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def make_requesters(options: Namespace, site_url: str) -> list[Requester]:
    requesters = []
    for n in range(options.requesters):
        owner = User.objects.create_user(f"requester-{n}")
        team = create_team(name=f"Lab {n}", owner=owner)
        slug = f"study-{n}"
        n_items = round(options.seconds * ITEMS_PER_SECOND) + 10 * N_ITEMS
        study, _items = build_items(owner, n_items=n_items, slug=slug)
        give_to_team(study=study, team=team, actor=owner)
        key = issue_access_key(name=f"Lab {n}", deposit_usd=DEPOSIT_USD)
        Connection.objects.create(
            team=team,
            name="Here",
            marketplace="local",
            access_key_id=key.access_key_id,
            encrypted_secret=encrypt(key.secret_access_key),
            fees=settings.MARKETPLACE_FEE_SCHEDULE,
        )
        scopes = [scope.value for scope in Scope]
        token = create_personal_token(user=owner, name="program", scopes=scopes, days=7).text
        requesters.append(Requester(slug, site_url, token, seed=options.seed))
    return requesters


def _kill_in_turn(
    machines: Machines,
    pause_seconds: float,
    outcome: Outcome,
    every_one_was_killed: Event,
    ended: Event,
) -> None:
    turns = itertools.chain(
        ((each, _kill, outcome.kills) for each in machines.in_turn),
        itertools.cycle(
            (each, act, counts)
            for act, counts in ((_hang, outcome.hangs), (_kill, outcome.kills))
            for each in machines.in_turn
        ),
    )
    for process, act, counts in turns:
        if ended.wait(pause_seconds):
            return
        try:
            act(process)
        except TimeoutError as error:
            outcome.faults.append(str(error))
            every_one_was_killed.set()
            return
        counts[process.name] += 1
        if len(outcome.kills) == len(machines.in_turn):
            every_one_was_killed.set()


def _kill(process: Process) -> None:
    process.kill()
    time.sleep(RESTART_SECONDS)
    process.start()


def _hang(process: Process) -> None:
    """As where a machine swaps or its network is away: for longer than a lease lasts."""
    process.signal(signal.SIGSTOP)
    time.sleep(settings.WORK_LEASE_SECONDS * 1.5)
    process.signal(signal.SIGCONT)


def _all_at_once(acts: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(acts)) as pool:
        list(pool.map(lambda act: act(), acts))


def _settle(outcome: Outcome) -> None:
    connection.close()
    try:
        wait_for(lambda: not unfinished_jobs(), seconds=SETTLED_WITHIN_SECONDS, failure="")
    except TimeoutError:
        outcome.faults.append(f"{unfinished_jobs()} jobs wait for ever.")


def faults_of(
    requesters: Sequence[Requester], answers: Mapping[str, str], deposit_usd: Decimal
) -> list[str]:
    return [
        *_of_what_workers_saw(answers),
        *_of_what_requesters_did(requesters),
        *_of_hits(),
        *_of_money(deposit_usd),
        *common_faults(),
    ]


def _of_what_workers_saw(answers: Mapping[str, str]) -> Iterator[str]:
    there = dict(MarketAssignment.objects.handed_in().values_list("public_id", "answer"))
    if lost := answers.keys() - there.keys():
        yield f"{len(lost)} answers are lost of which the site said that it has them."
    if strange := there.keys() - answers.keys():
        yield f"{len(strange)} answers are there that nobody sent, or saw arrive."
    wrong = [
        key
        for key, answer in answers.items()
        if key in there and there[key] != answer_document([("answer", [answer])])
    ]
    if wrong:
        yield f"{len(wrong)} answers are not as they were sent, such as {wrong[0]}."


def _of_what_requesters_did(requesters: Sequence[Requester]) -> Iterator[str]:
    intended = {name for each in requesters for name in each.bonuses}
    bonuses = Payment.objects.exclude(purpose=PART).select_related("assignment")
    there = {payment.assignment.assignment_id for payment in bonuses}
    if intended != there or len(bonuses) != len(there):
        yield f"{len(intended)} bonuses were decided, and {len(bonuses)} written down."


def _of_hits() -> Iterator[str]:
    names = list(MarketHit.objects.values_list("requester_annotation", flat=True))
    if n_double := len(names) - len(set(names)):
        yield f"{n_double} HITs are published twice."


def _of_money(deposit_usd: Decimal) -> Iterator[str]:
    """Spent as each batch's two ledgers have it, and what each requester has left."""
    spent_usd = Decimal(0)
    for batch in Batch.objects.select_related("connection", "study"):
        try:
            fetch_statement(batch=batch)
        except HitsError as error:
            yield f"Batch {batch.pk} has no statement: {error}"
        report = batch_report(batch)
        if report.difference_usd != 0:
            yield f"Batch {batch.pk}: {report.spend} here, {report.statement} there."
        spent_usd += report.spend.total_usd
    accounts = Account.objects.all()
    balances_usd = (
        ledger.balance_of(account(each))
        for each in accounts
        for account in (ledger.available_account, ledger.held_account)
    )
    left_usd = sum(balances_usd, spent_usd)
    if left_usd != deposit_usd * len(accounts):
        yield f"${left_usd} of ${deposit_usd * len(accounts)} are left or spent."
