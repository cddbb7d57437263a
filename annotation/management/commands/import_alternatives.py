from pathlib import Path
from typing import Any

from annotation.management.importer import ImportCommand
from annotation.readers.alternatives import read_alternatives
from annotation.readers.drafts import StudyDraft


class Command(ImportCommand):
    help = (
        "Import a JSON Lines file of targets and their pools "
        "(item, target{title,image}, candidates[{key,title,image}])."
    )

    def read(self, path: Path, **options: Any) -> StudyDraft:
        return read_alternatives(path)
