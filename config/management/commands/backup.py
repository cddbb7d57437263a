from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from config.backup_files.archive import BackupRefused
from config.backup_files.creation import make_backup, undecryptable_secrets, write_keys


class Command(BaseCommand):
    help = "Write the whole database to one file, which SQLite and PostgreSQL restore."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A new file, such as assay.backup.zip.")
        parser.add_argument(
            "--keys", type=Path, help="A new file for the site's keys, in another folder."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"]
        if options["keys"]:
            write_keys(options["keys"], backup=file)
        manifest = make_backup(file, report=self.stderr.write if options["verbosity"] > 1 else str)
        self.stdout.write(f"{manifest.n_rows:,} rows of {len(manifest.tables)} tables in {file}.")
        if options["keys"]:
            self.stdout.write(f"The keys that open it in {options['keys']}: keep the two apart.")
        if faults := list(undecryptable_secrets()):
            raise BackupRefused(
                " ".join(faults) + f" {file} has them, and asks for these keys when it is restored:"
                " set the site's own and make another.",
                code="wrong_keys",
            )
