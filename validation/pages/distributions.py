"""How the judgments of each system are spread over the parts of a scale, as bars of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.templatetags.numbers import percent
from validation.models import HumanResultsBin


@dataclass(frozen=True)
class Bar:
    """A part of the scale in a system's distribution."""

    label: str
    n: int
    share: str
    x: str
    width: str
    y: str
    height: str


@dataclass(frozen=True)
class Distribution:
    system: str
    bars: list[Bar]

    @property
    def words(self) -> str:
        """For those who do not see the bars."""
        return "; ".join(f"{bar.label}: {bar.share}" for bar in self.bars if bar.n)


def distributions_of(bins: Sequence[HumanResultsBin], systems: Sequence[str]) -> list[Distribution]:
    """Of each system that has judgments; those that are named first, in their order."""
    of_system: dict[str, list[HumanResultsBin]] = {}
    for one in bins:
        of_system.setdefault(one.system, []).append(one)
    order = {system: at for at, system in enumerate(systems)}
    names = sorted(of_system, key=lambda name: order.get(name, len(order)))
    return [Distribution(name, _bars(of_system[name])) for name in names]


def _bars(bins: Sequence[HumanResultsBin]) -> list[Bar]:
    total = sum(one.n for one in bins) or 1
    most = max(one.n for one in bins) or 1
    width = 100 / len(bins)
    return [
        Bar(
            label=one.label,
            n=one.n,
            share=percent(one.n / total),
            x=f"{at * width + width * 0.1:.2f}%",
            width=f"{width * 0.8:.2f}%",
            y=f"{100 - 100 * one.n / most:.2f}%",
            height=f"{100 * one.n / most:.2f}%",
        )
        for at, one in enumerate(bins)
    ]
