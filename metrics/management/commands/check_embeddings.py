import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.plain_table import natural
from annotation.models import Study
from metrics.management.options import some_draws
from metrics.score_comparisons import ENCODERS, encoder_bias, encoder_pairs
from metrics.scorer_options import chosen_scorers
from presentation.numbers import plain_values


class Command(BaseCommand):
    help = (
        "Say what a study's embedding scores are worth: what random words score against its "
        "references, and how well the encoders that scored it agree (R squared)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--metric", action="append", choices=ENCODERS, default=[])
        parser.add_argument(
            "--set", action="append", default=[], metavar="METRIC.PARAMETER=VALUE", dest="settings_"
        )
        parser.add_argument("--words", type=some_draws, default=20, help="in each random text")
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        checked = Study.objects.named(study)
        biases = [
            encoder_bias(
                study=checked, scorer=scorer, n_words=options["words"], seed=options["seed"]
            )
            for scorer in chosen_scorers(options["metric"] or ["embedding"], options["settings_"])
        ]
        pairs = encoder_pairs(checked)
        if options["json"]:
            record = {
                "random_words": [plain_values(bias) for bias in biases],
                "pairs": [plain_values(pair) for pair in pairs],
            }
            self.stdout.write(json.dumps(record, indent=1))
        else:
            lines = [
                "{metric}: random words score {bias:+.3f} (sd {bias_sd:.3f}, {n_references} "
                "references), the responses {mean:+.3f} ({signature}).".format(**one)
                for one in biases
            ]
            lines += [
                "R squared {r_squared:.3f} over {n} responses: {first} and {second}.".format(**one)
                for one in pairs
            ]
            self.stdout.write("\n".join(lines))
