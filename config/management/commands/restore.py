from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backup_files.creation import check_backup, restore_backup, site_faults


class Command(BaseCommand):
    help = "Restore a backup into an empty site, and verify its rows, keys, ledger and audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="What `backup` wrote.")
        parser.add_argument(
            "--check", action="store_true", help="Only read the file, and try the keys."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["check"]:
            manifest = check_backup(options["file"])
            self.stdout.write(
                f"{manifest.n_rows:,} rows of {manifest.made_at}, as they were written."
            )
            return
        manifest = restore_backup(
            options["file"], report=self.stderr.write if options["verbosity"] > 1 else str
        )
        if faults := site_faults():
            raise CommandError("\n".join(["It is restored, but:", *faults]), returncode=1)
        self.stdout.write(
            f"{manifest.n_rows:,} rows of {manifest.made_at} restored and read back. Keys open "
            "what is stored, the ledger balances, and the audit log is as it was written."
        )
