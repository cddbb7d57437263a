from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from annotation.readers.drafts import FileReadings
from metrics.management.options import share
from presentation.documents import Number
from presentation.files import require_writable, write_whole
from presentation.progress import bar
from presentation.text_tables import text_report, text_table
from retrieval.exceptions import SampleUnfit
from retrieval.management.options import (
    add_source_arguments,
    named_catalogue,
    read_sources,
    with_readings,
)
from retrieval.pools.catalogue import read_target_values, read_targets
from retrieval.pools.records import Target
from retrieval.pools.sampling import (
    Allocation,
    TargetSample,
    difficulty,
    draw_targets,
    targets_of_source,
)
from retrieval.pools.sources import EmbeddingSource, RunSource
from stats.arguments import Floats
from stats.ranking.query_difficulty import Predictor


class Command(BaseCommand):
    help = (
        "Draw targets from strata of their predicted difficulty, or of a column of a file, each "
        "with the probability of being drawn."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--n", type=positive, required=True, help="targets to draw")
        parser.add_argument(
            "--targets",
            type=Path,
            metavar="FILE",
            help="CSV with the column target (and topic), or a name a line in .txt (default: the "
            "topics of the run, or all documents with vectors)",
        )
        parser.add_argument("--column", help="of that file, to stratify by")
        parser.add_argument(
            "--predictor",
            choices=get_args(Predictor),
            help="of difficulty, by the scores of one --run or of one source of embeddings",
        )
        parser.add_argument("--cutoff", type=positive, help="ranks that the predictor looks at")
        parser.add_argument(
            "--share", type=share, default=0.5, help="of n_sigma: of the first score (default: 0.5)"
        )
        add_source_arguments(parser)
        parser.add_argument("--catalogue", type=Path, metavar="FILE", help="of --texts, --pictures")
        parser.add_argument("--strata", type=positive, default=4, help="quantiles (default: 4)")
        parser.add_argument(
            "--allocation",
            choices=get_args(Allocation),
            default="equal",
            help="as many from each stratum, or in proportion (default: equal)",
        )
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--output", type=Path, metavar="FILE", help="the targets, as CSV")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["output"]:
            require_writable(options["output"])
        readings = FileReadings()
        column, targets, values, signature = _values(options, readings)
        try:
            sample = draw_targets(
                targets,
                values,
                options["n"],
                n_strata=options["strata"],
                allocation=options["allocation"],
                seed=options["seed"],
                column=column,
                signature=signature,
            )
        except SampleUnfit as refused:
            raise CommandError(f"--{refused.field}: {refused}") from None
        if options["output"]:
            write_whole(options["output"], sample.csv())
        self.stdout.write(with_readings(sample, _text(sample), readings, is_json=options["json"]))


def _values(
    options: dict[str, Any], readings: FileReadings
) -> tuple[str, list[Target], Floats, str]:
    if (options["column"] is None) == (options["predictor"] is None):
        raise CommandError("Say by what to stratify: --column or --predictor.")
    if options["column"]:
        if options["targets"] is None:
            raise CommandError("--column is of the file of --targets.")
        path, column = options["targets"], options["column"]
        targets, values = read_target_values(path, column, report=readings.add(path))
        return column, targets, values, f"file:{path.name}"
    sources = read_sources(options, named_catalogue(options["catalogue"], readings), readings)
    if len(sources) != 1:
        raise CommandError("--predictor looks at one source: name one --run or one of embeddings.")
    [source] = sources
    assert isinstance(source, RunSource | EmbeddingSource)
    if options["targets"] is not None:
        targets = read_targets(options["targets"], report=readings.add(options["targets"]))
    else:
        targets = targets_of_source(source)
    values, signature = difficulty(
        targets,
        source,
        options["predictor"],
        cutoff=options["cutoff"],
        share=options["share"],
        progress=bar(source.name),
    )
    return f"{options['predictor']} of {source.name}", targets, values, signature


def _text(sample: TargetSample) -> str:
    rows = [
        (
            each.stratum,
            f"{each.low:.4g}",
            f"{each.high:.4g}",
            each.n_targets,
            each.n_drawn,
            Number(each.probability, 4),
        )
        for each in sample.strata
    ]
    header = ("stratum", "from", "to", "targets", "drawn", "probability")
    sentence = f"{len(sample.targets):,} targets by {sample.column}, seed {sample.seed}."
    return text_report([text_table(header, rows), sentence], sample.notes())
