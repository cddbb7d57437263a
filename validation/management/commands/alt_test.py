from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.plain_table import (
    ROLES,
    LabelsCommand,
    add_cluster,
    natural,
    positive,
    reading_of,
)
from metrics.management.options import share
from validation.conclusions.judges import judge_test_of_file


class Command(LabelsCommand):
    has_categories = True
    help = (
        "Whether a judge may stand in for one of the annotators of a file of labels: the "
        "alternative annotator test, beside a constant and a shuffled judge."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_cluster(parser)
        parser.add_argument(
            "--judge", required=True, metavar="NAME", help="the annotator that is the judge"
        )
        parser.add_argument(
            "--judge-file", type=Path, metavar="FILE",
            help="with the judge's labels, if they are not in the first file, such as "
            "llm_annotations.json of the test's authors",
        )  # fmt: skip
        parser.add_argument(
            "--epsilon",
            type=share,
            default=0.1,
            help="by how much people may win more often: .2 for experts, .15 for skilled "
            "annotators, .1 (default) for a crowd; fix it before seeing the data",
        )
        parser.add_argument("--level", choices=("nominal", "interval"), default="nominal")
        parser.add_argument(
            "--min-items", type=positive, default=30, help="of an annotator who counts (30)"
        )
        parser.add_argument("--seed", type=natural, default=0)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        if not any(options[name] for name in (*ROLES, "value")):
            # The columns of JSON files that have the labels of each annotator by item.
            options |= {"item": ["item"], "annotator": ["annotator"], "value": "value"}
        result = judge_test_of_file(
            file,
            self.columns(options),
            judge=options["judge"],
            level=options["level"],
            epsilon=options["epsilon"],
            min_items=max(options["min_items"], 2),
            seed=options["seed"],
            reading=reading,
            judge_path=options["judge_file"],
        )
        self.write_result(result, reading, options)
