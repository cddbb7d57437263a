import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.numbers import natural
from annotation.models import Study
from metrics.encoders import ENCODERS, EncoderBias, EncoderPair, encoder_bias, encoder_pairs
from metrics.management.numbers import some_draws
from metrics.scorer_options import chosen_scorers


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
            told = {
                "random_words": [bias.record() for bias in biases],
                "pairs": [pair.record() for pair in pairs],
            }
            self.stdout.write(json.dumps(told, indent=1))
        else:
            lines = [*(_bias(bias) for bias in biases), *(_pair(pair) for pair in pairs)]
            self.stdout.write("\n".join(lines))


def _bias(found: EncoderBias) -> str:
    return (
        f"{found.metric}: random words score {found.bias:+.3f} (sd {found.bias_sd:.3f}, "
        f"{found.n_references} references), the responses {found.mean:+.3f} ({found.signature})."
    )


def _pair(found: EncoderPair) -> str:
    return (
        f"R squared {found.r_squared:.3f} over {found.n} responses: {found.first} "
        f"and {found.second}."
    )
