import json
import re
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from presentation.numbers import plain_values
from replications.gallery import Gallery, Reproduced, gallery

BEGIN, END = "<!-- gallery: python manage.py published_studies -->", "<!-- end of gallery -->"
HEAD = ("", "study", "number", "level", "coefficient", "computed", "published", "raters' mean", "n")
SIGNATURES = "The signature of each, by the number of its row:"


class Command(BaseCommand):
    help = (
        "Compute published studies' numbers again from their authors' data, and print them beside "
        "those published: level, coefficient, the raters' mean and a signature for each."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder",
            type=Path,
            help="with a folder for each data set: lmstyle, topical_chat_usr, dstc9, altereval",
        )
        parser.add_argument(
            "--page",
            type=Path,
            metavar="FILE",
            help="put the table into this page, between the two comments that docs/gallery.md has",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, folder: Path, page: Path | None, **options: Any) -> None:
        computed = gallery(folder)
        if options["json"]:
            rows = [plain_values(asdict(row) | {"is_equal": row.is_equal}) for row in computed.rows]
            self.stdout.write(json.dumps({"rows": rows, "missing": computed.missing}, indent=1))
            return
        if page:
            page.write_text(with_table(page.read_text("utf-8"), computed), "utf-8")
        self.stdout.write(_summary(computed) if page else table(computed))
        for name in computed.missing:
            self.stderr.write(f"There is no {name} in {folder}: left out.")


def with_table(text: str, computed: Gallery) -> str:
    """Replace the table between two comments of the page; CommandError if they are missing."""
    if not (BEGIN in text and END in text):
        raise CommandError(f"The page has no line {BEGIN} or {END}.", returncode=2)
    pattern = re.compile(f"({re.escape(BEGIN)}\n).*?({re.escape(END)})", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}\n{table(computed)}\n{match[2]}", text)


def table(computed: Gallery) -> str:
    cells = (_cells(number, row) for number, row in enumerate(computed.rows, start=1))
    rows = "".join(f"| {' | '.join(line)} |\n" for line in [HEAD, ("---",) * len(HEAD), *cells])
    signatures = (f"{number}. `{row.signature}`\n" for number, row in enumerate(computed.rows, 1))
    return f"{rows}\n{SIGNATURES}\n\n{''.join(signatures)}"


def _cells(number: int, row: Reproduced) -> tuple[str, ...]:
    published = "" if isnan(row.published) else f"{row.published:.{row.decimals}f}"
    mean = "" if isnan(row.ratings_mean) else f"{row.ratings_mean:.2f}, "
    return (
        str(number),
        row.study,
        row.quantity,
        row.level,
        row.coefficient,
        f"{row.value:.{row.decimals}f}",
        published + (" (differs)" if row.is_equal is False else ""),
        f"{mean}{row.raters}",
        str(row.n),
    )


def _summary(computed: Gallery) -> str:
    compared = [row for row in computed.rows if row.is_equal is not None]
    equal = sum(row.is_equal is True for row in compared)
    return (
        f"{len(computed.rows)} numbers; of {len(compared)} that were published, {equal} are equal "
        "as printed."
    )
