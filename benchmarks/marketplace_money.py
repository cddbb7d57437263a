"""CreateHIT of one requester and of eight, compared: ``python -m benchmarks.marketplace_money``.

Money is locked by requester (docs/adr/0009): eight programs of one requester take turns, eight of
eight requesters don't, and none of seven waits while the eighth's money transaction stays open.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from benchmarks.commands import DATABASE, SERVER, parse_options, say
from benchmarks.marketplace_api import WARM_UP_SECONDS, call
from benchmarks.marketplace_site import Keys, describe_machine, enrol_requester, fresh_site
from benchmarks.marketplace_traffic import Tally, print_percentiles

REQUESTERS = 8
# With one lock on all requesters' money: commit f8bcadc, four programs, PostgreSQL, two cores.
ONE_LOCK_PER_SECOND = 95


def main() -> None:
    """Start a marketplace, publish in three ways, print the table."""
    options = parse_options(
        __doc__, **DATABASE, seconds=(15.0, "for each of the three"), processes=SERVER["processes"]
    )
    say(describe_machine())
    with fresh_site(options.database_url, processes=options.processes, threads=8) as site:
        keys = [enrol_requester(f"Lab {number}") for number in range(REQUESTERS)]
        publish_at_once(site.requester_url, keys, WARM_UP_SECONDS)
        for name, those, is_held in (
            ("one requester, eight programs", keys[:1] * REQUESTERS, False),
            ("eight requesters, a program each", keys, False),
            ("seven, while the eighth's transaction is open", keys[1:], True),
        ):
            if is_held and options.database_url is None:
                say(f"\n{name}: SQLite has one writer at a time")
                continue
            with _open_transaction(keys[0]) if is_held else nullcontext():
                tally = publish_at_once(site.requester_url, those, options.seconds)
            _report(name, tally, options.seconds)
        say(f"\nbefore, with one lock on all: {ONE_LOCK_PER_SECOND} CreateHIT/s")
        for line in site.faults()[:5]:
            say(f"  {line}")
        _audit()


def publish_at_once(url: str, keys: Sequence[Keys], seconds: float) -> Tally:
    total = Tally()
    with multiprocessing.get_context("spawn").Pool(len(keys)) as pool:
        for tally in pool.starmap(call, [(url, key, "CreateHIT", "", seconds) for key in keys]):
            total.add(tally)
    return total


@contextmanager
def _open_transaction(key: Keys) -> Iterator[None]:
    """Hold the lock on one requester's money."""
    from django.db import transaction

    from marketplace.models import Requester
    from marketplace.money import ledger

    with transaction.atomic():
        ledger.lock_accounts(Requester.objects.get(access_keys__access_key_id=key.access_key_id))
        yield


def _audit() -> None:
    from marketplace.money.reconciliation import audit

    problems = audit()
    say("\n".join(problems[:5]) if problems else "The ledger balances.")


def _report(name: str, tally: Tally, seconds: float) -> None:
    calls = sum(map(len, tally.seconds.values()))
    say(f"\n{name}: {calls / seconds:.1f} CreateHIT/s, {len(tally.failures)} failures")
    print_percentiles(tally)
    for line in tally.failures[:3]:
        say(f"  {line}")


if __name__ == "__main__":
    main()
