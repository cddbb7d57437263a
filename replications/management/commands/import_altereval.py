from pathlib import Path
from typing import Any

from annotation.management.importer import ImportCommand
from annotation.readers.drafts import StudyDraft
from annotation.readers.pooled_batch import read_pooled_batch


class Command(ImportCommand):
    help = "Import Fashion-AlterEval's released judgments (judged_targets_*.csv)."

    def read(self, path: Path, **options: Any) -> StudyDraft:
        return read_pooled_batch(path)
