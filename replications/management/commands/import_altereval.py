from pathlib import Path
from typing import Any

from annotation.management.importer import ImportCommand
from annotation.readers.drafts import StudyDraft
from replications.readers.altereval import read_altereval


class Command(ImportCommand):
    help = "Import Fashion-AlterEval's released judgments (judged_targets_*.csv)."

    def read(self, path: Path, **options: Any) -> StudyDraft:
        return read_altereval(path)
