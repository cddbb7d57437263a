from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.exports import write_labels
from annotation.models import LabelSet, Study
from presentation.numbers import count_of


class Command(BaseCommand):
    help = "Write a label set of a study as CSV, or as JSON to a file that is named so."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--labels", type=int, required=True, metavar="VERSION")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")

    def handle(self, *args: Any, study: str, labels: int, output: Path, **options: Any) -> None:
        label_set = (
            LabelSet.objects.of(Study.objects.named(study))
            .select_related("study", "question")
            .numbered(labels)
        )
        write_labels(label_set, output)
        size = count_of(label_set.labels.count(), "label")
        self.stdout.write(
            f"{output}: {size} of '{label_set.question.name}', "
            f"version {labels}, by {label_set.method}."
        )
