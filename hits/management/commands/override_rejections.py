from typing import Any

from django.core.management.base import CommandError, CommandParser

from hits.drafts import price_usd
from hits.management.review_command import ReviewCommand, assignments_named, study_with_batches
from hits.models import Assignment
from hits.review import override


class Command(ReviewCommand):
    help = "Approve rejected assignments of the last 30 days, and so pay them."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--assignment", action="append", metavar="ID", help="may be repeated")
        parser.add_argument("--all", action="store_true", help="every one that is possible")
        parser.add_argument("--feedback", default="", help="what the worker reads")

    def handle(
        self,
        *args: Any,
        study: str,
        assignment: list[str] | None,
        all: bool,
        feedback: str,
        dry_run: bool,
        json: bool,
        **options: Any,
    ) -> None:
        if bool(assignment) == all:
            raise CommandError("Name each --assignment, or --all.")
        studied = study_with_batches(study)
        of_study = Assignment.objects.filter(hit__batch__study=studied)
        named = assignments_named(studied, assignment) if assignment else of_study
        chosen = named.overridable()
        if dry_run:
            rows = list(chosen.select_related("hit__batch__connection"))
            total = sum(price_usd(one) for one in rows)
            content = {"would_override": [one.assignment_id for one in rows]}
            text = f"Would override {len(rows)} rejections, ${total:.2f}. Nothing was paid."
            self.report(text, content | {"total_usd": f"{total:.2f}"}, as_json=json)
            return
        override(assignments=chosen, feedback=feedback)
        self.send(studied, as_json=json)
