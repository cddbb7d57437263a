"""Speed of the Requester API through boto3: ``python -m benchmarks.marketplace_api --help``.

Several programs at once create HITs, each with a UniqueRequestToken, and then list the
assignments of a HIT that has many, a hundred to a page.
"""

import argparse
import multiprocessing
import uuid
from time import monotonic, perf_counter
from typing import Any

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
from benchmarks.marketplace_traffic import Tally, print_percentiles

PAGE_SIZE = 100
WARM_UP_SECONDS = 2.0
HIT_TYPE = {
    "Title": "Rate a response",
    "Description": "One rating.",
    "Reward": "0.05",
    "AssignmentDurationInSeconds": 3600,
    "LifetimeInSeconds": 86_400,
}


def main() -> None:
    """Start a marketplace, call its API, print the table."""
    options = parse_options(
        __doc__,
        **DATABASE,
        clients=(4, "programs at once"),
        assignments=(500, "of the HIT that is listed"),
        seconds=(15.0, "for each operation"),
        **SERVER,
    )
    say(describe_machine())
    servers = {"processes": options.processes, "threads": options.threads}
    with fresh_site(options.database_url, **servers) as site:
        keys = enrol_requester()
        publish(keys, hits=1, max_assignments=options.assignments)
        hit_id = hand_in(options.assignments)
        for operation in ("CreateHIT", "ListAssignmentsForHIT"):
            for seconds in (WARM_UP_SECONDS, options.seconds):
                arguments = (site.requester_url, keys, operation, hit_id, seconds)
                tally = _all_at_once(options.clients, arguments)
            _report(operation, tally, options)


def _all_at_once(clients: int, arguments: tuple[Any, ...]) -> Tally:
    total = Tally()
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        for tally in pool.starmap(call, [arguments] * clients):
            total.add(tally)
    return total


def call(endpoint_url: str, keys: Keys, operation: str, hit_id: str, seconds: float) -> Tally:
    """One program: the same operation over and over, until the time is over."""
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
                token = _list_one_page(client, hit_id, token)
        except (ClientError, BotoCoreError) as error:
            tally.failures.append(str(error))
        else:
            tally.timed(operation, start)
    return tally


def _list_one_page(client: Any, hit_id: str, token: str | None) -> str | None:
    more = {} if token is None else {"NextToken": token}
    page = client.list_assignments_for_hit(HITId=hit_id, MaxResults=PAGE_SIZE, **more)
    return page.get("NextToken")


def _report(operation: str, tally: Tally, options: argparse.Namespace) -> None:
    calls = sum(map(len, tally.seconds.values()))
    say(
        f"\n{operation}, {options.clients} clients: {calls / options.seconds:.1f} calls/s, "
        f"{len(tally.failures)} failures"
    )
    print_percentiles(tally)
    for line in tally.failures[:3]:
        say(f"  {line}")


if __name__ == "__main__":
    main()
