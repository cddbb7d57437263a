import json as json_format
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.agreement import AgreementReport, study_agreement
from annotation.management.plain_table import natural
from annotation.models import Study
from annotation.protocols.versions import numbered_version


class Command(BaseCommand):
    help = "How well a study's annotators agree, under one version of its protocol or all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--round", type=natural, default=1)
        parser.add_argument(
            "--protocol", type=natural, metavar="VERSION",
            help="only judgments made under this version of the protocol (default: all)",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print every coefficient as JSON")

    def handle(
        self,
        *args: Any,
        study: str,
        round: int,
        protocol: int | None,
        json: bool,
        **options: Any,
    ) -> None:
        target = Study.objects.named(study)
        version = None if protocol is None else numbered_version(target, protocol)
        report = study_agreement(target, round=round, protocol=version)
        if json:
            head = {"study": study, "round": round, "protocol": protocol}
            self.stdout.write(
                json_format.dumps(head | {"coefficients": report.coefficient_records()}, indent=1)
            )
            return
        self.stdout.write("\n".join(_lines(report)))


def _lines(report: AgreementReport) -> list[str]:
    lines = []
    for row in report.questions:
        alpha = row.alpha
        name = f"{row.question}, {row.condition}" if row.condition else row.question
        value = f"undefined ({alpha.reason})" if alpha.reason else f"{alpha.value:.3f}"
        lines.append(f"{name}: Krippendorff's alpha {value}, {alpha.n_labels} judgments")
    return lines
