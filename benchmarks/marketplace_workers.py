"""Speed of the worker site: ``python -m benchmarks.marketplace_workers --help``.

Fifty workers do HITs of one group over and over, each the way a browser does: accept
(POST), page (the page to work on, and the frame in it), submit (POST). First without pauses,
for whole cycles per second; then with pauses for thinking, for the percentiles of each step.
"""

import argparse
import multiprocessing
import random
import threading
from time import monotonic, perf_counter, sleep

from benchmarks.commands import DATABASE, SERVER, parse_options, say
from benchmarks.marketplace_site import (
    Site,
    describe_machine,
    enrol_requester,
    fresh_site,
    publish,
    sign_in_workers,
)
from benchmarks.marketplace_traffic import Browser, Tally, do_one_hit, print_percentiles

GENERATORS = 2
WARM_UP_SECONDS = 2.0


def main() -> None:
    """Start a marketplace, let the workers work, print the tables."""
    options = parse_options(
        __doc__,
        **DATABASE,
        workers=(50, "at once"),
        hits=(10_000, "in one group"),
        seconds=(30.0, "how long each part lasts"),
        thinking=(2.0, "the pause, in seconds"),
        **SERVER,
    )
    say(describe_machine())
    with fresh_site(
        options.database_url, processes=options.processes, threads=options.threads
    ) as site:
        start = perf_counter()
        group = publish(enrol_requester(), hits=options.hits, max_assignments=1)
        sessions = sign_in_workers(options.workers)
        say(f"{options.hits:,} HITs published in {perf_counter() - start:.0f} s")
        work(site, group, sessions, WARM_UP_SECONDS, 0.0)
        for thinking_seconds in (0.0, options.thinking):
            _measure(site, group, sessions, options, thinking_seconds=thinking_seconds)


def _measure(
    site: Site,
    group: str,
    sessions: list[str],
    options: argparse.Namespace,
    *,
    thinking_seconds: float,
) -> None:
    shares = [sessions[number::GENERATORS] for number in range(GENERATORS)]
    context = multiprocessing.get_context("spawn")
    arguments = [(site, group, share, options.seconds, thinking_seconds) for share in shares]
    with context.Pool(GENERATORS) as pool:
        tallies = pool.starmap(work, arguments)
    total = Tally()
    for tally in tallies:
        total.add(tally)
    _report(total, max(tally.lasted for tally in tallies), thinking_seconds, len(sessions))


def work(
    site: Site, group: str, sessions: list[str], seconds: float, thinking_seconds: float
) -> Tally:
    """Let these workers work until the time is over or nothing is left."""
    tallies = [Tally() for _ in sessions]
    start = perf_counter()
    until = monotonic() + seconds

    def one(session: str, tally: Tally) -> None:
        sleep(random.Random(session).uniform(0, 3 * thinking_seconds))  # nobody starts in step
        browser = Browser(site.host, site.port, session)
        while monotonic() < until and not tally.failures:
            if not do_one_hit(browser, group, tally, thinking_seconds=thinking_seconds):
                break
        browser.close()

    threads = [
        threading.Thread(target=one, args=pair) for pair in zip(sessions, tallies, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Tally(lasted=perf_counter() - start)
    for tally in tallies:
        total.add(tally)
    return total


def _report(tally: Tally, lasted: float, thinking_seconds: float, workers: int) -> None:
    pause = f"{thinking_seconds:g} s of thinking" if thinking_seconds else "no pauses"
    say(
        f"\n{workers} workers, {pause}: {tally.cycles} cycles in {lasted:.1f} s, "
        f"{tally.cycles / lasted:.1f} cycles/s, {len(tally.failures)} failures"
    )
    print_percentiles(tally)
    for failure in tally.failures[:3]:
        say(f"  {failure}")


if __name__ == "__main__":
    main()
