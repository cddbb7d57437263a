from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import LabelSet, Study
from annotation.qrels import RULES, Qrels, label_qrels, study_qrels
from presentation.counts import count_of


class Command(BaseCommand):
    help = "Write the judgments of an alternatives study as TREC qrels."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--rule", choices=RULES, default="majority")
        source.add_argument(
            "--labels", type=int, metavar="VERSION", help="of a label set, which knows its round"
        )
        parser.add_argument("--round", type=int, default=1, help="of the judgments")

    def handle(self, *args: Any, study: str, output: Path, **options: Any) -> None:
        qrels = _qrels(Study.objects.named(study), **options)
        qrels.write(output)
        self.stdout.write(
            f"{output}: {count_of(qrels.n_topics, 'topic')}, {count_of(qrels.n_lines, 'line')}, "
            f"{qrels.n_relevant} relevant ({qrels.rule}, round {qrels.round})."
        )


def _qrels(study: Study, *, labels: int | None, rule: str, round: int, **options: Any) -> Qrels:
    if labels is None:
        return study_qrels(study, rule=rule, round=round)
    return label_qrels(LabelSet.objects.of(study).numbered(labels))
