from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from hits.decisions import override
from hits.drafts import paid_part, price_usd
from hits.management.base import (
    ReviewCommand,
    add_spend_argument,
    assignments_of_ids,
    require_room,
    require_typed_amount,
    study_with_batches,
)
from hits.models import Assignment
from presentation.numbers import count_of


class Command(ReviewCommand):
    help = "Approve rejected assignments of the last 30 days, and so pay them."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--assignment", action="append", metavar="ID", help="may be repeated")
        parser.add_argument("--all", action="store_true", help="every one that is possible")
        parser.add_argument("--feedback", default="", help="what the worker reads")
        add_spend_argument(parser)

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
        target = study_with_batches(study)
        of_study = Assignment.objects.filter(hit__batch__study=target)
        candidates = assignments_of_ids(target, assignment) if assignment else of_study
        assignments = candidates.overridable()
        rows = list(assignments.select_related("hit__batch__connection"))
        if dry_run:
            total = sum(price_usd(one) for one in rows)
            content = {"would_override": [one.assignment_id for one in rows]}
            rejections = count_of(len(rows), "rejection")
            self.report(
                f"Would override {rejections}, ${total:.2f}. Nothing was paid.",
                content | {"total_usd": f"{total:.2f}"},
                as_json=json,
            )
            return
        problems = [problem for one in rows if (problem := _part_problem(one))]
        require_typed_amount([(one, price_usd(one)) for one in rows], options["spend"])
        with transaction.atomic():
            override(assignments=assignments, feedback=feedback)
            require_room(target, rows)
        self.send(target, as_json=json, problems=problems)


def _part_problem(assignment: Assignment) -> str:
    part = paid_part(assignment)
    if part is None:
        return ""
    return (
        f"{assignment.assignment_id}: ${part.amount_usd:.2f} of its reward was paid already; with "
        f"the whole it is ${part.with_reward_usd:.2f}."
    )
