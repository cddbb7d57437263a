from pathlib import Path
from typing import Any

from annotation.management.plain_table import LabelsCommand, reading_of
from validation.conclusions.components import components_of_file


class Command(LabelsCommand):
    help = (
        "Where the variation of ratings comes from (items, systems, annotators, what they "
        "share), and what more items or annotators would buy."
    )

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        result = components_of_file(file, self.columns(options), reading=reading)
        self.write_result(result, reading, options)
