import re
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from annotation.readers.drafts import FileReadings
from metrics.management.options import number, share
from retrieval.management.options import with_readings
from retrieval.sizes import (
    EqualCost,
    Size,
    items_for_metrics,
    plans_at_equal_cost,
    read_pilot,
    targets_for_kappa,
    topics_for_correlation,
    topics_for_difference,
    topics_for_interval,
    topics_for_several,
)
from stats.inference.correlation_sizes import Method

# The first option given is the question; `width` is also an option of kappa.
QUANTITIES = ("pilot", "correlation", "kappa", "difference", "width")
OPTIONS_OF = {
    "correlation": ("method", "one_sided", "other_correlation", "between", "power", "alpha"),
    "kappa": ("width", "prevalence", "per_target", "icc_of_target", "alpha"),
    "difference": ("sd", "systems", "power", "alpha"),
    "width": ("sd", "alpha"),
    "pilot": ("budget", "topic_cost", "seed", "alpha"),
}
ARGUMENTS = {"rho": "correlation", "n_systems": "systems"}
# Options by the names of the arguments that they set, if the two differ.
ARGUMENTS |= {"per_cluster": "per_target", "icc": "icc_of_target"}
DEFAULTS = {"power": 0.8, "alpha": 0.05, "method": "cohen", "per_target": 1.0}
DEFAULTS |= {"icc_of_target": 0.0, "topic_cost": 0.0, "seed": 0}


class Command(BaseCommand):
    help = (
        "How many topics or items a test collection needs, always rounded up: --correlation R, "
        "with --other-correlation S and --between T of two metrics; "
        "--kappa K --width W --prevalence P; --difference D --sd S, of two systems or --systems "
        "many; --width W --sd S, of a mean's interval; --pilot FILE --budget N, of topics against "
        "assessors at equal cost."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        for name in ("correlation", "kappa", "difference", "width"):
            parser.add_argument(f"--{name}", type=number)
        parser.add_argument(
            "--sd",
            type=number,
            help="of --difference: standard deviation of the topics' differences between two "
            "systems, with --systems above 2 of topics' values within a system; of --width: of "
            "topics' values, or differences",
        )
        parser.add_argument("--prevalence", type=share, help="of --kappa: share of relevant ones")
        parser.add_argument("--systems", type=positive, help="of --difference: how many systems")
        parser.add_argument(
            "--method", choices=get_args(Method), help="of --correlation (default: cohen)"
        )
        parser.add_argument("--one-sided", action="store_true", help="of --correlation")
        parser.add_argument(
            "--other-correlation", type=number, help="of --correlation: another metric's"
        )
        parser.add_argument("--between", type=number, help="of the two metrics with each other")
        parser.add_argument(
            "--pilot",
            type=Path,
            metavar="FILE",
            help="CSV or TSV with columns system, topic, value and, of several, assessor",
        )
        parser.add_argument(
            "--budget", type=number, help="of --pilot: judgments of a topic by one assessor"
        )
        parser.add_argument(
            "--topic-cost", type=number, help="of --pilot: of a topic besides (default: 0)"
        )
        parser.add_argument("--seed", type=natural, help="of --pilot (default: 0)")
        parser.add_argument(
            "--power", type=share, help="of --correlation and --difference (default: 0.8)"
        )
        parser.add_argument("--alpha", type=share, help="1 - confidence (default: 0.05)")
        parser.add_argument(
            "--per-target", type=number, help="of --kappa: candidates of a target (default: 1)"
        )
        parser.add_argument(
            "--icc-of-target",
            type=number,
            help="of --kappa with --per-target: correlation of a target's candidates (default: 0)",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        _require_applicable(options)
        chosen = {name: options[name] for name in DEFAULTS if options[name] is not None}
        options |= DEFAULTS | chosen
        readings = FileReadings()
        try:
            size = _size(options, readings)
        except (ValueError, OverflowError) as error:
            raise CommandError(f"{_with_option(str(error), options)}.") from None
        self.stdout.write(
            with_readings(size, "\n".join(size.lines()), readings, is_json=options["json"])
        )


def _require_applicable(options: dict[str, Any]) -> None:
    asked = [name for name in QUANTITIES if options[name] is not None]
    if not asked or (len(asked) > 1 and asked[1] not in OPTIONS_OF[asked[0]]):
        if len(asked) > 1:
            raise CommandError(f"Ask for --{asked[0]} or --{asked[1]}, not both.")
        return
    named = {name for names in OPTIONS_OF.values() for name in names} - set(OPTIONS_OF[asked[0]])
    for name in sorted(named - {asked[0]}):
        if options[name] not in (None, False):
            owners = [f"--{one}" for one, names in OPTIONS_OF.items() if name in names]
            raise CommandError(
                f"--{name.replace('_', '-')} is an option of {' and '.join(owners)}, and takes no "
                f"part in --{asked[0]}."
            )
    if options["other_correlation"] is None and options["between"] is not None:
        raise CommandError("--between needs --other-correlation too.")
    if options["other_correlation"] is not None and options["method"] is not None:
        raise CommandError("--method is of one correlation: --other-correlation takes Steiger's.")
    if options["icc_of_target"] is not None and options["per_target"] is None:
        raise CommandError("--icc-of-target needs --per-target too: how many a target has.")


def _with_option(problem: str, options: dict[str, Any]) -> str:
    names = {name: name for name in options if "_" in name} | ARGUMENTS
    problem = re.sub(rf"\b({'|'.join(names)})\b", lambda word: _option(names[word[0]]), problem)
    word, _, rest = problem.partition(" ")
    return f"{_option(word)} {rest}" if word in options else problem


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _size(options: dict[str, Any], readings: FileReadings) -> Size | EqualCost:
    rules = {"power": options["power"], "alpha": options["alpha"]}
    confidence = 1 - options["alpha"]
    asked = [name for name in ("correlation", "kappa", "difference") if options[name] is not None]
    if options["pilot"] is not None:
        return _plans(options, readings)
    if asked == ["correlation"] and options["other_correlation"] is not None:
        _require(options, "other-correlation", "between")
        three = options["correlation"], options["other_correlation"], options["between"]
        return items_for_metrics(*three, **rules, one_sided=options["one_sided"])
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
        raise CommandError(
            "Say what for: --correlation, --kappa, --difference, --width or --pilot."
        )
    _require(options, "width", "sd")
    return topics_for_interval(options["width"], options["sd"], confidence=confidence)


def _plans(options: dict[str, Any], readings: FileReadings) -> EqualCost:
    _require(options, "pilot", "budget")
    return plans_at_equal_cost(
        read_pilot(options["pilot"], report=readings.add(options["pilot"])),
        options["budget"],
        topic_cost=options["topic_cost"],
        confidence=1 - options["alpha"],
        seed=options["seed"],
    )


def _require(options: dict[str, Any], quantity: str, *named: str) -> None:
    missing = [name for name in named if options[name] is None]
    if missing:
        raise CommandError(f"--{quantity} needs --{' and --'.join(missing)} too.")
