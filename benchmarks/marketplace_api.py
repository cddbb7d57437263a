"""Speed of the Requester API through boto3: ``python -m benchmarks.marketplace_api --help``.

Several programs at once create HITs, each with a UniqueRequestToken, and then list the
assignments of a HIT that has many, a hundred to a page.

With ``--requesters``: CreateHIT of one requester and of eight. Money is locked by requester
(docs/adr/0009): eight programs of one requester take turns, eight of eight requesters don't, and
none of seven waits while the eighth's money transaction stays open.
"""

import argparse
import multiprocessing
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import monotonic, perf_counter

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.commands import DATABASE, SERVER, parse_options, say
from benchmarks.marketplace_site import (
    QUESTION,
    Keys,
    describe_machine,
    enrol_requester,
    fresh_site,
    hand_in,
    publish,
)
from benchmarks.marketplace_traffic import WARM_UP_SECONDS, Tally, print_tally, sum_tallies

PAGE_SIZE = 100
REQUESTERS = 8
# With one lock on all requesters' money: commit f8bcadc, four programs, PostgreSQL, two cores.
ONE_LOCK_PER_SECOND = 95
HIT_TYPE = {
    "Title": "Rate a response",
    "Description": "One rating.",
    "Reward": "0.05",
    "AssignmentDurationInSeconds": 3600,
    "LifetimeInSeconds": 86_400,
}


def main() -> None:
    options = parse_options(
        __doc__,
        **DATABASE,
        clients=(4, "programs at once"),
        assignments=(500, "of the HIT that is listed"),
        seconds=(15.0, "for each part"),
        requesters=(False, "compare CreateHIT of one requester and of eight"),
        **SERVER,
    )
    say(describe_machine())
    if options.requesters:
        compare_requesters(options)
        return
    servers = {"processes": options.processes, "threads": options.threads}
    with fresh_site(options.database_url, **servers) as site:
        keys = enrol_requester()
        publish(keys, hits=1, max_assignments=options.assignments)
        hit_id = hand_in(options.assignments)
        for operation in ("CreateHIT", "ListAssignmentsForHIT"):
            for seconds in (WARM_UP_SECONDS, options.seconds):
                call = (site.requester_url, keys, operation, hit_id, seconds)
                tally = call_at_once([call] * options.clients)
            _report(f"{operation}, {options.clients} clients", tally, options.seconds)


def call_at_once(calls: Sequence[tuple[str, Keys, str, str, float]]) -> Tally:
    with multiprocessing.get_context("spawn").Pool(len(calls)) as pool:
        return sum_tallies(pool.starmap(call, calls))


def call(endpoint_url: str, keys: Keys, operation: str, hit_id: str, seconds: float) -> Tally:
    client = boto3.client(
        "mturk",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    tally, token = Tally(), None
    until = monotonic() + seconds
    while monotonic() < until and not tally.failures:
        start = perf_counter()
        try:
            if operation == "CreateHIT":
                client.create_hit(
                    **HIT_TYPE, Question=QUESTION, UniqueRequestToken=str(uuid.uuid4())
                )
            else:
                more = {} if token is None else {"NextToken": token}
                page = client.list_assignments_for_hit(HITId=hit_id, MaxResults=PAGE_SIZE, **more)
                token = page.get("NextToken")
        except (ClientError, BotoCoreError) as error:
            tally.failures.append(str(error))
        else:
            tally.timed(operation, start)
    return tally


def _report(name: str, tally: Tally, seconds: float) -> None:
    print_tally(f"{name}: {tally.n_steps / seconds:.1f} calls/s", tally)


def compare_requesters(options: argparse.Namespace) -> None:
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
            _report(f"CreateHIT, {name}", tally, options.seconds)
        say(f"\nbefore, with one lock on all: {ONE_LOCK_PER_SECOND} CreateHIT/s")
        for line in site.faults()[:5]:
            say(f"  {line}")
        from marketplace.money.reconciliation import audit

        say("\n".join(audit()[:5]) or "The ledger balances.")


def publish_at_once(url: str, keys: Sequence[Keys], seconds: float) -> Tally:
    return call_at_once([(url, key, "CreateHIT", "", seconds) for key in keys])


@contextmanager
def _open_transaction(key: Keys) -> Iterator[None]:
    from django.db import transaction

    from marketplace.models import Requester
    from marketplace.money import ledger

    with transaction.atomic():
        ledger.lock_accounts(Requester.objects.get(access_keys__access_key_id=key.access_key_id))
        yield


if __name__ == "__main__":
    main()
