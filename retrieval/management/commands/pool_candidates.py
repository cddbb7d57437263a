from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from annotation.readers.drafts import FileReadings
from presentation.files import require_writable, write_whole
from presentation.progress import bar
from retrieval.management.options import (
    add_source_arguments,
    named_catalogue,
    named_number,
    read_sources,
    with_readings,
)
from retrieval.pools.catalogue import (
    Catalogue,
    alternatives_lines,
    names_alone,
    read_targets,
    targets_of_runs,
)
from retrieval.pools.construction import make_pool, require_candidates
from retrieval.pools.lint import FaultName, lint_pool, lint_text, pool_text
from retrieval.pools.pool_files import table_of, write_pool
from retrieval.pools.records import PoolPlan, Target
from retrieval.pools.sources import RunSource, Source

PLAN = ("depth", "take", "uniform", "cap", "seed", "fusion_constant", "fusion_depth")


class Command(BaseCommand):
    help = (
        "Pool candidates for each target from runs and embeddings: by quotas, to a depth, or the "
        "first by fusion. Every slot says where it comes from and what was passed over for it."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_source_arguments(parser)
        parser.add_argument(
            "--targets",
            type=Path,
            metavar="FILE",
            help="CSV with the column target (and topic), or a name a line in .txt (default: the "
            "topics of the runs)",
        )
        parser.add_argument(
            "--catalogue",
            type=Path,
            metavar="FILE",
            help="CSV or JSON Lines of documents: docno, title, image (or digest)",
        )
        parser.add_argument(
            "--quota", type=named_number, action="append", default=[], metavar="NAME=N"
        )
        parser.add_argument("--depth", type=positive, default=0, help="the first of every source")
        parser.add_argument("--take", type=positive, default=0, help="the first by rank fusion")
        parser.add_argument(
            "--fusion-constant",
            type=positive,
            default=PoolPlan.fusion_constant,
            metavar="K",
            help="of --take: a document at rank r of a list counts 1 / (K + r) (default: 60)",
        )
        parser.add_argument(
            "--fusion-depth",
            type=positive,
            default=PoolPlan.fusion_depth,
            metavar="RANK",
            help="of --take: lists are read to this rank (default: 1000)",
        )
        parser.add_argument(
            "--uniform", type=natural, default=0, help="drawn from the rest of the catalogue"
        )
        parser.add_argument(
            "--cap", type=natural, default=0, help="pools that a document may stand in"
        )
        parser.add_argument("--exclude", type=Path, metavar="FILE", help="a document's name a line")
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="the pool, as .csv or .json"
        )
        parser.add_argument(
            "--alternatives",
            type=Path,
            metavar="FILE",
            help="the pool as JSON Lines for import_alternatives; refused where it is defective",
        )
        parser.add_argument(
            "--allow", action="append", choices=get_args(FaultName), default=[], metavar="FAULT"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        plan = _plan(options)
        files = [options[name] for name in ("output", "alternatives") if options[name]]
        for file in files:
            require_writable(file)
        readings = FileReadings()
        catalogue = named_catalogue(options["catalogue"], readings)
        sources = read_sources(options, catalogue, readings)
        targets = _targets(options["targets"], sources, catalogue, readings)
        barred = options["exclude"]
        listed = read_targets(barred, report=readings.add(barred)) if barred else ()
        excluded = {each.docno for each in listed}
        pool = make_pool(
            targets, sources, plan, catalogue=catalogue, excluded=excluded, progress=bar("pool")
        )
        require_candidates(pool)
        if options["output"]:
            write_pool(options["output"], pool)
        lint = lint_pool(table_of(pool), catalogue=catalogue, allowed=options["allow"])
        text = "\n\n".join(part for part in (pool_text(pool), lint_text(lint)) if part)
        self.stdout.write(
            with_readings(pool, text, readings, is_json=options["json"], lint=lint.record())
        )
        if options["alternatives"]:
            lint.require_sound()
            folder = options["alternatives"].resolve().parent
            write_whole(
                options["alternatives"],
                alternatives_lines(pool, catalogue or names_alone(()), folder),
            )


def _plan(options: dict[str, Any]) -> PoolPlan:
    if sum(map(bool, (options["quota"], options["depth"], options["take"]))) != 1:
        raise CommandError("Give one of --quota, --depth and --take, and only one.")
    try:
        return PoolPlan(
            quotas=tuple(options["quota"]),
            **{name: options[name] for name in PLAN},
        )
    except ValueError as error:
        problem = str(error).replace("quotas", "--quota").replace("fusion_", "--fusion-")
        raise CommandError(f"{problem}.") from None


def _targets(
    file: Path | None,
    sources: list[Source],
    catalogue: Catalogue | None,
    readings: FileReadings,
) -> list[Target]:
    if file is not None:
        return read_targets(file, report=readings.add(file))
    documents = list(catalogue.documents) if catalogue else []
    for source in sources:
        documents += source.documents
    return targets_of_runs(
        [source.run for source in sources if isinstance(source, RunSource)], documents
    )
