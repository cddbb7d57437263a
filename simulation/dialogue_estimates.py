"""What studies of dialogues come to, number by number, as rows are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from simulation.outcome_report import OutcomeResult, Share
from simulation.outcome_study import COEFFICIENTS, Order
from simulation.switching import CHOICES, SwitchingStudy, UserFit

if TYPE_CHECKING:
    import pandas as pd


LONGEST_REASON = 300
# The parts of a report.
CHOICE, SHARE, COEFFICIENT, DEVIATION, FIT = "choice", "share", "coefficient", "deviation", "fit"
PEOPLE, BIAS, ORDER, DECIDED, CEILING = "people", "bias", "order", "decided", "ceiling"
COUNTERFACTUAL, ATTAINABLE = "counterfactual", "attainable"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval, and of whom it is."""

    part: str
    name: str
    user: str = ""
    recommender: str = ""
    value: float = nan
    ci_low: float = nan
    ci_high: float = nan
    p: float = nan
    p_adjusted: float = nan
    is_equivalent: bool | None = None
    reason: str | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """As a row holds them: NULL where a number is undefined."""
        numbers = ("value", "ci_low", "ci_high", "p", "p_adjusted")
        columns = dict(vars(self))
        columns |= {name: columns[name] if isfinite(columns[name]) else None for name in numbers}
        return columns | {"reason": (self.reason or "")[:LONGEST_REASON]}


def switching_estimates(
    decisions: pd.DataFrame, study: SwitchingStudy, fits: Sequence[UserFit]
) -> Iterator[Estimate]:
    """Choices, shares, the model, and how far each user's rule is from people's."""
    for name in CHOICES:
        yield Estimate(part=CHOICE, name=name, value=float((decisions["choice"] == name).sum()))
    reason = study.model.reason
    for name in ("after_loss", "after_gain", "nearest_excess", "leaves"):
        share = getattr(study, name)
        yield _with_limits(share, part=SHARE, name=name, reason=share.reason)
    for row in study.model.coefficients:
        yield _with_limits(row, part=COEFFICIENT, name=row.name, p=row.p, reason=reason)
    for name, value in study.model.deviations.items():
        yield Estimate(part=DEVIATION, name=name, value=value, reason=reason)
    for fit in fits:
        yield Estimate(part=FIT, name="brier", user=fit.user, value=fit.brier)
        yield _with_limits(
            fit.gain,
            part=FIT, name="gain", user=fit.user, p=fit.p, p_adjusted=fit.p_adjusted,
            reason=fit.gain.reason,
        )  # fmt: skip


def _with_limits(one: Any, **named: Any) -> Estimate:
    return Estimate(value=one.value, ci_low=one.ci_low, ci_high=one.ci_high, **named)


def outcome_estimates(result: OutcomeResult) -> Iterator[Estimate]:
    """What people say of each recommender, and how every user compares with that."""
    yield from (_of_people(one) for one in (*result.shares, result.of_random))
    for bias in result.biases:
        whose: dict[str, Any] = {"part": BIAS, "user": bias.user, "recommender": bias.recommender}
        yield Estimate(
            name="bias", value=bias.bias, ci_low=bias.ci_low, ci_high=bias.ci_high,
            p=bias.p_equivalence, is_equivalent=bias.equivalent, reason=bias.reason, **whose,
        )  # fmt: skip
        limits: dict[str, Any] = {"ci_low": bias.apart_low, "ci_high": bias.apart_high}
        yield Estimate(name="apart", value=bias.apart, **limits, **whose)
    for order in result.orders:
        yield from _of_order(order)
    for name in COEFFICIENTS:
        for part, values in (
            (CEILING, result.ceiling.halves),
            (ATTAINABLE, result.ceiling.attainable),
        ):
            value = values.get(name, nan)
            yield Estimate(part=part, name=name, value=value, reason=result.ceiling_reason)
    yield from _of_counterfactual(result)


def _of_people(share: Share) -> Estimate:
    """Of no recommender, the items at random."""
    reason = share.mean.reason
    return _with_limits(
        share.mean, part=PEOPLE, name="would_do", recommender=share.recommender, reason=reason
    )


def _of_order(order: Order) -> Iterator[Estimate]:
    for name in COEFFICIENTS:
        low, high = order.limits[name]
        yield Estimate(
            part=ORDER, name=name, user=order.user, value=order.values[name], ci_low=low,
            ci_high=high, reason=order.reasons.get(name),
        )  # fmt: skip
    low, high = order.gain_limits
    yield Estimate(
        part=ORDER, name="spa_gain", user=order.user, value=order.spa_gain, ci_low=low,
        ci_high=high, p=order.p, p_adjusted=order.p_adjusted,
    )  # fmt: skip
    for name in ("alike", "opposite", "undecided"):
        yield Estimate(part=DECIDED, name=name, user=order.user, value=getattr(order, name))


def _of_counterfactual(result: OutcomeResult) -> Iterator[Estimate]:
    other = result.counterfactual
    if other is None:
        return
    for name in result.chosen_on:
        yield Estimate(part=COUNTERFACTUAL, name="chosen_on", recommender=name)
    for user, share in other.chosen_in.items():
        yield Estimate(part=COUNTERFACTUAL, name="chosen_in", user=user, value=share)
    low, high = other.gain_limits
    whose: dict[str, Any] = {"part": COUNTERFACTUAL, "user": other.chosen}
    yield Estimate(name="error", value=other.error, **whose)
    yield Estimate(name="base_error", value=other.base_error, **whose)
    yield Estimate(name="gain", value=other.gain, ci_low=low, ci_high=high, **whose)
