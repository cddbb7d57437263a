"""What the commands that import a published data set have in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from annotation.management.importer import StudyImportCommand, owner_named, team_named
from replications.published_data import import_published
from replications.readers.published import Published


class PublishedCommand(StudyImportCommand, ABC):
    """Read a data set, and write its study and its scores."""

    @abstractmethod
    def read(self, path: Path, **options: Any) -> Published:
        """What the file holds."""

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        imported = import_published(
            published=self.read(file, **options),
            path=file,
            slug=options["study"],
            title=options["title"],
            owner=owner_named(options["owner"]),
            team=team_named(options["team"]),
        )
        self.write_imported(imported, is_json=options["json"])
