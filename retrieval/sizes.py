from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, isinf
from typing import Any, get_args

from stats.inference.agreement_sizes import items_for_kappa_width
from stats.inference.correlation_sizes import (
    DESCRIPTIONS,
    Method,
    items_for_metric_pair,
    items_for_power,
    metric_pair_power,
    power_for_correlation,
)
from stats.inference.effect_sizes import LARGEST_D, d_of_correlation, effect_of_d
from stats.inference.sample_sizes import (
    difference_power,
    items_for_difference,
    systems_power,
    topics_for_systems,
    topics_for_width,
    whole_items,
)

NAMES = {str(method): text for method, text in DESCRIPTIONS.items()}
NAMES["gpower"] = "G*Power, whose null has the first correlation"


@dataclass(frozen=True)
class Size:
    """How many are needed, rounded up.

    `power` is that of `n` items, None where a width was asked for; `rounded` that of one fewer,
    where rounding to the nearest would have given that; `variants` holds n by each other method.
    """

    n: int
    n_exact: float
    quantity: str
    method: str
    assumptions: dict[str, Any]
    power: float | None = None
    rounded: dict[str, Any] | None = None
    variants: dict[str, int] = field(default_factory=dict)
    effect: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return vars(self)

    def lines(self) -> Iterator[str]:
        stated = ", ".join(_stated(name, value) for name, value in self.assumptions.items())
        of_power = "" if self.power is None else f", which have power {_digits(self.power)}"
        yield f"{self.n} {self.quantity}{of_power} ({self.method}; {stated})."
        if self.rounded:
            n, power = self.rounded["n"], self.rounded["power"]
            yield (
                f"Exactly {self.n_exact:.2f}: rounded to the nearest, {n} have power "
                f"{_digits(power)}, below what was asked for."
            )
        for method, n in self.variants.items():
            yield f"By {NAMES[method]}: {n}."
        if self.effect:
            named = ", ".join(f"{name} {value:.3f}" for name, value in self.effect.items())
            yield f"The same effect as {named}."


def topics_for_correlation(
    rho: float, *, power: float, alpha: float, method: Method = "cohen", one_sided: bool = False
) -> Size:
    exact = items_for_power(rho, method=method, power=power, alpha=alpha, one_sided=one_sided)
    if isinf(exact):
        raise ValueError(f"a correlation of {rho} takes more than a thousand million items")
    n = whole_items(exact)
    sided = {"alpha": alpha, "one_sided": one_sided}
    reached = power_for_correlation(rho, n, method=method, alpha=alpha, one_sided=one_sided)
    nearest, rounded = floor(exact + 0.5), None
    if 3 < nearest < n:
        of_nearest = power_for_correlation(
            rho, nearest, method=method, alpha=alpha, one_sided=one_sided
        )
        rounded = {"n": nearest, "power": of_nearest}
    variants = {
        other: whole_items(
            items_for_power(rho, method=other, power=power, alpha=alpha, one_sided=one_sided)
        )
        for other in get_args(Method)
        if other != method
    }
    d = d_of_correlation(rho)
    # Beyond, the effect's other forms have no number: d of a correlation of .9999 is 141.
    effect = vars(effect_of_d(d)).copy() if abs(d) <= LARGEST_D else {}
    return Size(
        n=n,
        n_exact=exact,
        quantity="items distinguish the correlation from 0",
        method=DESCRIPTIONS[method],
        assumptions={"rho": rho, "power": power, **sided},
        power=reached,
        rounded=rounded,
        variants=variants,
        effect={n: effect[n] for n in ("d", "odds_ratio", "probability") if n in effect},
    )


def items_for_metrics(
    first: float,
    second: float,
    between: float,
    *,
    power: float,
    alpha: float,
    one_sided: bool = False,
) -> Size:
    sided = {"alpha": alpha, "one_sided": one_sided}
    exact = items_for_metric_pair(
        first, second, between, power=power, alpha=alpha, one_sided=one_sided
    )
    of_gpower = items_for_metric_pair(
        first, second, between, power=power, alpha=alpha, one_sided=one_sided, null="first"
    )
    n = whole_items(exact)
    return Size(
        n=n,
        n_exact=exact,
        quantity="independent items distinguish the two metrics",
        method="Steiger's test of two correlations with the same ratings",
        assumptions={"first": first, "second": second, "between": between, "power": power, **sided},
        power=metric_pair_power(first, second, between, n, alpha=alpha, one_sided=one_sided),
        variants={"gpower": whole_items(of_gpower)},
    )


def targets_for_kappa(
    kappa: float,
    *,
    width: float,
    prevalence: float,
    confidence: float,
    per_target: float = 1.0,
    icc: float = 0.0,
) -> Size:
    exact = items_for_kappa_width(kappa, width, prevalence=prevalence, confidence=confidence)
    assumptions = {"kappa": kappa, "width": width, "prevalence": prevalence}
    assumptions |= {"confidence": confidence}
    if per_target > 1:
        assumptions |= {"per_target": per_target, "icc": icc}
    return Size(
        n=whole_items(exact, per_cluster=per_target, icc=icc),
        n_exact=exact,
        quantity="candidates judged twice give kappa's interval that width",
        method="Fleiss, Cohen and Everitt's variance",
        assumptions=assumptions,
    )


def topics_for_difference(difference: float, sd: float, *, power: float, alpha: float) -> Size:
    exact = items_for_difference(difference, sd, power=power, alpha=alpha)
    n = whole_items(exact)
    return Size(
        n=n,
        n_exact=exact,
        quantity="topics distinguish the two systems",
        method="Student's paired t, sd of topics' differences",
        assumptions={"difference": difference, "sd": sd, "power": power, "alpha": alpha},
        power=difference_power(difference, sd, n, alpha=alpha),
    )


def topics_for_several(
    difference: float, sd: float, n_systems: int, *, power: float, alpha: float
) -> Size:
    n = topics_for_systems(difference, sd, n_systems, power=power, alpha=alpha)
    stated = {"difference": difference, "sd": sd, "systems": n_systems}
    return Size(
        n=n,
        n_exact=float(n),
        quantity="topics distinguish the systems",
        method="one-way analysis of variance, after Sakai, sd within a system",
        assumptions=stated | {"power": power, "alpha": alpha},
        power=systems_power(difference, sd, n_systems, n, alpha=alpha),
    )


def topics_for_interval(width: float, sd: float, *, confidence: float) -> Size:
    exact = topics_for_width(width, sd, confidence=confidence)
    return Size(
        n=whole_items(exact),
        n_exact=exact,
        quantity="topics give the interval that width, on average",
        method="Student's t, after Sakai",
        assumptions={"width": width, "sd": sd, "confidence": confidence},
    )


def _digits(power: float) -> str:
    return f"{power:.4f}".removeprefix("0")


def _stated(name: str, value: object) -> str:
    if name == "one_sided":
        return "one-sided" if value else "two-sided"
    return f"{name.replace('_', ' ')} {value}"
