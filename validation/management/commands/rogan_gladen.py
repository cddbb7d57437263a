import json
from dataclasses import asdict
from math import isnan
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from metrics.management.options import share
from presentation.numbers import plain_values
from stats.inference.rogan_gladen import CorrectedShare, Uninformative, corrected_share

COUNTS = {
    "tp": "of the calibration items that people passed, those the judge passed",
    "fn": "of the calibration items that people passed, those the judge failed",
    "tn": "of the calibration items that people failed, those the judge failed",
    "fp": "of the calibration items that people failed, those the judge passed",
    "positives": "of the items to estimate, those the judge passed",
}
REASONS = {
    Uninformative.NO_CALIBRATION: "a class has no calibration item",
    Uninformative.NO_INFORMATION: "the judge is too near to guessing",
    Uninformative.MAYBE_NO_INFORMATION: "the judge may be guessing, for all the calibration shows",
}


class Command(BaseCommand):
    help = "The true share of passes from a judge's share and its errors on calibration items."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        for name, description in COUNTS.items():
            parser.add_argument(f"--{name}", type=natural, required=True, help=description)
        parser.add_argument("--n", type=positive, required=True, help="items to estimate")
        parser.add_argument("--confidence", type=share, default=0.95)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = corrected_share(
                true_positives=options["tp"],
                false_negatives=options["fn"],
                true_negatives=options["tn"],
                false_positives=options["fp"],
                positives=options["positives"],
                n=options["n"],
                confidence=options["confidence"],
            )
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        record = plain_values(asdict(result)) | {"notes": list(result.notes)}
        self.stdout.write(json.dumps(record, indent=1) if options["json"] else _sentence(result))


def _known(share: float) -> str:
    return "unknown" if isnan(share) else f"{share:.3f}"


def _sentence(result: CorrectedShare) -> str:
    if result.reason is not None:
        return (
            f"No corrected share: {REASONS[result.reason]} (sensitivity "
            f"{_known(result.sensitivity)}, specificity {_known(result.specificity)}); the judge's "
            f"own share is {result.raw:.3f}."
        )
    notes = "".join(f"\nNote: {note}." for note in result.notes)
    return (
        f"{result.value:.3f} [{result.ci_low:.3f}, {result.ci_high:.3f}] pass; the judge says "
        f"{result.raw:.3f} (sensitivity {result.sensitivity:.3f}, specificity "
        f"{result.specificity:.3f}).{notes}"
    )
