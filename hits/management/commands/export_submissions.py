from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study, Submission
from hits.models import PracticeAnswer
from hits.studies import practice_answer_rows, submission_rows
from presentation.files import write_whole
from presentation.numbers import count_of
from presentation.row_files import FORMS


class Command(BaseCommand):
    help = (
        "Write a study's submissions: who, when, for how long, the reason, the comment, the "
        "status and the flag. Judgments are a table of their own."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        parser.add_argument(
            "--practice",
            action="store_true",
            help="the answers of practice, which are none of them",
        )
        parser.add_argument("--format", choices=FORMS, help="default: as the file is named")

    def handle(self, *args: Any, study: str, output: Path, **options: Any) -> None:
        target = Study.objects.named(study)
        named = output.suffix.lower().removeprefix(".")
        _, write = FORMS[options["format"] or (named if named in FORMS else "csv")]
        if options["practice"]:
            write_whole(output, write(practice_answer_rows(target)))
            count = PracticeAnswer.objects.filter(hit__batch__study=target).count()
            self.stdout.write(f"{output}: {count_of(count, 'answer')} of practice of '{study}'.")
            return
        write_whole(output, write(submission_rows(target)))
        count = Submission.objects.of(target).count()
        self.stdout.write(f"{output}: {count} submission{'s' * (count != 1)} of '{study}'.")
