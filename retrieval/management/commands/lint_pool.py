import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.numbers import positive
from metrics.management.numbers import share
from retrieval.management.sources import named_number
from retrieval.pools.catalogue import read_catalogue
from retrieval.pools.lint import FAULTS, FaultName, lint_pool
from retrieval.pools.pool_tables import PoolTable, read_pool_table, read_wide_table
from retrieval.pools.pool_text import lint_text
from stats.ranking.hubness import HUB_SHARE


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
        lint = lint_pool(
            _table(pool, options["target"], options["candidates"], options["topic"]),
            catalogue=read_catalogue(options["catalogue"]) if options["catalogue"] else None,
            quotas=dict(options["quota"]) or None,
            per_topic=options["per_topic"],
            hub_share=options["hub_share"],
            allowed=options["allow"],
        )
        text = json.dumps(lint.record(), indent=1) if options["json"] else lint_text(lint)
        self.stdout.write(text)
        lint.require_sound()


def _table(path: Path, target: str | None, candidates: Sequence[str], topic: str) -> PoolTable:
    if not (target or candidates or topic):
        return read_pool_table(path)
    if not (target and candidates):
        raise CommandError("A table with a row a target needs --target and --candidates.")
    return read_wide_table(path, target=target, candidates=candidates, topic=topic)
