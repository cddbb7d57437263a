import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.numbers import natural
from annotation.models import Study
from annotation.simulated_answers import simulation_notice
from metrics.management.numbers import draws, once, some_draws
from presentation.files import require_writable, write_whole
from stats.correlation import Level, Resample, RowCoefficient, Undefined
from validation.analysis import Settings
from validation.analysis.settings import KEY_CLUSTER, Aggregation, Judgments, Ratings, Unparsed
from validation.plain_table import COEFFICIENTS, LEVELS
from validation.summary import lines_of
from validation.versions import StoredResults, StoredVersion, diff_since, make_validation


class Command(BaseCommand):
    help = (
        "Say how well a study's metrics agree with its judgments, at every level, and keep the "
        "report: a new version where judgments, scores or settings changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        base = Settings()
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--round", type=natural, default=base.round)
        parser.add_argument(
            "--protocol",
            type=natural,
            metavar="VERSION",
            help="only judgments made under this version of the protocol (default: all)",
        )
        parser.add_argument("--level", action="append", choices=list(LEVELS), help="default: all")
        parser.add_argument("--coefficient", action="append", choices=[*COEFFICIENTS, "acc_eq"])
        for name, choices in (
            ("undefined", get_args(Undefined)),
            ("unparsed", get_args(Unparsed)),
            ("ratings", get_args(Ratings)),
            ("judgments", get_args(Judgments)),
            ("aggregation", get_args(Aggregation)),
            ("resample", get_args(Resample)),
        ):
            parser.add_argument(f"--{name}", choices=choices, default=getattr(base, name))
        parser.add_argument(
            "--cluster",
            type=_cluster,
            default=base.cluster,
            metavar="context|key:CHARACTER",
            help="items that are not independent and are drawn together: those of one context, "
            "or whose keys are equal up to their last CHARACTER",
        )
        parser.add_argument("--resamples", type=draws, default=base.n_resamples)
        parser.add_argument("--permutations", type=some_draws, default=base.n_permutations)
        parser.add_argument("--seed", type=natural, default=base.seed)
        parser.add_argument(
            "--plan",
            action="append",
            choices=[f"{level}:{c}" for level in LEVELS for c in get_args(RowCoefficient)],
            default=[],
            metavar="LEVEL:COEFFICIENT",
            help="say how many items would tell the metrics apart (takes long)",
        )
        parser.add_argument(
            "--labels",
            type=int,
            action="append",
            metavar="VERSION",
            help="the label set that is the human value of its question, adjudications with it "
            "(default: made of the judgments); may be repeated for other questions",
        )
        parser.add_argument(
            "--primary",
            action="append",
            metavar="METRIC",
            help="of the family of tests; may be repeated (default: as scorers declare)",
        )
        parser.add_argument(
            "--variants",
            action="store_true",
            help="say variants too (precision, recall, complements, other units), which no test, "
            "correction or rank is of",
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="write the whole as JSON")
        parser.add_argument("--json", action="store_true", help="print the whole as JSON")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        if options["output"]:
            require_writable(options["output"])
        stored = make_validation(study=Study.objects.named(study), settings=_settings(options))
        results = StoredResults(stored.version, with_variants=options["variants"])
        if options["output"] or options["json"]:
            content = json.dumps(_content(stored, results), indent=1)
            if options["output"]:
                write_whole(options["output"], f"{content}\n")
            if options["json"]:
                self.stdout.write(content)
                return
        self.stdout.write("\n".join([*filter(None, [_notice(stored)]), *lines_of(results)]))
        state = "new" if stored.is_new else "as it was"
        self.stdout.write(f"Report {stored.version.number} of '{study}' ({state}).")


def _content(stored: StoredVersion, results: StoredResults) -> dict[str, Any]:
    version = stored.version
    head = {"study": results.study, "version": version.number, "is_new": stored.is_new}
    head |= {"made_at": version.created_at.isoformat(), "changes": diff_since(version)}
    return head | {"simulation": _notice(stored)} | results.content()


def _notice(stored: StoredVersion) -> str:
    """That answers are simulated, as pages and reports say; empty where none is."""
    return simulation_notice(stored.version.subject)


def _settings(options: dict[str, Any]) -> Settings:
    named = ("round", "undefined", "unparsed", "ratings", "judgments", "aggregation", "resample")
    levels: Sequence[str] = options["level"] or list(LEVELS)
    chosen = tuple(LEVELS[level] for level in levels)
    return Settings(
        **{name: options[name] for name in (*named, "cluster", "seed")},
        n_resamples=options["resamples"],
        n_permutations=options["permutations"],
        levels=tuple(level for level in Settings.levels if level in chosen),
        coefficients=once(options["coefficient"] or Settings.coefficients),
        labels=once(options["labels"] or ()),
        primary=once(options["primary"] or ()),
        planned=once(_measure(plan) for plan in options["plan"]),
        protocol=options["protocol"],
    )


def _cluster(text: str) -> str:
    if text in ("", "context") or KEY_CLUSTER.match(text):
        return text
    raise ArgumentTypeError(f"'{text}' is neither context nor key: and one character")


def _measure(plan: str) -> tuple[Level, RowCoefficient]:
    level, _, coefficient = plan.partition(":")
    return LEVELS[level], cast(RowCoefficient, coefficient)
