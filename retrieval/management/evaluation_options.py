"""The options of commands that evaluate runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser

from annotation.management.numbers import natural
from metrics.management.numbers import once, share
from presentation.files import reason_of
from retrieval.evaluation_records import Missing, Settings
from stats.ranking import Measure, Ties, measure
from stats.ranking.topic_means import Test


def add_evaluation_options(parser: CommandParser) -> None:
    parser.add_argument("--run", type=Path, required=True, action="append", metavar="FILE")
    parser.add_argument(
        "--measure",
        action="append",
        metavar="NAME",
        help="nDCG@10, nDCG(dcg='exp-log2')@10, RR, Success@1, P@5, P(rel=2)@5, R@100, AP, "
        "Rprec, Bpref, infAP, RBP(p=0.8), RBPresidual, Judged@10, Pooled@10; with "
        "judged_only=True over judged documents alone; trec_eval's names too (default: "
        "nDCG@10, RR@10, Judged@10)",
    )
    parser.add_argument(
        "--primary",
        action="append",
        default=[],
        metavar="NAME",
        help="measures whose tests are corrected together (default: all)",
    )
    parser.add_argument(
        "--missing",
        choices=get_args(Missing),
        default="common",
        help="topics that one of two runs lacks: left out for both, or 0 (default: common)",
    )
    parser.add_argument(
        "--leave-out-without-relevant",
        action="store_true",
        help="leave topics out that have no document of a grade above 0, for all runs and measures",
    )
    parser.add_argument(
        "--ties",
        choices=get_args(Ties),
        default="falling",
        help="order of documents with the same score, by name (default: falling, trec_eval's)",
    )
    parser.add_argument(
        "--double",
        action="store_true",
        help="compare scores as 64-bit floats, as trec_eval 10 does; pytrec_eval does not",
    )
    parser.add_argument(
        "--test", choices=get_args(Test), help="default: randomisation; mcnemar of Success"
    )
    parser.add_argument("--confidence", type=share, default=0.95)
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--json", action="store_true")


def evaluation_settings(
    options: dict[str, Any], default: Sequence[str] = ("nDCG@10", "RR@10", "Judged@10")
) -> Settings:
    measures = _measures("measure", options["measure"] or default)
    primary = _measures("primary", options["primary"])
    if unknown := [one.name for one in primary if one not in measures]:
        raise CommandError(f"--primary {unknown[0]} is no --measure of this evaluation.")
    if options["test"] == "mcnemar" and not all(one.is_binary for one in measures):
        raise CommandError("--test mcnemar compares values of 0 and 1: of Success alone.")
    return Settings(
        measures=measures,
        primary=primary,
        ties=options["ties"],
        single_precision=not options["double"],
        missing=options["missing"],
        leave_out_without_relevant=options["leave_out_without_relevant"],
        test=options["test"],
        confidence=options["confidence"],
        seed=options["seed"],
    )


def _measures(option: str, names: Sequence[str]) -> tuple[Measure, ...]:
    try:
        return once(measure(name) for name in names)
    except ValueError as error:
        raise CommandError(f"--{option}: {reason_of(error)}.") from None
