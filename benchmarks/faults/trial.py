"""One trial: jobs of each queue are requested while the site's processes are killed."""

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.models import Count

from benchmarks.faults.jobs import N_STEPS
from benchmarks.faults.models import Effect, Run
from benchmarks.faults.site import Site
from work.models import Job
from work.tasks import request_job

SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 3.0
# One silent job takes longer than a lease; they are requested now and then.
SILENT_EVERY = 3
# A site that finishes no job for so long has left some waiting for ever.
STILL_SECONDS = 120.0


@dataclass
class Outcome:
    n_kills: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    n_jobs: int = 0
    n_done: int = 0
    n_failed: int = 0
    n_unfinished: int = 0
    n_repeated: int = 0
    n_doubled_effects: int = 0
    n_missing_effects: int = 0
    n_runs_at_once: int = 0
    n_without_reason: int = 0
    n_orphans: int = 0
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.n_jobs > 0 and not (
            self.n_unfinished
            or self.n_doubled_effects
            or self.n_missing_effects
            or self.n_runs_at_once
            or self.n_without_reason
            or self.n_orphans
        )

    def record(self) -> dict[str, Any]:
        return vars(self) | {"kills": dict(self.kills), "is_good": self.is_good}


def run_trial(*, n_kills: int, seed: int, port: int, log: Path) -> Outcome:
    rng = random.Random(seed)
    outcome = Outcome(n_kills=n_kills)
    start = time.monotonic()
    site = Site(port=port, log=log)
    site.start()
    try:
        site.wait_until_it_answers()
        for n in range(n_kills):
            _request(n)
            time.sleep(rng.uniform(SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS))
            outcome.kills[site.kill_one(rng)] += 1
        _wait_for_the_end()
    finally:
        outcome.n_orphans = site.end()
    outcome.seconds = round(time.monotonic() - start, 1)
    _count(outcome)
    return outcome


def _request(n: int) -> None:
    kinds = ["faults_short", "faults_steps"]
    kinds += ["faults_silent"] if n % SILENT_EVERY == 0 else []
    for kind in kinds:
        request_job(kind=kind, arguments={"n": n})


def _wait_for_the_end() -> None:
    n_before, end = -1, 0.0
    while n := _jobs().unfinished().count():
        if n != n_before:
            n_before, end = n, time.monotonic() + STILL_SECONDS
        if time.monotonic() > end:
            break
        time.sleep(0.5)


def _jobs() -> Any:
    return Job.objects.filter(kind__startswith="faults_")


def _count(outcome: Outcome) -> None:
    jobs = _jobs()
    states = Counter(jobs.values_list("state", flat=True))
    outcome.n_jobs = sum(states.values())
    outcome.n_done, outcome.n_failed = states[Job.State.DONE], states[Job.State.FAILED]
    outcome.n_unfinished = outcome.n_jobs - outcome.n_done - outcome.n_failed
    outcome.n_repeated = jobs.filter(attempts__gt=1).count()
    outcome.n_without_reason = jobs.filter(state=Job.State.FAILED, message="").count()
    outcome.n_runs_at_once = Run.objects.filter(is_double=True).count()
    steps = Effect.objects.values("job_id", "step").annotate(n=Count("pk"))
    outcome.n_doubled_effects = steps.filter(n__gt=1).count()
    n_due = {"faults_steps": N_STEPS}
    for job in jobs.filter(state=Job.State.DONE):
        n_there = Effect.objects.filter(job_id=job.pk).values("step").distinct().count()
        outcome.n_missing_effects += n_due.get(job.kind, 1) - n_there
