import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.exports import label_set_record
from annotation.label_sets import METHODS, LabelSetResult, Rule, make_label_set
from annotation.models import Study
from presentation.numbers import count_of


class Command(BaseCommand):
    help = "Make one label of each candidate's judgments, and keep the set under a version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--question", default="", metavar="NAME", help="default: the first")
        parser.add_argument("--method", choices=METHODS, required=True)
        parser.add_argument("--round", type=int, default=1)
        parser.add_argument(
            "--without-flagged", action="store_true", help="leave flagged submissions out"
        )
        parser.add_argument(
            "--without-adjudications", action="store_true", help="let no decision override"
        )
        parser.add_argument("--json", action="store_true", help="for a program to read")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        labelling = make_label_set(
            question=Study.objects.named(study).question(options["question"]),
            rule=Rule(
                method=options["method"],
                round=options["round"],
                with_flagged=not options["without_flagged"],
                with_adjudications=not options["without_adjudications"],
            ),
        )
        self.stdout.write(_record(labelling) if options["json"] else _sentence(labelling))


def _record(labelling: LabelSetResult) -> str:
    label_set = labelling.label_set
    counts = {"n_labels": label_set.n_labels, "n_adjudicated": label_set.n_adjudicated}
    return json.dumps(label_set_record(label_set) | counts | {"is_new": labelling.is_new}, indent=1)


def _sentence(labelling: LabelSetResult) -> str:
    label_set = labelling.label_set
    state = "made" if labelling.is_new else "was there already: nothing has changed since"
    return (
        f"Labels {label_set.version} of '{label_set.study.slug}', "
        f"question '{label_set.question.name}', by {label_set.method}, {state}: "
        f"{count_of(label_set.n_labels, 'label')}, {label_set.n_adjudicated} adjudicated."
    )
