import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.assignment_facts import assignment_price
from annotation.models import Study
from metrics.exceptions import NothingToValidate, ReportUnwritten
from presentation.writers import FORMATS, make_folder, write_files
from validation.documents.rated_systems import verdicts
from validation.study_report import LAYOUTS, PROMPTS, ReportRequest, study_report_document


class Command(BaseCommand):
    help = (
        "Write what was found of a study's metrics: a report with pictures and methods, or a "
        "ready-made table, as HTML, Markdown, LaTeX, CSV or JSON. Prints what buying more costs, "
        "at what the study's last batch pays; the files have no prices."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument(
            "--format",
            action="append",
            choices=list(FORMATS),
            help="may be repeated (default: html)",
        )
        parser.add_argument("--output", type=Path, metavar="FOLDER", required=True)
        parser.add_argument("--layout", choices=list(LAYOUTS), default="full")
        parser.add_argument(
            "--version-of-report",
            type=int,
            metavar="N",
            help="a report that validate_study kept (default: of the study as it is)",
        )
        parser.add_argument(
            "--prompts",
            nargs=2,
            default=PROMPTS,
            metavar=("FIRST", "SECOND"),
            help="conditions that the layout e2e compares",
        )
        parser.add_argument(
            "--variants", action="store_true", help="with variants, which no test or rank is of"
        )
        parser.add_argument("--json", action="store_true", help="print the files' names as JSON")

    def handle(self, *args: Any, study: str, output: Path, layout: str, **options: Any) -> None:
        from validation.datasheet import whole_report  # imports much; --help needs none of it

        number = options["version_of_report"]
        # What is known of an older report's study is of now, and not of then.
        about = whole_report(Study.objects.named(study)).datasheet if number is None else ()
        request = ReportRequest(
            study=Study.objects.named(study),
            number=number,
            prompts=tuple(options["prompts"]),
            with_variants=options["variants"],
            datasheet=about,
        )
        formats = dict.fromkeys(options["format"] or ["html"])
        with _writing(output):
            make_folder(output)
        document = study_report_document(request, layout)
        with _writing(output):
            paths = [p for name in formats for p in write_files(FORMATS[name](document), output)]
        prices = dict(_prices(request))
        if options["json"]:
            files = [str(path) for path in paths]
            self.stdout.write(json.dumps({"study": study, "files": files, "prices": prices}))
        else:
            n = len(paths)
            self.stdout.write(f"{n} file{'s' if n > 1 else ''} in {output}: {paths[0].name} first.")
            for question, price in prices.items():
                self.stdout.write(f"{question}: {price}")


def _prices(request: ReportRequest) -> Iterator[tuple[str, str]]:
    """The cost of separating the best systems, by question, at the last batch's pay. Printed, not
    written: everyone in the study may read a report's files."""
    price = assignment_price(request.study)
    if price is not None:
        with suppress(NothingToValidate):
            for verdict in verdicts(request.results, price):
                if verdict.price:
                    yield verdict.question, verdict.price


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportUnwritten(f"{error.filename or output}: {error.strerror}.") from error
