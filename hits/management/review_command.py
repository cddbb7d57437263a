"""What the commands that decide and pay have in common: preview, then do, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from hits.exceptions import AssignmentsUnknown
from hits.models import Assignment, AssignmentRecordQuerySet, Batch
from hits.sending import Sent, send_review
from presentation.progress import bar


class ReviewCommand(BaseCommand):
    """A command on a study's assignments that can say first what it would do."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what it would do, and do nothing"
        )
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def report(self, text: str, content: dict[str, Any], *, as_json: bool) -> None:
        self.stdout.write(json.dumps(content) if as_json else text)

    def send(self, study: Study, *, as_json: bool, problems: Sequence[str] = ()) -> None:
        """Send everything that was decided, and report it."""
        sent = send_review(study=study, reporter=bar)
        self.report_sent(sent, as_json=as_json, problems=problems)

    def report_sent(self, sent: Sent, *, as_json: bool, problems: Sequence[str] = ()) -> None:
        text = "\n".join([*problems, str(sent)])
        self.report(text, sent.record() | {"problems": list(problems)}, as_json=as_json)


def study_with_batches(slug: str) -> Study:
    """The study, or NothingPublished where it has no batch on a marketplace."""
    return Batch.objects.started_of(slug)[0].study


def assignments_named(study: Study, ids: Iterable[str]) -> AssignmentRecordQuerySet:
    """The study's assignments of these ids, or AssignmentsUnknown with those that are not."""
    wanted = set(ids)
    rows = Assignment.objects.filter(hit__batch__study=study, assignment_id__in=wanted)
    missing = wanted - set(rows.values_list("assignment_id", flat=True))
    if missing:
        raise AssignmentsUnknown(study.slug, sorted(missing))
    return rows.select_related("hit__batch__connection", "worker")
