"""What the tests of publishing, collecting and deciding do over and over."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.apps import apps

from annotation.models import Study
from hits import collect, plans, publications
from hits.models import Batch, Hit
from marketplace.models import WorkerAccount
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.hits.wire import wire_of
from tests.marketplace.conftest import submit

PASSWORD = "a-long-and-winding-password"
Tables = dict[str, list[tuple[object, ...]]]


def requester_keys() -> dict[str, str]:
    """What `create_requester --json` prints, of a requester with $10."""
    return asdict(issue_access_key(name="Dialogue lab", deposit_usd=Decimal(10)))


def collected_work(study: Study, keys: Mapping[str, str], *names: str) -> Batch:
    """Of every item of three an assignment of $1.00 by each worker of these names, collected."""
    client = wire_of(keys).client
    batch = published_batch(study, client, reward_usd="1.00", max_assignments=len(names))
    for name in names:
        worker = create_worker(username=name, password=PASSWORD)
        for position in range(3):
            hand_in(worker, hit_on(batch, f"d{position}"), {"alpha": position, "beta": 50})
    collect.collect_batch(batch=batch, client=client)
    return batch


def batch_of(
    study: Study, *, part: int | None = None, excluded_workers: Sequence[str] = (), **settings: Any
) -> Batch:
    """A batch of the study, of all its items unless a selection is given, that nothing is
    published of."""
    texts = {"title": f"Judge {study.slug}", "description": "Read and judge."}
    settings = texts | {"reward_usd": "0.10"} | settings
    settings["reward_usd"] = Decimal(settings["reward_usd"])
    draft = plans.draft_batch(study=study, **settings)
    return plans.plan_batch(draft=draft, part=part, excluded_workers=excluded_workers).batch


def published_batch(study: Study, client: Any, **settings: Any) -> Batch:
    batch = batch_of(study, **settings)
    publications.publish_batch(batch=batch, client=client)
    return batch


def answer_to(
    hit: Hit, values: Mapping[str, float], *, order: Sequence[str] = (), **fields: Any
) -> dict[str, Any]:
    """What the page of a HIT posts: a value by candidate key for the only question asked.

    Candidates are shown in `order` (else as they are in `values`); the one at place n took
    n + 0.5 seconds.
    """
    question = hit.item.study.questions.get().name
    blind = dict(hit.item.candidates.values_list("key", "blind_key"))
    order = list(order) or list(values)
    rows = []
    for key, value in values.items():
        row = {"candidate": blind[key], "question": question, "value": value}
        rows.append(row | {"seconds": order.index(key) + 0.5})
    answer = {"version": 1, "item": str(hit.item.pk), "order": [blind[key] for key in order]}
    answer |= {"judgments": rows, "justification": "", "comment": ""}
    return answer | {"active_seconds": 10, "pasted": False} | fields


def hand_in(worker: WorkerAccount, hit: Hit, values: Mapping[str, float], **fields: Any) -> str:
    """Let a worker do a HIT through the marketplace, as fast as its page says; returns the
    assignment's id."""
    answer = answer_to(hit, values, **fields)
    seconds = answer["active_seconds"] or 0
    return submit(worker, hit.hit_id, worked_seconds=seconds, answer=json.dumps(answer))


def hit_on(batch: Batch, item: str) -> Hit:
    return Hit.objects.of(batch).get(item__key=item)


def hits_there(client: Any) -> list[dict[str, Any]]:
    """Every HIT of the requester, as the marketplace lists them."""
    pages = client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 100})
    return [hit for page in pages for hit in page["HITs"]]


def balance_of(client: Any) -> tuple[str, str]:
    """What is available and what is on hold."""
    answer = client.get_account_balance()
    return answer["AvailableBalance"], answer["OnHoldBalance"]


def tables() -> Tables:
    """Every row of the annotation and hits apps, so that two moments can be compared."""
    configs = map(apps.get_app_config, ("annotation", "hits"))
    models = [model for config in configs for model in config.get_models()]
    return {model.__name__: sorted(model.objects.values_list(), key=repr) for model in models}
