"""Accounts that may be one person's: work from one device, one payout, the same long texts.

Each is evidence and none is proof: families share devices and accounts at a bank. Nothing is held
back by it; requesters see which workers of theirs share what, and never the detail itself.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError

from marketplace.documents.given_answers import read_answers
from marketplace.hits.devices import shared_devices
from marketplace.models import Assignment, PayoutMethod, Requester
from marketplace.money.payout_methods import seal_missing

DEVICE, PAYOUT, TEXTS = "device", "payout", "texts"
# Of a text that two people do not write in the same words by chance.
LEAST_CHARACTERS = 60
# What more accounts than these have in common is of the page, and says nothing.
MOST_WHO_SHARE = 5
MOST_ANSWERS = 20_000


@dataclass(frozen=True)
class SharedTrait:
    """A worker who shares something with others: in how many of their submissions, of how many;
    a payout is of the account, and counts as once."""

    worker_id: str
    trait: str
    n_shared: int
    n: int
    others: tuple[str, ...]


def shared_traits(requester: Requester, annotation_prefix: str) -> list[SharedTrait]:
    """What workers of these HITs of the requester's have in common, by worker."""
    rows = [
        SharedTrait(row.worker_id, DEVICE, row.n_shared, row.n, row.others)
        for row in shared_devices(requester, annotation_prefix)
    ]
    handed_in = Assignment.objects.of(requester).handed_in()
    mine = handed_in.filter(hit__requester_annotation__startswith=annotation_prefix)
    rows += [*_payouts(mine.values_list("worker", flat=True).distinct()), *_texts(mine)]
    return sorted(rows, key=lambda row: (row.worker_id, row.trait))


def _payouts(workers: Iterable[Any]) -> Iterator[SharedTrait]:
    seal_missing()
    methods = PayoutMethod.objects.filter(worker__in=list(workers)).exclude(details_seal="")
    by_seal: dict[str, set[str]] = defaultdict(set)
    for seal, worker in methods.values_list("details_seal", "worker__worker_id"):
        by_seal[seal].add(worker)
    for sharing in by_seal.values():
        for worker in sharing if len(sharing) > 1 else ():
            yield SharedTrait(worker, PAYOUT, 1, 1, tuple(sorted(sharing - {worker})))


def _texts(assignments: Any) -> Iterator[SharedTrait]:
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
            names = tuple(sorted(others - {worker}))
            yield SharedTrait(worker, TEXTS, len(shared), len(submissions), names)


def _long_texts(answer: str) -> Iterator[str]:
    """The worker's own long texts, without regard to case and spaces."""
    try:
        values = [value for given in read_answers(answer).values() for value in given]
    except (ParseError, DefusedXmlException):
        return
    for text in _strings(values):
        plain = " ".join(text.split()).casefold()
        if len(plain) >= LEAST_CHARACTERS:
            yield plain


def _strings(value: object) -> Iterator[str]:
    """All texts of an answer, those inside a form field that is JSON as well."""
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
