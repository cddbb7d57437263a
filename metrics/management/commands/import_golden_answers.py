from pathlib import Path
from typing import Any

from annotation.readers.golden_answers import read_golden_answers
from annotation.readers.published import Published
from metrics.management.published import PublishedCommand


class Command(PublishedCommand):
    help = (
        "Import a table of questions, golden answers and systems' answers (question, "
        "golden_answer, optionally prompt and id; then system and answer, or a column a system)."
    )

    def read(self, path: Path, **options: Any) -> Published:
        return read_golden_answers(path)
