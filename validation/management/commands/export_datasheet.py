from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.exceptions import FolderUnusable
from annotation.models import Study
from annotation.result_kinds.agreement import AgreementKind
from presentation.writers import make_folder, write_files
from validation.heds import (
    DATASHEETS,
    datasheet_file,
)


class Command(BaseCommand):
    help = "Write how a study came about: its datasheet, and the Human Evaluation Datasheet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        parser.add_argument("--without-pay", action="store_true", help="leave amounts out")

    def handle(
        self, *args: Any, study: str, folder: Path, without_pay: bool, **options: Any
    ) -> None:
        target = Study.objects.named(study)
        # The datasheets state it as it is now.
        AgreementKind().require(target)
        files = {
            name: datasheet_file(target, name, with_money=not without_pay) for name in DATASHEETS
        }
        try:
            make_folder(folder)
            paths = write_files(files, folder)
        except OSError as error:
            raise FolderUnusable(
                f"{error.filename or folder} cannot be written: {error.strerror}."
            ) from None
        self.stdout.write(f"{len(paths)} files in {folder}: {paths[0].name} first.")
