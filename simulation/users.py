"""Simulated users: which item they have in mind at a turn, when they stop, when they leave.

SimBase keeps its target. MetaSimTol takes an alternative after some turns, MetaSimProb then only
with some probability, and only where the last recommendation was a loss. The article and the
program released with it differ in four choices, each a parameter here (M. Vlachou, 2025.
Fashion-AlterEval. RecSys 2025, sections 4.1 and 5.2, algorithms 1 and 2, and its notebooks):

============================  ==========  =======================
choice                        ``paper``   ``released``
============================  ==========  =======================
``turn_base``                 1           0, so that a tolerance of t spares t + 1 turns
``switches_on``               loss        gain: a distance is taken for a similarity
``on_equal``                  keep        switch
``alternative``               nearest     first judged, in MetaSimProb; nearest in MetaSimTol
============================  ==========  =======================

In both, the target is among the alternatives (``target_among``; section 4.1: "we choose to
consider the target as part of the alternatives"), and is appended last. An alternative is chosen
anew at each turn, and a loss is measured to the original target.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from simulation.catalogue import NONE, Catalogue, Targets
from stats.arguments import Flags, Floats, Integers, require_one_of
from stats.inference.effect_sizes import effect_of_d

Kind = Literal["base", "tol", "prob"]
Mode = Literal["paper", "released"]
Change = Literal["loss", "gain"]
Equal = Literal["keep", "switch"]
Alternative = Literal["nearest", "first"]
Accepts = Literal["target", "target and alternatives"]
NAMES: dict[Kind, str] = {"base": "SimBase", "tol": "MetaSimTol", "prob": "MetaSimProb"}

CHOICES = (
    "turn_base", "switches_on", "on_equal", "alternative", "target_among", "sticky", "accepts",
)  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """What users know before a critique, one row per dialogue. `critique` counts from 0; `delta` is
    how much nearer the item shown is to the original target than the previous one, NaN at first;
    `in_force` is the item in mind at the last turn; `draw` a uniform number."""

    critique: int
    targets: Targets
    shown: Integers
    in_force: Integers
    delta: Floats
    draw: Floats


@dataclass(frozen=True, kw_only=True)
class MetaUser:
    """A user of any of the three kinds; every disputed choice is a field.

    `accepts` says what ends the dialogue well, once it is shown first. `leave_hazard` is the
    probability of leaving after each turn that did not end it.
    """

    kind: Kind
    tolerance: int = 0
    p_switch: float = 1.0
    turn_base: Literal[0, 1] = 1
    switches_on: Change = "loss"
    on_equal: Equal = "keep"
    alternative: Alternative = "nearest"
    target_among: bool = True
    sticky: bool = False
    accepts: Accepts = "target and alternatives"
    leave_hazard: float = 0.0
    mode: str = "paper"

    def __post_init__(self) -> None:
        require_one_of(
            kind=(self.kind, get_args(Kind)),
            switches_on=(self.switches_on, get_args(Change)),
            on_equal=(self.on_equal, get_args(Equal)),
            alternative=(self.alternative, get_args(Alternative)),
            accepts=(self.accepts, get_args(Accepts)),
        )
        if self.turn_base not in (0, 1):
            raise ValueError(f"turn_base must be 0 or 1, not {self.turn_base}")
        if self.tolerance < 0:
            raise ValueError(f"tolerance must be at least 0, not {self.tolerance}")
        for name in ("p_switch", "leave_hazard"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")

    @property
    def name(self) -> str:
        parts = [NAMES[self.kind]]
        if self.kind != "base":
            parts.append(f"tolerance {self.tolerance}")
        if self.kind == "prob":
            parts.append(f"P {self.p_switch:.3g}")
        if self.leave_hazard:
            parts.append(f"leaves {self.leave_hazard:g}")
        if self.mode == "released":
            parts.append("as released")
        parts += [f"{name} {getattr(self, name)}" for name in self._own_choices()]
        return " ".join([parts[0], *([", ".join(parts[1:])] if parts[1:] else [])])

    def _own_choices(self) -> list[str]:
        usual = of_mode(self.kind, "released" if self.mode == "released" else "paper")
        return [name for name in CHOICES if getattr(self, name) != getattr(usual, name)]

    @property
    def n_spared(self) -> int:
        """Number of critiques that are always of the target."""
        return self.tolerance + 1 - self.turn_base

    @property
    def waits_for_a_change(self) -> bool:
        return self.kind == "prob" and self.on_equal != "switch"

    def in_force(self, situation: Situation, catalogue: Catalogue) -> Integers:
        target = situation.targets.target
        switches = self._switches(situation)
        chosen = self._chosen(situation, catalogue)
        if self.sticky:
            has_switched = situation.in_force != target
            chosen = np.where(has_switched, situation.in_force, chosen)
            switches = switches | has_switched
        return np.where(switches & (chosen != NONE), chosen, target)

    def _switches(self, situation: Situation) -> Flags:
        n = len(situation.shown)
        if self.kind == "base" or situation.critique < self.n_spared:
            return np.zeros(n, dtype=bool)
        if self.kind == "tol":
            return np.ones(n, dtype=bool)
        delta = situation.delta
        changed = delta < 0 if self.switches_on == "loss" else delta > 0
        if self.on_equal == "switch":
            changed = changed | (delta == 0)
        return np.asarray(changed & (situation.draw < self.p_switch))

    def _chosen(self, situation: Situation, catalogue: Catalogue) -> Integers:
        others = situation.targets.alternatives
        if self.target_among:
            others = with_target_last(others, situation.targets.target)
        if self.alternative == "first":
            return others[:, 0]
        distance = catalogue.squared_distance(others, situation.shown[:, None])
        nearest = np.where(others == NONE, np.inf, distance).argmin(axis=1)
        return np.asarray(np.take_along_axis(others, nearest[:, None], axis=1)[:, 0])

    def record(self) -> dict[str, Any]:
        return {"name": self.name} | {
            name: getattr(self, name) for name in self.__dataclass_fields__
        }


def with_target_last(alternatives: Integers, target: Integers) -> Integers:
    wider = np.column_stack([alternatives, np.full(len(target), NONE)])
    wider[np.arange(len(target)), (alternatives != NONE).sum(axis=1)] = target
    return wider


def sim_base(**choices: Any) -> MetaUser:
    """Keeps its target and accepts nothing else."""
    return replace(of_mode("base", "paper"), **choices)


def meta_sim_tol(tolerance: int, *, mode: Mode = "paper", **choices: Any) -> MetaUser:
    """Takes the nearest alternative after `tolerance` turns."""
    return replace(replace(of_mode("tol", mode), tolerance=tolerance), **choices)


def meta_sim_prob(
    tolerance: int, p_switch: float, *, mode: Mode = "paper", **choices: Any
) -> MetaUser:
    """Takes an alternative with a probability, after a loss, after `tolerance` turns."""
    user = replace(of_mode("prob", mode), tolerance=tolerance, p_switch=p_switch)
    return replace(user, **choices)


def of_mode(kind: Kind, mode: Mode) -> MetaUser:
    require_one_of(mode=(mode, get_args(Mode)))
    if kind == "base":
        return MetaUser(kind=kind, accepts="target", target_among=False, mode=mode)
    if mode == "paper":
        return MetaUser(kind=kind)
    return MetaUser(
        kind=kind,
        turn_base=0,
        switches_on="gain",
        on_equal="switch",
        alternative="first" if kind == "prob" else "nearest",
        mode="released",
    )


def p_switch_of_effect(d: float) -> float:
    """Switching probability of an effect size; .62 gives .75."""
    return effect_of_d(d).probability
