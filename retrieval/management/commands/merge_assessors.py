import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from presentation.files import write_whole
from presentation.numbers import count_of
from retrieval.derived_files import (
    RULES,
    merged,
    qrels_lines,
)
from retrieval.management.options import file_readings
from retrieval.trec_files import read_assessors
from retrieval.trec_layouts import is_simulated_name


class Command(BaseCommand):
    help = "Make one grade of each document of several assessors' (qrels_jg), by a rule, as qrels."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("assessors", type=Path, metavar="FILE", help="column 2 names them")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        parser.add_argument(
            "--rule",
            choices=tuple(RULES),
            default="majority",
            help="the highest grade that more than half, any or all of those reached who judged "
            "a document (default: majority)",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, assessors: Path, output: Path, rule: str, **options: Any) -> None:
        grades = read_assessors(assessors)
        readings = file_readings(*grades.values())
        qrels = merged(grades, rule)
        write_whole(output, qrels_lines(qrels, is_simulated=any(map(is_simulated_name, grades))))
        counts = {
            "n_assessors": len(grades),
            "n_topics": len(qrels.topics),
            "n_lines": len(qrels.grade),
            "n_relevant": int((qrels.grade > 0).sum()),
            "n_unjudged": int((qrels.grade < 0).sum()),
        }
        if options["json"]:
            record = {"output": str(output), "rule": rule, **counts, "reading": readings.plain()}
            self.stdout.write(json.dumps(record, indent=1))
            return
        self.stdout.write(
            f"{output}: {count_of(counts['n_topics'], 'topic')}, "
            f"{count_of(counts['n_lines'], 'line')}, {counts['n_relevant']:,} relevant ({rule} of "
            f"{count_of(len(grades), 'assessor')}).\n" + "\n".join(readings.lines())
        )
