"""How long publishing and collecting take, and what they ask of the marketplace.

    python -m benchmarks.publishing
    python -m benchmarks.publishing --hits 1000

A requester's site publishes a study at a marketplace that runs in processes and on a PostgreSQL
database of its own (both databases are made and dropped), then collects: with all HITs open and
nothing new, with a share of them answered, once all are answered, approved and done, and again.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from time import perf_counter, process_time
from typing import Any

from benchmarks.commands import POSTGRES, SERVER, parse_options, say, say_head, say_row, source
from benchmarks.marketplace_site import (
    Marketplace,
    describe_machine,
    requester_and_marketplace,
)

SHARE_NEW = 0.01


@dataclass(frozen=True)
class Step:
    name: str
    seconds: float
    requester_cpu_seconds: float
    marketplace_cpu_seconds: float
    database_cpu_seconds: float
    calls: dict[str, int]
    outcome: str
    load: float

    @property
    def cpu_seconds(self) -> float:
        """Of all processors: what takes this long on an idle machine with one."""
        return self.requester_cpu_seconds + self.marketplace_cpu_seconds + self.database_cpu_seconds


def main() -> None:
    options = parse_options(
        __doc__,
        hits=(10_000, "of the study"),
        **POSTGRES,
        **SERVER,
        publish_only=(False, "and no more"),
    )
    said = [describe_machine(), f"{options.hits:,} HITs, commit {source()}"]
    sys.stderr.write("\n".join(said) + "\n")
    with requester_and_marketplace(
        options.postgres,
        processes=options.processes,
        threads=options.threads,
        deposit_usd=options.hits,
    ) as marketplace:
        steps = _steps(options, marketplace)
        if faults := marketplace.site.faults():
            sys.exit("\n".join(faults[-5:]))
    say("\n".join([*said, ""]))
    say_head(
        *("step", "seconds", "load", "CPU seconds: requester's site + marketplace + PostgreSQL"),
        *("requests", "by operation"),
    )
    for step in steps:
        named = ", ".join(f"{n:,} {name}" for name, n in sorted(step.calls.items()))
        cpu = (step.requester_cpu_seconds, step.marketplace_cpu_seconds, step.database_cpu_seconds)
        say_row(
            *(step.name, f"{step.seconds:.1f}", f"{step.load:.1f}"),
            " + ".join(f"{each:.1f}" for each in cpu) + f" = {step.cpu_seconds:.1f}",
            *(f"{sum(step.calls.values()):,}", named),
        )


def _steps(options: argparse.Namespace, marketplace: Marketplace) -> list[Step]:
    from hits.decisions import decide
    from hits.models import Assignment, Hit

    batch = _planned(options.hits)
    collect = _job("collect_study", batch)
    steps = [_timed(marketplace, "publish", _job("publish_batch", batch))]
    n_there = Hit.objects.published().values("hit_id").distinct().count()
    if n_there != options.hits:
        sys.exit(f"{n_there} HITs are published, not {options.hits}.")
    if options.publish_only:
        return steps
    steps.append(_timed(marketplace, "collect: all open, nothing new", collect))
    _answer(marketplace, SHARE_NEW)
    steps.append(_timed(marketplace, f"collect: {SHARE_NEW:.0%} answered", collect))
    _answer(marketplace, 1.0)
    steps.append(_timed(marketplace, "collect: all answered", collect))
    decide(assignments=Assignment.objects.all(), decision=Assignment.Decision.APPROVE)
    steps.append(_timed(marketplace, "approve", _job("send_review", batch)))
    again = [_timed(marketplace, f"collect: {name}", collect) for name in ("all done", "again")]
    return steps + again


def _planned(n_hits: int) -> Any:
    from accounts.models import User
    from benchmarks.big_study import build_items
    from hits.plans import draft_batch, plan_batch

    owner = User.objects.create_superuser("benchmark", password=None)
    study, _items = build_items(owner, n_items=n_hits)
    draft = draft_batch(
        study=study,
        title="Judge responses",
        description="Read and judge.",
        reward_usd=Decimal("0.10"),
    )
    return plan_batch(draft=draft).batch


def _job(kind: str, batch: Any) -> Callable[[], str]:
    from annotation.study_facts import COLLECT_NEW, PUBLISH, REVIEW, request_study_job
    from work.execution import run_job
    from work.models import Job

    kinds = {"publish_batch": PUBLISH, "collect_study": COLLECT_NEW, "send_review": REVIEW}
    arguments = {"batch": batch.pk} if kind == "publish_batch" else {}

    def run() -> str:
        from hits.models import Batch

        # Collections wait between one and the next; the clock isn't what is measured.
        Batch.objects.update(collected_at=None)
        job = request_study_job(study=batch.study, kind=kinds[kind], arguments=arguments)
        run_job(job.pk)
        job = Job.objects.get(pk=job.pk)
        if job.state != Job.State.DONE:
            raise RuntimeError(f"{job}: {job.message}")
        return job.message

    return run


def _answer(marketplace: Marketplace, share: float) -> None:
    marketplace.run("-m", "benchmarks.marketplace_site", "--share", str(share))


def _timed(marketplace: Marketplace, name: str, act: Callable[[], str]) -> Step:
    calls = _counted_calls()
    started, cpu_started = perf_counter(), marketplace.cpu_seconds()
    own_started = process_time()
    outcome = act()
    seconds, own_seconds = perf_counter() - started, process_time() - own_started
    cpu = [now - before for now, before in zip(marketplace.cpu_seconds(), cpu_started, strict=True)]
    rounded = [round(each, 2) for each in (seconds, own_seconds, *cpu)]
    step = Step(name, *rounded, dict(calls), outcome, round(os.getloadavg()[0], 1))
    sys.stderr.write(f"{step}\n")
    return step


def _counted_calls() -> Counter[str]:
    """The calls from now on, by operation, of every client that is made."""
    from urllib3.connectionpool import HTTPConnectionPool

    calls: Counter[str] = Counter()
    send = getattr(HTTPConnectionPool, "uncounted_urlopen", HTTPConnectionPool.urlopen)

    def urlopen(pool: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
        headers = {str(name).lower(): value for name, value in (options["headers"] or {}).items()}
        target = headers.get("x-amz-target", url)
        target = target.decode() if isinstance(target, bytes) else target
        is_api = target.startswith("MTurk")
        calls[target.rpartition(".")[2] if is_api else url.rpartition("/v1")[2]] += 1
        return send(pool, method, url, *args, **options)

    HTTPConnectionPool.uncounted_urlopen = send  # type: ignore[attr-defined]
    HTTPConnectionPool.urlopen = urlopen  # type: ignore[method-assign]
    return calls


if __name__ == "__main__":
    main()
