from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from annotation.readers.drafts import FileReadings
from presentation.documents import Number
from presentation.text_tables import text_table
from retrieval.exports.assessors import TermCounts, count_terms, read_terms
from retrieval.exports.qrels import judgment_source
from retrieval.management.options import with_readings

COLUMNS = ("term", "reasons", "for relevant", "share", "for others", "share")


class Command(BaseCommand):
    help = (
        "Count how many written reasons mention colour, pattern, shape, material, ...: of reasons "
        "for relevant documents, and of the others."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--round", type=int, default=1, help="of the judgments")
        parser.add_argument("--question", default="", metavar="NAME", help="default: the first")
        parser.add_argument(
            "--terms",
            type=Path,
            metavar="FILE",
            help="a list of one's own: CSV with the columns term and word, * for any letters",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, terms: Path | None, **options: Any) -> None:
        readings = FileReadings()
        words = read_terms(terms, report=readings.add(terms)) if terms else read_terms()
        source = judgment_source(
            Study.objects.named(study), round=options["round"], question=options["question"]
        )
        counts = count_terms(source, words)
        self.stdout.write(
            with_readings(counts, _as_text(counts), readings, is_json=options["json"])
        )


def _as_text(counts: TermCounts) -> str:
    rows = [
        (
            row["term"],
            row["n"],
            row["n_relevant"],
            _share(row, "relevant"),
            row["n_other"],
            _share(row, "other"),
        )
        for row in counts.record()["terms"]
        if row["n"]
    ]
    total = (
        f"{counts.n_reasons:,} reasons: {counts.n_relevant:,} for something relevant, "
        f"{counts.n_other:,} others."
    )
    return f"{text_table(COLUMNS, rows)}\n\n{total}" if rows else total


def _share(row: Mapping[str, Any], of: str) -> Number:
    return Number(row[f"share_{of}"], 2, row[f"low_{of}"], row[f"high_{of}"])
