import json
from collections.abc import Callable
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import positive
from metrics.management.options import number, share
from stats.inference import agreement_sizes, correlation_sizes, sample_sizes

Formula = Callable[[dict[str, Any]], float]


def _of_kappa(options: dict[str, Any]) -> float:
    rules = {"power": options["power"], "alpha": options["alpha"]}
    kappas = options["kappa"], options["null"]
    if options["margins"]:
        return agreement_sizes.items_for_kappa_of_margins(
            *kappas, margins=options["margins"], **rules
        )
    return agreement_sizes.items_for_kappa(*kappas, prevalence=options["prevalence"], **rules)


FORMULAS: dict[str, tuple[str, Formula]] = {
    "correlation": (
        "items that distinguish a correlation from 0",
        lambda o: correlation_sizes.items_for_correlation(
            o["rho"], power=o["power"], alpha=o["alpha"]
        ),
    ),
    "correlation-width": (
        "items that give a correlation's interval a width",
        lambda o: correlation_sizes.items_for_correlation_width(
            o["rho"], o["width"], coefficient=o["coefficient"], confidence=1 - o["alpha"]
        ),
    ),
    "kappa": ("items that distinguish a kappa from another", _of_kappa),
    "icc": (
        "items that show an intraclass correlation to exceed another",
        lambda o: agreement_sizes.items_for_icc(
            o["icc"], o["null"], raters=o["raters"], power=o["power"], alpha=o["alpha"]
        ),
    ),
    "icc-width": (
        "items that give an intraclass correlation's interval a width",
        lambda o: agreement_sizes.items_for_icc_width(
            o["icc"], o["width"], raters=o["raters"], confidence=1 - o["alpha"]
        ),
    ),
    "difference": (
        "items that distinguish two systems' mean difference from 0",
        lambda o: sample_sizes.items_for_difference(
            o["difference"], o["sd"], power=o["power"], alpha=o["alpha"]
        ),
    ),
}
OPTIONS: dict[str, tuple[str, ...]] = {
    "correlation": ("rho", "power", "alpha"),
    "correlation-width": ("rho", "width", "coefficient", "alpha"),
    "kappa": ("kappa", "null", "prevalence", "margins", "power", "alpha"),
    "icc": ("icc", "null", "raters", "power", "alpha"),
    "icc-width": ("icc", "width", "raters", "alpha"),
    "difference": ("difference", "sd", "power", "alpha"),
}


class Command(BaseCommand):
    help = "How many items a study needs, by formula; always rounded up, with the assumptions."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("quantity", choices=list(FORMULAS))
        for name in ("rho", "width", "kappa", "null", "prevalence", "icc", "difference", "sd"):
            parser.add_argument(f"--{name}", type=number)
        parser.add_argument("--margins", type=share, nargs="+", help="shares of several classes")
        parser.add_argument("--raters", type=positive)
        parser.add_argument("--coefficient", choices=get_args(correlation_sizes.Coefficient))
        parser.add_argument("--power", type=share, default=0.8)
        parser.add_argument("--alpha", type=share, default=0.05)
        parser.add_argument("--per-cluster", type=number, default=1.0, help="cells of one item")
        parser.add_argument("--icc-of-cluster", type=number, default=0.0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, quantity: str, **options: Any) -> None:
        options["coefficient"] = options["coefficient"] or "pearson"
        used = _used(quantity, options)
        description, formula = FORMULAS[quantity]
        try:
            exact = formula(options)
            n = sample_sizes.whole_items(
                exact, per_cluster=options["per_cluster"], icc=options["icc_of_cluster"]
            )
        except (ValueError, OverflowError) as error:
            raise CommandError(f"{error}.") from None
        record = {"quantity": quantity, "n": n, "n_exact": exact, "assumptions": used}
        if options["json"]:
            self.stdout.write(json.dumps(record, indent=1))
            return
        stated = ", ".join(f"{name} {value}" for name, value in used.items())
        self.stdout.write(f"{n} {description} ({stated}; exactly {exact:.2f}, rounded up).")


def _used(quantity: str, options: dict[str, Any]) -> dict[str, Any]:
    named = list(OPTIONS[quantity])
    if quantity == "kappa":
        named.remove("prevalence" if options["margins"] else "margins")
    if missing := [name for name in named if options[name] is None]:
        raise CommandError(f"{quantity} needs --{', --'.join(missing)}.")
    used = {name: options[name] for name in named}
    if options["per_cluster"] > 1:
        used |= {"per_cluster": options["per_cluster"], "icc_of_cluster": options["icc_of_cluster"]}
    return used
