import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.assignment_facts import assignment_ids
from annotation.label_sets import CATEGORICAL, Rule, make_label_set
from annotation.models import LabelSet, Study
from annotation.readers.drafts import FileReadings
from presentation.files import write_whole
from presentation.numbers import count_of
from presentation.row_files import row_csv
from retrieval.exports.assessors import assessor_lines, provenance_rows, reason_rows
from retrieval.exports.grades import RULES
from retrieval.exports.qrels import Source, judgment_source, label_source, qrels_of
from retrieval.study_files import write_released_layout

LABEL_RULES = tuple(name for name in CATEGORICAL if name != "majority")


class Command(BaseCommand):
    help = (
        "Write people's judgments of alternatives, or of graded relevance, as TREC qrels; with "
        "them, each assessor's own, what each line was made of, reasons, and the layout of "
        "Fashion-AlterEval's authors."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--rule",
            choices=(*RULES, *LABEL_RULES),
            default="majority",
            help="majority, any or all of the assessors, how many ticked it (votes), or a model of "
            "the assessors, of which a label set is made (default: majority)",
        )
        source.add_argument(
            "--labels", type=int, metavar="VERSION", help="of a label set, which knows its round"
        )
        parser.add_argument("--round", type=int, default=1, help="of the judgments")
        parser.add_argument("--question", default="", metavar="NAME", help="default: the first")
        parser.add_argument(
            "--cannot-judge",
            action="append",
            default=[],
            metavar="ANSWER",
            help="an answer that says that nothing can be said, where its label does not",
        )
        parser.add_argument(
            "--zero", type=float, metavar="VALUE", help="which value is grade 0 (default: the "
            "lowest labelled point, or 0)",
        )  # fmt: skip
        parser.add_argument(
            "--unjudged", action="store_true", help="with -1 for what was pooled and not judged"
        )
        parser.add_argument(
            "--assessors", type=Path, metavar="FILE", help="each assessor's grades (qrels_jg)"
        )
        parser.add_argument(
            "--provenance", type=Path, metavar="FILE", help="what each line was made of (CSV)"
        )
        parser.add_argument("--reasons", type=Path, metavar="FILE", help="written reasons (CSV)")
        parser.add_argument(
            "--released-layout", type=Path, metavar="FOLDER", help="as Fashion-AlterEval's files"
        )
        parser.add_argument(
            "--catalogue",
            type=Path,
            metavar="FILE",
            help="the catalogue, or a name a line (.txt): an item's number there",
        )
        parser.add_argument(
            "--pool",
            type=Path,
            metavar="FILE",
            help="the pool that the study was made of, which says what document a topic is about "
            "(default: the stored pool, where it was made of one)",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, output: Path, **options: Any) -> None:
        source = _source(Study.objects.named(study), **options)
        qrels = qrels_of(source)
        qrels.write(output)
        readings = FileReadings()
        files = [output, *_other_files(source, readings, **options)]
        if options["json"]:
            record = {"files": [str(path) for path in files], "study": study, **qrels.record()}
            record["reading"] = readings.plain()
            self.stdout.write(json.dumps(record, indent=1))
            return
        unjudged = f", {qrels.n_unjudged:,} not judged" if qrels.n_unjudged else ""
        self.stdout.write(
            f"{output}: {count_of(qrels.n_topics, 'topic')}, {count_of(qrels.n_lines, 'line')}, "
            f"{qrels.n_relevant:,} relevant{unjudged} ({qrels.rule}, round {qrels.round})."
        )
        for path in files[1:]:
            self.stdout.write(f"{path}: written.")
        for line in readings.lines():
            self.stdout.write(line)


def _source(
    study: Study, *, labels: int | None, rule: str, round: int, question: str, **options: Any
) -> Source:
    reading = {
        "cannot_judge": options["cannot_judge"],
        "zero": options["zero"],
        "with_unjudged": options["unjudged"],
    }
    if labels is not None:
        return label_source(LabelSet.objects.of(study).numbered(labels), **reading)
    if rule in LABEL_RULES:
        made = make_label_set(question=study.question(question), rule=Rule(rule, round))
        return label_source(made.label_set, **reading)
    return judgment_source(study, rule=rule, round=round, question=question, **reading)


def _other_files(
    source: Source,
    readings: FileReadings,
    *,
    assessors: Path | None,
    provenance: Path | None,
    reasons: Path | None,
    released_layout: Path | None,
    catalogue: Path | None,
    pool: Path | None,
    **options: Any,
) -> Sequence[Path]:
    def written() -> Iterator[Path]:
        if assessors:
            write_whole(assessors, assessor_lines(source))
            yield assessors
        if provenance:
            write_whole(provenance, row_csv(provenance_rows(source, find_ids=assignment_ids)))
            yield provenance
        if reasons:
            write_whole(reasons, row_csv(reason_rows(source)))
            yield reasons
        if released_layout:
            yield from write_released_layout(
                source,
                released_layout,
                catalogue=catalogue,
                pool=pool,
                find_ids=assignment_ids,
                readings=readings,
            )

    return list(written())
