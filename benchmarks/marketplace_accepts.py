"""Fifty workers ask for the last assignments of HITs: ``python -m benchmarks.marketplace_accepts``.

Every worker asks, over HTTP, for every HIT, all fifty in the same order, so that they always
meet; each HIT has assignments for half of them. It ends with how many assignments there are too
many of, and how many workers were shown an error: both must be 0, else it exits with 1.
"""

import sys
import threading
from collections import Counter
from time import perf_counter

from benchmarks.commands import DATABASE, SERVER, parse_options, say
from benchmarks.marketplace_site import (
    Site,
    describe_machine,
    enrol_requester,
    fresh_site,
    publish,
    sign_in_workers,
)
from benchmarks.marketplace_traffic import Browser, Tally, print_percentiles

GRANTED, GONE = 302, 410


def main() -> None:
    """Start a marketplace, let the workers ask, count."""
    options = parse_options(
        __doc__,
        **DATABASE,
        workers=(50, "at once"),
        hits=(400, "400 make 10,000 accepts"),
        **SERVER,
    )
    say(describe_machine())
    max_assignments = options.workers // 2
    with fresh_site(
        options.database_url, processes=options.processes, threads=options.threads
    ) as site:
        publish(enrol_requester(), hits=options.hits, max_assignments=max_assignments)
        sessions = sign_in_workers(options.workers)
        start = perf_counter()
        answers, tally = _ask_for_all(site, sessions, _hit_paths())
        lasted = perf_counter() - start
        faults = site.faults()
        too_many, accepted = _too_many()
    n_requests = answers.total()
    say(
        f"\n{options.workers} workers, {options.hits} HITs of {max_assignments} assignments: "
        f"{n_requests:,} requests and {accepted:,} accepted in "
        f"{lasted:.0f} s, {n_requests / lasted:.1f} answers/s"
    )
    print_percentiles(tally)
    errors = n_requests - answers[GRANTED] - answers[GONE]
    say(f"assignments too many: {too_many}\nerrors shown to a worker: {errors}")
    for line in (*tally.failures[:3], *faults[:10]):
        say(f"  {line}")
    missing = max_assignments * options.hits - accepted
    sys.exit(1 if too_many or errors or missing or faults else 0)


def _hit_paths() -> list[str]:
    from marketplace.models import Hit

    ids = Hit.objects.order_by("pk").values_list("public_id", flat=True)
    return [f"/worker/hits/{public_id}/accept/" for public_id in ids]


def _ask_for_all(site: Site, sessions: list[str], paths: list[str]) -> tuple[Counter[int], Tally]:
    """How often each HTTP status was the answer, and how long the answers took."""
    counts: list[Counter[int]] = [Counter() for _ in sessions]
    tallies = [Tally() for _ in sessions]

    def ask(number: int) -> None:
        browser = Browser(site.host, site.port, sessions[number])
        for path in paths:
            begun = perf_counter()
            try:
                answer = browser.post(path, {})
            except OSError as error:
                counts[number][0] += 1
                tallies[number].failures.append(f"connection: {error}")
                continue
            tallies[number].timed("accept", begun)
            counts[number][answer.status] += 1
            if answer.status not in (GRANTED, GONE):
                tallies[number].failures.append(f"{answer.status} {answer.text[:300]}")
        browser.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return sum(counts, Counter()), total


def _too_many() -> tuple[int, int]:
    """How many assignments are beyond what their HIT asked for, or a worker's second of a
    HIT; and how many there are."""
    from marketplace.models import Assignment, Hit

    live = Counter(Assignment.objects.live().values_list("hit", flat=True))
    max_assignments = dict(Hit.objects.values_list("pk", "max_assignments"))
    beyond = sum(max(0, count - max_assignments[key]) for key, count in live.items())
    pairs = Counter(Assignment.objects.live().values_list("hit", "worker"))
    return beyond + sum(count - 1 for count in pairs.values()), live.total()


if __name__ == "__main__":
    main()
