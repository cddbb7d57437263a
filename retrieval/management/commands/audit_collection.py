import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from presentation.files import reason_of
from presentation.progress import bar
from retrieval.answers.audit import audit_text
from retrieval.audit.collections import audit_collection
from retrieval.audit.records import CLAIMS, Claims, read_claims


class Command(BaseCommand):
    help = (
        "Audit a test collection that was made anywhere: Mechanical Turk batches of targets with "
        "their pools, alternatives and dialogue starts of simulators, TREC qrels and runs. Says "
        "what would be misread, and which defects there are. Needs no study and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument(
            "--claim",
            action="append",
            default=[],
            metavar="FILE:NAME=VALUE",
            help="a published number of a file of judged pools, to be held against it: "
            f"{', '.join(CLAIMS)}, with its decimals as printed (default: what is known of "
            "Fashion-AlterEval's files)",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, paths: Sequence[Path], **options: Any) -> None:
        audit = audit_collection(paths, claims=_claims(options["claim"]), progress=bar("audit"))
        text = json.dumps(audit.record(), indent=1) if options["json"] else audit_text(audit)
        self.stdout.write(text)
        if audit.refused:
            names = ", ".join(one.path.name for one in audit.refused)
            raise CommandError(f"Lines were refused in {names}.")


def _claims(texts: Sequence[str]) -> dict[str, Claims]:
    try:
        return read_claims(texts)
    except ValueError as error:
        raise CommandError(f"--claim {reason_of(error)}.", returncode=2) from None
