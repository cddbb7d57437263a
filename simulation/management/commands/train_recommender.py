import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from annotation.readers.drafts import FileReadings
from metrics.scorers.errors import model_libraries
from presentation.files import require_writable
from simulation.plans import CATALOGUES, named_catalogue, named_critic
from simulation.recommenders.trained.settings import PUBLISHED, TrainingSettings, settings_of


class Command(BaseCommand):
    help = (
        "Train a recommender on dialogues with a critic, on any catalogue. Goes on where it was "
        "interrupted; on a GPU where there is one."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--catalogue", required=True, metavar="NAME", help=CATALOGUES)
        parser.add_argument("--kind", choices=list(PUBLISHED), required=True)
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        parser.add_argument(
            "--start-from", type=Path, metavar="FILE", help="the supervised one, for gru-rl"
        )
        parser.add_argument(
            "--captions", type=Path, metavar="FILE", help="critiques as the nearest human caption"
        )
        parser.add_argument("--width", type=positive)
        parser.add_argument("--epochs", type=positive)
        parser.add_argument("--turns", type=positive)
        parser.add_argument("--batch-size", type=positive)
        parser.add_argument("--join", choices=("sum", "concatenation"))
        parser.add_argument("--unit-length", action="store_true", default=None)
        parser.add_argument("--next-item", choices=("nearest", "random"))
        parser.add_argument("--learning-rate", type=float)
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, output: Path, start_from: Path | None, **options: Any) -> None:
        # Imports torch, which --help does not need.
        with model_libraries():
            from simulation.recommenders.trained.training import train

        require_writable(output)
        try:
            catalogue = named_catalogue(options["catalogue"], seed=options["seed"])
            captions, readings = options["captions"], FileReadings()
            report = readings.add(captions) if captions else None
            checkpoint = train(
                catalogue,
                named_critic(catalogue, captions, report=report),
                _settings(options),
                output,
                start_from=start_from,
                report=self._report,
            )
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        if options["json"]:
            record = {"settings": checkpoint.settings.record(), "history": checkpoint.history}
            record |= {**checkpoint.origin(), "reading": readings.plain()}
            self.stdout.write(json.dumps(record, indent=1))
        else:
            best = checkpoint.origin()["best_validation"]
            self.stdout.write(
                f"{output.name}: {options['kind']}, {checkpoint.epoch} epochs, nDCG@10 over turns "
                f"{best:.3f} on validation items."
            )
            self.stdout.write("\n".join(readings.lines()))

    def _report(self, epoch: dict[str, float]) -> None:
        self.stderr.write(
            f"Epoch {epoch['epoch']:.0f}: loss {epoch['loss']:.4f}, validation "
            f"{epoch['validation']:.4f}, {epoch['seconds']:.1f} s"
        )


def _settings(options: dict[str, Any]) -> TrainingSettings:
    names = ("width", "epochs", "batch_size", "join", "unit_length", "next_item", "learning_rate")
    choices = {name: options[name] for name in names if options[name] is not None}
    if options["turns"] is not None:
        choices["n_turns"] = options["turns"]
    return settings_of(options["kind"], seed=options["seed"], **choices)
