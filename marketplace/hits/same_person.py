"""Accounts that may be one person's: work from one device, one payout, the same long texts.

Each is evidence and none is proof: families share devices and accounts at a bank. Nothing is held
back by it; requesters see which workers of theirs share what, and never the detail itself.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError
from django.utils.crypto import salted_hmac

from marketplace import clock
from marketplace.documents.answers import read_given_answers
from marketplace.models import Assignment, DevicePrint, PayoutMethod, Requester

# Worker accounts whose work came from one device: kept as hashes, and given out as counts.
#
# An address and what a browser says of itself are hashed as they come in, with the site's key and a
# salt for each requester. Neither is stored, nor is the hash ever given out.

KEPT_FOR = timedelta(days=90)
MOST_OTHERS = 10
MOST_PRINTS = 200_000


DEVICE, PAYOUT, TEXTS = "device", "payout", "texts"


def _trait(worker: str, trait: str, n_shared: int, n: int, others: Iterable[str]) -> dict[str, Any]:
    """A worker who shares a trait in `n_shared` of `n` submissions; a payout counts as one."""
    named = sorted(others)
    counts = {"n_shared": n_shared, "n": n, "n_others": len(named)}
    return {"worker_id": worker, "trait": trait, "others": named[:MOST_OTHERS], **counts}


def note_device(assignment: Assignment, *, address: str, browser: str) -> None:
    requester = assignment.hit.requester_id
    values = {
        "requester_id": requester,
        "digest": salted_hmac(
            f"marketplace.devices.{requester}", f"{address}\n{browser}", algorithm="sha256"
        ).hexdigest(),
        "created_at": clock.now(),
    }
    # One statement: whoever submits waits for it.
    DevicePrint.objects.bulk_create(
        [DevicePrint(assignment=assignment, **values)], ignore_conflicts=True
    )


def delete_old_prints(now: datetime) -> None:
    DevicePrint.objects.filter(created_at__lt=now - KEPT_FOR).delete()


def shared_devices(requester: Requester, annotation_prefix: str) -> list[dict[str, Any]]:
    rows = (
        DevicePrint.objects.filter(
            requester=requester, assignment__hit__requester_annotation__startswith=annotation_prefix
        )
        .order_by("-pk")
        .values_list("digest", "assignment__worker__worker_id")
    )
    workers_of: dict[str, set[str]] = defaultdict(set)
    digests_of: dict[str, list[str]] = defaultdict(list)
    for digest, worker in rows[:MOST_PRINTS]:
        workers_of[digest].add(worker)
        digests_of[worker].append(digest)
    shared = []
    for worker, digests in sorted(digests_of.items()):
        others = set().union(*(workers_of[digest] for digest in digests)) - {worker}
        if others:
            n_shared = sum(len(workers_of[digest]) > 1 for digest in digests)
            shared.append(_trait(worker, DEVICE, n_shared, len(digests), others))
    return shared


# Of a text that two people do not write in the same words by chance.
LEAST_CHARACTERS = 60
# What more accounts than these have in common is of the page, and says nothing.
MOST_WHO_SHARE = 5
MOST_ANSWERS = 20_000


def shared_traits(requester: Requester, annotation_prefix: str) -> list[dict[str, Any]]:
    mine = (
        Assignment.objects.of(requester)
        .handed_in()
        .filter(hit__requester_annotation__startswith=annotation_prefix)
    )
    return sorted(
        [
            *shared_devices(requester, annotation_prefix),
            *_payouts(mine.values_list("worker", flat=True).distinct()),
            *_texts(mine),
        ],
        key=lambda row: (row["worker_id"], row["trait"]),
    )


def _payouts(workers: Iterable[Any]) -> Iterator[dict[str, Any]]:
    methods = PayoutMethod.objects.filter(worker__in=list(workers)).exclude(details_seal="")
    by_seal: dict[str, set[str]] = defaultdict(set)
    for seal, worker in methods.values_list("details_seal", "worker__worker_id"):
        by_seal[seal].add(worker)
    for sharing in by_seal.values():
        for worker in sharing if len(sharing) > 1 else ():
            yield _trait(worker, PAYOUT, 1, 1, sharing - {worker})


def _texts(assignments: Any) -> Iterator[dict[str, Any]]:
    rows = assignments.order_by("-pk").values_list("worker__worker_id", "answer")[:MOST_ANSWERS]
    workers_of: dict[str, set[str]] = defaultdict(set)
    texts_of: dict[str, list[set[str]]] = defaultdict(list)
    for worker, answer in rows.iterator():
        texts = set(_long_texts(answer))
        texts_of[worker].append(texts)
        for text in texts:
            workers_of[text].add(worker)
    common = {text for text, who in workers_of.items() if 1 < len(who) <= MOST_WHO_SHARE}
    for worker, submissions in texts_of.items():
        shared = [texts & common for texts in submissions if texts & common]
        if shared:
            others = set().union(*(workers_of[text] for texts in shared for text in texts))
            yield _trait(worker, TEXTS, len(shared), len(submissions), others - {worker})


def _long_texts(answer: str) -> Iterator[str]:
    try:
        values = [value for given in read_given_answers(answer).values() for value in given]
    except (ParseError, DefusedXmlException):
        return
    for text in _strings(values):
        plain = " ".join(text.split()).casefold()
        if len(plain) >= LEAST_CHARACTERS:
            yield plain


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                yield value
            else:
                yield from _strings(inner)
        else:
            yield value
