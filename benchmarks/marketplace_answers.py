"""Let simulated workers answer open HITs: ``python -m benchmarks.marketplace_answers --help``.

Runs beside a marketplace, on its database; each HIT is answered as its own page asks.
"""

import argparse
import json
import os
from typing import Any

import django


def main() -> None:
    """Answer a share of the HITs that can still be taken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the HITs that are open")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    answer(options.share)


def answer(share: float) -> int:
    """Answer so many of the open HITs, the oldest first."""
    from accounts.models import User
    from marketplace.hits.assignments import accept_hit, submit_assignment
    from marketplace.models import Hit
    from marketplace.people.enrolment import open_worker_account

    user, is_new = User.objects.get_or_create(username="rater")
    worker = open_worker_account(user=user) if is_new else user.worker_account
    hits = Hit.objects.filter(status=Hit.Status.ASSIGNABLE).order_by("pk")
    chosen = list(hits[: round(share * hits.count())])
    for hit in chosen:
        assignment = accept_hit(worker=worker, hit=hit)
        fields = [("answer", [json.dumps(_answer(hit.question))])]
        submit_assignment(public_id=assignment.public_id, fields=fields)
    return len(chosen)


def _answer(question: str) -> dict[str, Any]:
    """What the page of an Assay study posts: the lowest value for everything."""
    from hits.crowd.worker import Page
    from marketplace.documents.questions import parse_question

    page = parse_question(question, allow_http=True).content
    task = json.loads(Page(page).task or "{}")
    judgments = [
        {"candidate": key, "question": each["name"], "value": each["min"], "seconds": 2.5}
        for key in task["candidates"]
        for each in task["questions"]
    ]
    return {
        "version": task["version"],
        "item": task["item"],
        "order": task["candidates"],
        "judgments": judgments,
        "justification": "",
        "comment": "",
        "active_seconds": 10,
        "pasted": False,
    }


if __name__ == "__main__":
    main()
