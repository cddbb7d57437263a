from pathlib import Path
from typing import Any

from replications.published_data import Published, PublishedCommand, read_golden_answers


class Command(PublishedCommand):
    help = (
        "Import a table of questions, golden answers and systems' answers (question, "
        "golden_answer, optionally prompt and id; then system and answer, or a column a system)."
    )

    def read(self, path: Path, **options: Any) -> Published:
        return read_golden_answers(path)
