import json
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural
from annotation.models import Study
from annotation.study_facts import simulation_notice
from metrics.management.options import draws, once, some_draws
from presentation.files import require_writable, write_whole
from stats.correlation import Level, Resample, RowCoefficient, Undefined
from validation.analysis import Settings
from validation.analysis.records import CeilingRecord, CorrelationRecord, SensitivityRecord
from validation.analysis.settings import KEY_CLUSTER, Aggregation, Judgments, Ratings, Unparsed
from validation.documents.metric_tables import ceiling_warnings
from validation.documents.rated_systems import verdicts
from validation.documents.terms import family
from validation.plain_table import COEFFICIENTS, LEVELS
from validation.result_kinds.validation import StoredVersion, make_validation
from validation.results import Results
from validation.versions import StoredResults, diff_since, studied_by


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
        for name in ("question", "metric"):
            parser.add_argument(
                f"--{name}", action="append", help=f"print only this {name}; may be repeated"
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
        self.stdout.write("\n".join([*filter(None, [_notice(stored)]), *_lines(results, options)]))
        state = "new" if stored.is_new else "as it was"
        self.stdout.write(f"Report {stored.version.number} of '{study}' ({state}).")


def _content(stored: StoredVersion, results: StoredResults) -> dict[str, Any]:
    version = stored.version
    head = {"study": results.study, "version": version.number, "is_new": stored.is_new}
    head |= {"made_at": version.created_at.isoformat(), "changes": diff_since(version)}
    return head | {"simulation": _notice(stored)} | results.content()


def _notice(stored: StoredVersion) -> str:
    return simulation_notice(studied_by(stored.version))


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


def _lines(results: Results, options: dict[str, Any]) -> Iterator[str]:
    chosen = {name: options[name] for name in ("question", "metric") if options[name]}
    if not chosen:
        return lines_of(results)
    filters = {name: tuple(names) for name, names in chosen.items()}
    rows = results.rows(CorrelationRecord, **filters)
    if not rows:
        raise CommandError("No correlation has the question and metric. Check their names.")
    return map(_correlation, rows)


SCOPES = {"all": "all", "mean_of_conditions": "mean"}


def lines_of(results: Results) -> Iterator[str]:
    for verdict in verdicts(results):
        yield " ".join(verdict.sentences)
    yield from (_correlation(row) for row in results.rows(CorrelationRecord))
    yield from (f"Note: {warning}" for warning in ceiling_warnings(results.rows(CeilingRecord)))
    if len(results.all_inputs.score_sets) > 1:
        yield family(results.all_inputs)
    if results.settings.labels:
        named = ", ".join(f"{one.question}: labels {one.version}" for one in results.inputs.labels)
        yield f"Human values: {named}."
    moved = results.rows(SensitivityRecord, moves_rank=True)
    if moved:
        yield "Ranks that another policy would have changed:"
        yield from (_moved(row) for row in moved)


def _correlation(row: CorrelationRecord) -> str:
    estimate = f"undefined ({row.reason})"
    if row.value is not None:
        estimate = f"{row.value:.3f}"
        if row.ci_low is not None:
            estimate += f" [{row.ci_low:.3f}, {row.ci_high:.3f}]"
        if row.new_systems_low is not None:
            limits = f"[{row.new_systems_low:.3f}, {row.new_systems_high:.3f}]"
            estimate += f", for new systems {limits}"
        if row.share_of_ceiling is not None:
            estimate += f", {row.share_of_ceiling:.0%} of the ceiling"
    return f"{_label(row)} {estimate}, {row.n_used} of {row.n_groups} groups"


def _moved(row: SensitivityRecord) -> str:
    before, now = _number(row.base_value), _number(row.value)
    ranks = f"rank {_rank(row.base_rank)} -> {_rank(row.rank)}"
    return f"{_label(row)} {row.setting}={row.choice}: {before} -> {now}, {ranks}"


def _label(row: CorrelationRecord | SensitivityRecord) -> str:
    scope = row.by or SCOPES[row.scope]
    return f"{row.question:20} {scope:12} {row.metric:20} {row.level:7} {row.coefficient:9}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _rank(rank: float | None) -> str:
    return "none" if rank is None else f"{rank:g}"
