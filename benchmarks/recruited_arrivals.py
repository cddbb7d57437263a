"""Participants arrive for half as many places: ``python -m benchmarks.recruited_arrivals``.

Fifty threads let 10,000 participants in to a study of 5,000 places. It ends with how many items
were promised twice, and how many participants have neither items nor a code: both must be 0.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from benchmarks.commands import DATABASE, parse_options, say
from benchmarks.marketplace_site import describe_machine, enrol_requester, fresh_database, publish


def main() -> None:
    options = parse_options(
        __doc__,
        **DATABASE,
        arrivals=(10_000, "of participants"),
        places=(5_000, "of the study"),
        items=(1, "HITs of each participant"),
        threads=(50, "that arrive at once"),
    )
    say(describe_machine())
    with fresh_database(options.database_url):
        token = _open_study(options)
        start = perf_counter()
        outcomes = _let_in(token, options)
        lasted = perf_counter() - start
        twice, without = _faults()
    rate = options.arrivals / lasted
    say(
        f"{options.arrivals:,} arrivals for {options.places:,} places from {options.threads} "
        f"threads in {lasted:.0f} s, {rate:.1f} a second: {dict(outcomes)}"
    )
    say(f"items promised twice: {twice}\nparticipants without items or a code: {without}")
    is_full = outcomes[""] == min(options.places, options.arrivals)
    sys.exit(0 if is_full and not twice and not without else 1)


def _open_study(options: argparse.Namespace) -> str:
    from marketplace.models import HitType
    from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study

    publish(enrol_requester(), hits=options.places * options.items, max_assignments=1)
    hit_type = HitType.objects.get()
    values = StudyValues(name="Many", kind="panel", items_per_session=options.items, **PROLIFIC)  # type: ignore[arg-type]
    return open_study(requester=hit_type.requester, hit_type=hit_type, values=values).token


def _let_in(token: str, options: argparse.Namespace) -> Counter[str]:
    from django.db import connection

    from marketplace.recruiting.arrivals import enter, recognise

    def arrive(numbers: range) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        try:
            for number in numbers:
                ids = {"PROLIFIC_PID": f"p{number}", "STUDY_ID": "s", "SESSION_ID": f"x{number}"}
                outcomes[enter(recognise(token, ids), known=None).outcome] += 1
        finally:
            connection.close()
        return outcomes

    shares = [range(n, options.arrivals, options.threads) for n in range(options.threads)]
    with ThreadPoolExecutor(options.threads) as pool:
        return sum(pool.map(arrive, shares), Counter())


def _faults() -> tuple[int, int]:
    from django.db.models import Count, F

    from marketplace.models import Hit, Session

    hits = Hit.objects.annotate(n=Count("assignments__session_item"))
    neither = Session.objects.filter(items=None, code="")
    return hits.filter(n__gt=F("max_assignments")).count(), neither.count()


if __name__ == "__main__":
    main()
