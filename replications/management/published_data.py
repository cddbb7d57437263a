"""What the commands that import a published data set have in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.importer import add_study_arguments, owner_named, team_named
from annotation.ownership import ownership_warning
from replications.published_data import import_published
from replications.readers.published import Published


class PublishedCommand(BaseCommand, ABC):
    """Read a data set, write its study and its scores, say what was written."""

    def add_arguments(self, parser: CommandParser) -> None:
        add_study_arguments(parser)

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
        self.stdout.write(str(imported))
        if warning := ownership_warning(imported.study.study):
            self.stderr.write(warning)
