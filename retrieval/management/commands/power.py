import json
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.numbers import positive
from metrics.management.numbers import number, share
from retrieval.sizes import (
    Size,
    targets_for_kappa,
    topics_for_correlation,
    topics_for_difference,
    topics_for_interval,
    topics_for_several,
)
from stats.inference.correlation_sizes import Method


class Command(BaseCommand):
    help = (
        "How many topics or items a test collection needs, always rounded up: --correlation R; "
        "--kappa K --width W --prevalence P; --difference D --sd S, of two systems or --systems "
        "many; --width W --sd S, of a mean's interval."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("correlation", "kappa", "difference", "sd", "width"):
            parser.add_argument(f"--{name}", type=number)
        parser.add_argument("--prevalence", type=share, help="of --kappa: share of relevant ones")
        parser.add_argument("--systems", type=positive, help="of --difference: how many systems")
        parser.add_argument(
            "--method", choices=get_args(Method), default="cohen", help="of --correlation"
        )
        parser.add_argument("--one-sided", action="store_true", help="of --correlation")
        parser.add_argument("--power", type=share, default=0.8)
        parser.add_argument("--alpha", type=share, default=0.05)
        parser.add_argument("--per-target", type=number, default=1.0, help="of --kappa")
        parser.add_argument("--icc-of-target", type=number, default=0.0, help="of --kappa")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            size = _size(options)
        except (ValueError, OverflowError) as error:
            raise CommandError(f"{error}.") from None
        text = json.dumps(size.record(), indent=1) if options["json"] else "\n".join(size.lines())
        self.stdout.write(text)


def _size(options: dict[str, Any]) -> Size:
    rules = {"power": options["power"], "alpha": options["alpha"]}
    confidence = 1 - options["alpha"]
    asked = [name for name in ("correlation", "kappa", "difference") if options[name] is not None]
    if len(asked) > 1:
        raise CommandError(f"Ask for --{asked[0]} or --{asked[1]}, not both.")
    if asked == ["correlation"]:
        sided = {"method": options["method"], "one_sided": options["one_sided"]}
        return topics_for_correlation(options["correlation"], **rules, **sided)
    if asked == ["kappa"]:
        _require(options, "kappa", "width", "prevalence")
        return targets_for_kappa(
            options["kappa"],
            width=options["width"],
            prevalence=options["prevalence"],
            confidence=confidence,
            per_target=options["per_target"],
            icc=options["icc_of_target"],
        )
    if asked == ["difference"]:
        _require(options, "difference", "sd")
        pair = options["difference"], options["sd"]
        if options["systems"] is not None and options["systems"] != 2:
            return topics_for_several(*pair, options["systems"], **rules)
        return topics_for_difference(*pair, **rules)
    if options["width"] is None:
        raise CommandError("Say what for: --correlation, --kappa, --difference or --width.")
    _require(options, "width", "sd")
    return topics_for_interval(options["width"], options["sd"], confidence=confidence)


def _require(options: dict[str, Any], quantity: str, *named: str) -> None:
    missing = [name for name in named if options[name] is None]
    if missing:
        raise CommandError(f"--{quantity} needs --{' and --'.join(missing)} too.")
