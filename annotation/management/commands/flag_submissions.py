from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.exceptions import StudyUnfit, require
from annotation.flags import flag_submissions, unflag_submissions
from annotation.models import Study, Submission, SubmissionQuerySet


class Command(BaseCommand):
    help = (
        "Mark submissions as doubted, with the reason. They count on; agreement is shown with "
        "them and without, and label_study can leave them out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--annotator", metavar="PSEUDONYM", help="only this one's")
        parser.add_argument("--item", metavar="KEY", help="only those on this item")
        parser.add_argument("--round", type=int, metavar="N", help="only those of this round")
        parser.add_argument(
            "--held", action="store_true", help="only those that the protocol holds for a person"
        )
        wish = parser.add_mutually_exclusive_group(required=True)
        wish.add_argument("--reason", metavar="TEXT", help="why they are in doubt")
        wish.add_argument("--unflag", action="store_true", help="take the marks away")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        filters = {
            "annotator__pseudonym": options["annotator"],
            "item__key": options["item"],
            "round": options["round"],
            "evidence__is_held": True if options["held"] else None,
        }
        set_filters = {field: value for field, value in filters.items() if value is not None}
        submissions = _submissions(Study.objects.named(study), set_filters)
        if options["unflag"]:
            self.stdout.write(f"Flags taken away: {unflag_submissions(submissions=submissions)}.")
        else:
            n = flag_submissions(submissions=submissions, reason=options["reason"])
            self.stdout.write(f"Submissions flagged: {n}.")


def _submissions(study: Study, filters: dict[str, Any]) -> SubmissionQuerySet:
    require(
        filters,
        StudyUnfit(
            "Say which submissions: --annotator, --item, --round or --held.", code="no_filter"
        ),
    )
    submissions = Submission.objects.of(study).filter(**filters)
    if not submissions.exists():
        description = ", ".join(
            "those held for a person"
            if field == "evidence__is_held"
            else f"{field.split('__')[0]} '{value}'"
            for field, value in filters.items()
        )
        raise StudyUnfit(
            f"Study '{study.slug}' has no submission of {description}.", code="no_submission"
        )
    return submissions
