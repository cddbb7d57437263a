from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import positive
from annotation.readers.drafts import FileReadings, ReadingReport
from metrics.management.options import share
from retrieval.management.options import named_catalogue, named_number, with_readings
from retrieval.pools.lint import FAULTS, FaultName, lint_pool, lint_text
from retrieval.pools.pool_files import PoolTable, read_pool_table, read_wide_table
from stats.ranking.pool_bias import HUB_SHARE


class Command(BaseCommand):
    help = (
        "Check a pool before anybody is paid to judge it, and refuse it where something is wrong: "
        + "; ".join(f"{name}, {what}" for name, what in FAULTS.items())
        + "."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", type=Path, help="as pool_candidates writes it, or any table")
        parser.add_argument(
            "--target",
            metavar="COLUMN",
            help="of a table with a row a target: where the target is, such as Input.target1",
        )
        parser.add_argument(
            "--candidates",
            action="append",
            default=[],
            metavar="COLUMN",
            help="of such a table: a candidate's column, or all that begin so: 'Input.top*'",
        )
        parser.add_argument("--topic", default="", metavar="COLUMN", help="of such a table")
        parser.add_argument("--catalogue", type=Path, metavar="FILE")
        parser.add_argument(
            "--quota", type=named_number, action="append", default=[], metavar="NAME=N"
        )
        parser.add_argument("--per-topic", type=positive, metavar="N", help="candidates planned")
        parser.add_argument(
            "--hub-share", type=share, default=HUB_SHARE, help="of the targets (default: 0.1)"
        )
        parser.add_argument(
            "--allow",
            action="append",
            choices=get_args(FaultName),
            default=[],
            metavar="FAULT",
            help="a fault that is no reason to refuse the pool; may be repeated",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, pool: Path, **options: Any) -> None:
        readings = FileReadings()
        lint = lint_pool(
            _table(pool, options, readings.add(pool)),
            catalogue=named_catalogue(options["catalogue"], readings),
            quotas=dict(options["quota"]) or None,
            per_topic=options["per_topic"],
            hub_share=options["hub_share"],
            allowed=options["allow"],
        )
        self.stdout.write(with_readings(lint, lint_text(lint), readings, is_json=options["json"]))
        lint.require_sound()


def _table(path: Path, options: dict[str, Any], report: ReadingReport) -> PoolTable:
    target, candidates, topic = (options[name] for name in ("target", "candidates", "topic"))
    if not (target or candidates or topic):
        return read_pool_table(path, report=report)
    if not (target and candidates):
        raise CommandError("A table with a row a target needs --target and --candidates.")
    return read_wide_table(path, target=target, candidates=candidates, topic=topic, report=report)
