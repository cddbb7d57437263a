from pathlib import Path
from typing import Any

from replications.management.published_data import PublishedCommand
from replications.readers.golden_answers import read_golden_answers
from replications.readers.published import Published


class Command(PublishedCommand):
    help = (
        "Import a table of questions, golden answers and systems' answers (question, "
        "golden_answer, optionally prompt and id; then system and answer, or a column a system)."
    )

    def read(self, path: Path, **options: Any) -> Published:
        return read_golden_answers(path)
