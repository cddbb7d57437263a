from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from annotation.readers.drafts import ReadingReport, place_of_line
from error_codes import CodedText
from presentation.numbers import plain_values
from retrieval.evaluated_runs import Settings
from retrieval.exceptions import RunsUnfit, TrecFileFaults
from retrieval.text_lines import each_text_line
from retrieval.trec_files import MOST_FAULTS, RelevanceGrades
from stats.arguments import Flags, Integers
from stats.inference.powered_means import PredictionPowered
from stats.ranking import JudgedLists, Measure
from stats.ranking.measures import judged
from stats.ranking.pool_bias import (
    OutsideEstimate,
    judgments_only_of,
    new_by_depth,
    share_over_topics,
)
from stats.ranking.topic_means import TopicDifference, TopicMean

Row = dict[str, Any]
Unit = Literal["system", "group"]
JUDGED_AT = 10
# If a smaller share of what runs list to the pool's depth is in the qrels, the pool was hardly so
# deep.
LEAST_IN_QRELS = 0.8
# A pool is incomplete if its last rank brought at least this share of the relevant documents.
RISING_FROM = 0.01


class Provenance(NamedTuple):
    """What a pool's own record says of where its documents came from.

    Attributes
    ----------
    depths : mapping
        To which rank each pooled run was taken, by run and topic.
    elsewhere : collection of (topic, document)
        What other sources brought too, such as embeddings or a draw: it stays, whoever is left out.
    """

    depths: Mapping[str, Mapping[str, int]]
    elsewhere: Collection[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A run under a measure, with all judgments and without those of what is left out.

    `change` is the second less the first, with an interval over topics for runs that are left
    out (`is_left_out`). Ranks count from 1; runs with the same mean share the better one.
    """

    run: str
    measure: Measure
    is_left_out: bool
    mean: float
    mean_without: float
    change: float
    ci_low: float
    ci_high: float
    rank: int
    rank_without: int
    judged: float
    judged_without: float


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    name: str
    unit: Unit
    runs: tuple[str, ...]
    n_judged_lost: int
    n_relevant_lost: int
    n_topics_without_relevant: int
    effects: tuple[Effect, ...]

    def own(self, measure: Measure) -> list[Effect]:
        return [row for row in self.effects if row.is_left_out and row.measure == measure]

    def record(self) -> dict[str, Any]:
        effects = [plain_values(vars(row) | {"measure": row.measure.name}) for row in self.effects]
        return vars(self) | {"runs": list(self.runs), "effects": effects}


def expectation_record(one: OutsideEstimate, measure: Measure, unit: Unit) -> Row:
    row = {
        "measure": measure.name,
        "unit": unit,
        "underestimate": one.value,
        "ci_low": one.ci_low,
        "ci_high": one.ci_high,
        "n_left_out": one.n,
        "reason": one.reason,
        "sentence": f"Evaluating an outside system: {_expect(one, measure.name, unit)}.",
    }
    return plain_values(row)


def _expect(one: OutsideEstimate, measure: str, unit: Unit) -> str:
    if one.value != one.value:
        return f"nothing is known of {measure}: {one.reason}"
    change = (
        f"an underestimate of {measure} of {one.value:.4f}"
        if one.value >= 0
        else f"an overestimate of {measure} of {-one.value:.4f}"
    )
    if one.reason is not None:
        return f"expect {change} (no interval: {one.reason})"
    return (
        f"expect {change}; for one further {unit} "
        f"{one.ci_low:+.4f} to {one.ci_high:+.4f}, by {one.n} left out"
    )


@dataclass(frozen=True, kw_only=True)
class Reusability:
    """How far judgments of pooled runs may be used for systems that were not pooled.

    `measures` are those asked for and, beside them, bpref and the condensed forms;
    `share_in_qrels` is the share of the pooled runs' documents to the pool's depth that are there.
    """

    qrels: str
    pool_depth: int
    is_depth_inferred: bool
    has_provenance: bool
    share_in_qrels: float
    groups: Mapping[str, tuple[str, ...]]
    measures: tuple[Measure, ...]
    systems: Sequence[Row]
    depths: Sequence[Row]
    sources: Sequence[Row]
    left_out: tuple[LeftOut, ...]
    expectations: Sequence[Row]
    n_topics: int
    n_judged: int
    n_relevant: int
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    @property
    def last_share(self) -> float:
        last = self.depths[-1]
        return float(last["n_new_relevant"] / last["n_relevant"]) if last["n_relevant"] else 0.0

    @property
    def is_rising(self) -> bool:
        return not self.has_provenance and self.last_share >= RISING_FROM

    def record(self) -> dict[str, Any]:
        return {
            "qrels": self.qrels,
            "pool_depth": self.pool_depth,
            "is_depth_inferred": self.is_depth_inferred,
            "has_provenance": self.has_provenance,
            "share_in_qrels": self.share_in_qrels,
            "groups": {name: list(runs) for name, runs in self.groups.items()},
            "measures": [each.name for each in self.measures],
            "systems": list(self.systems),
            "depths": list(self.depths),
            "last_share": self.last_share,
            "is_rising": self.is_rising,
            "sources": list(self.sources),
            "left_out": [each.record() for each in self.left_out],
            "expectations": list(self.expectations),
            "n_topics": self.n_topics,
            "n_judged": self.n_judged,
            "n_relevant": self.n_relevant,
            "settings": {
                "ties": self.settings.ties,
                "single_precision": self.settings.single_precision,
                "missing": self.settings.missing,
                "leave_out_without_relevant": self.settings.leave_out_without_relevant,
                "confidence": self.settings.confidence,
            },
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }


Sample = Literal["topics", "labels"]


@dataclass(frozen=True, kw_only=True)
class CalibratedMean:
    """A run's mean under the machine's labels, under people's, and people's by both.

    `machine` is of all topics, `people` of the sample alone; `gap` is the machine's less people's
    where both judged. `powered` is None with a `reason` where a measure cannot be calibrated;
    `n_others` counts what people judged whose value is not the commonest.
    """

    run: str
    measure: Measure
    machine: TopicMean
    people: TopicMean
    gap: TopicDifference
    powered: PredictionPowered | None
    n_others: int
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        row: dict[str, Any] = {"run": self.run, "measure": self.measure.name}
        for name, one in (("machine", self.machine), ("people", self.people)):
            row |= {
                f"{name}_mean": one.value,
                f"{name}_ci_low": one.ci_low,
                f"{name}_ci_high": one.ci_high,
                f"{name}_n_topics": one.n_topics,
            }
        row |= {"gap": self.gap.delta, "gap_ci_low": self.gap.ci_low}
        row |= {"gap_ci_high": self.gap.ci_high, "gap_n_topics": self.gap.n_topics}
        if (powered := self.powered) is not None:
            row |= {
                "calibrated": powered.value,
                "calibrated_ci_low": powered.ci_low,
                "calibrated_ci_high": powered.ci_high,
                "lambda": powered.power,
                "n_labelled": powered.n_labelled,
                "n": powered.n,
                "effective_n": powered.effective_n,
                "notes": list(powered.notes),
            }
        return plain_values(row | {"reason": self.reason})


@dataclass(frozen=True, kw_only=True)
class MachineComparison:
    qrels: str
    machine: str
    sharing: tuple[str, ...]
    sample: Sample
    n_topics_people: int
    n_topics_machine: int
    n_topics_both: int
    estimates: tuple[CalibratedMean, ...]
    biases: Sequence[Row]
    notes: tuple[str, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        return vars(self) | {
            "sharing": list(self.sharing),
            "estimates": [row.record() for row in self.estimates],
            "biases": list(self.biases),
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }


NO_RUN = "(no pooled run)"


Members = Flags


@dataclass(frozen=True)
class Families:
    """Runs in the pool and their groups; a run of no group is one by itself."""

    runs: tuple[str, ...]
    is_pooled: Members
    # The groups of the pooled runs; named ones first.
    groups: Mapping[str, tuple[str, ...]]

    @property
    def has_groups(self) -> bool:
        return any(runs != (name,) for name, runs in self.groups.items())

    def group_of(self, run: str) -> str:
        return next((name for name, runs in self.groups.items() if run in runs), run)

    def relatives(self, run: str) -> tuple[str, ...]:
        return self.groups.get(self.group_of(run), (run,))

    def members(self, runs: Sequence[str]) -> Members:
        return np.isin(np.array(self.runs), list(runs))


@dataclass(frozen=True)
class Pooled:
    """Runs with the judgments of their pool: at which rank each run has each judged document, if
    the pool took the run down to there."""

    family: Families
    grades: RelevanceGrades
    lists: Sequence[JudgedLists]
    ranks: Integers
    depth: int
    counted: Flags
    # Documents that came from a source other than a run.
    elsewhere: Flags

    @cached_property
    def is_judged(self) -> Flags:
        return self.grades.grade >= 0

    @cached_property
    def is_relevant(self) -> Flags:
        return self.grades.grade > 0

    @cached_property
    def share_in_qrels(self) -> float:
        """Of the documents that the pooled runs list to the depth."""
        lists = [one for one, is_in in zip(self.lists, self.family.is_pooled, strict=True) if is_in]
        known = np.concatenate([one.judgment[one.rank <= self.depth] >= 0 for one in lists])
        return float(known.mean())

    @cached_property
    def is_brought(self) -> Flags:
        return np.asarray((self.ranks[self.family.is_pooled] <= self.depth).any(axis=0))


def systems_of(pool: Pooled) -> Iterator[Row]:
    """What each run has within the pool's depth, and what of it no other pooled run has.

    `n_relevant_group_only` counts what no run outside its group has; `judged_at_10` is the share of
    judged documents among the first ten.
    """
    family = pool.family
    for at, run in enumerate(family.runs):
        within = pool.ranks[at] <= pool.depth
        only, of_group = (_only(pool, runs) for runs in ((run,), family.relatives(run)))
        listed = pool.counted & (pool.lists[at].n_listed > 0)
        yield {
            "run": run,
            "group": family.group_of(run),
            "is_pooled": bool(family.is_pooled[at]),
            "n_judged": int((within & pool.is_judged).sum()),
            "n_relevant": int((within & pool.is_relevant).sum()),
            "n_judged_only": int((only & pool.is_judged).sum()),
            "n_relevant_only": int((only & pool.is_relevant).sum()),
            "n_relevant_group_only": int((of_group & within & pool.is_relevant).sum()),
            "judged_at_10": float(judged(pool.lists[at], cutoff=JUDGED_AT)[listed].mean()),
        }


def _only(pool: Pooled, runs: Sequence[str]) -> Flags:
    members = pool.family.members(runs)
    among = pool.family.is_pooled | members
    return judgments_only_of(pool.ranks[among], members[among], pool.depth) & ~pool.elsewhere


def depths_of(pool: Pooled) -> Iterator[Row]:
    ranks = pool.ranks[pool.family.is_pooled][:, pool.is_judged]
    documents, relevant = new_by_depth(ranks, pool.is_relevant[pool.is_judged], pool.depth)
    so_far = zip(documents.cumsum(), relevant.cumsum(), documents, relevant, strict=True)
    for depth, (n_judged, n_relevant, n_new, n_new_relevant) in enumerate(so_far, 1):
        yield {
            "depth": depth,
            "n_judged": int(n_judged),
            "n_relevant": int(n_relevant),
            "n_new_judged": int(n_new),
            "n_new_relevant": int(n_new_relevant),
        }


def sources_of(pool: Pooled, confidence: float) -> Iterator[Row]:
    pooled = np.flatnonzero(pool.family.is_pooled)
    parts = {pool.family.runs[at]: pool.ranks[at] <= pool.depth for at in pooled}
    parts |= {NO_RUN: ~pool.is_brought} if not pool.is_brought.all() else {}
    for name, part in parts.items():
        here = part & pool.is_judged
        relevant, topics = pool.is_relevant[here], pool.grades.topic[here]
        share = share_over_topics(relevant, topics, confidence=confidence)
        row = {
            "source": name,
            "n_judged": int(here.sum()),
            "n_relevant": int(relevant.sum()),
            "prevalence": share.value,
            "ci_low": share.ci_low,
            "ci_high": share.ci_high,
            "reason": share.reason,
        }
        yield plain_values(row)


def families(
    names: Sequence[str], groups: Mapping[str, Sequence[str]], outside: Sequence[str]
) -> Families:
    if unknown := [run for run in outside if run not in names]:
        raise RunsUnfit(
            f"{unknown[0]}, said to be outside the pool, is none of the runs.", code="run_unknown"
        )
    group_of: dict[str, str] = {}
    for name, runs in groups.items():
        for run in runs:
            _require_member(name, run, names, outside, group_of)
            group_of[run] = name
    pooled = [run for run in names if run not in outside]
    for run in pooled:
        if run not in group_of and run in groups:
            raise RunsUnfit(
                f"Group {run} has the name of a run that is not in it.", code="group_is_run"
            )
    parts = {name: tuple(run for run in pooled if group_of.get(run) == name) for name in groups}
    parts |= {run: (run,) for run in pooled if run not in group_of}
    if len(parts) < 2:
        raise RunsUnfit(
            "Leaving one out takes two pooled runs of different groups.", code="too_few_groups"
        )
    is_pooled = np.array([run in pooled for run in names])
    return Families(tuple(names), is_pooled, {n: runs for n, runs in parts.items() if runs})


def _require_member(
    name: str,
    run: str,
    names: Sequence[str],
    outside: Sequence[str],
    group_of: Mapping[str, str],
) -> None:
    if run not in names:
        raise RunsUnfit(
            f"Group {name}: {run} is none of the runs: {', '.join(names)}.", code="run_unknown"
        )
    if run in outside:
        raise RunsUnfit(f"Group {name}: {run} is said to be outside the pool.", code="run_outside")
    if run in group_of:
        raise RunsUnfit(
            f"{run} is in the groups {group_of[run]} and {name}. Keep one.",
            code="run_in_two_groups",
        )


def read_groups(path: Path, *, report: ReadingReport | None = None) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    faults: list[tuple[int | None, str]] = []
    report = report or ReadingReport()
    for number, line in each_text_line(path, TrecFileFaults, report=report):
        cells = line.split()
        if not cells:
            continue
        if cells[0].startswith("#"):
            report.leave_out(CodedText("the line is a comment", "comment"), place_of_line(number))
            continue
        if len(cells) != 2:
            faults.append(
                (
                    number,
                    CodedText(
                        f"it has {len(cells)} columns. A line has a run and a group.",
                        code="columns",
                    ),
                )
            )
            if len(faults) == MOST_FAULTS:
                break
        else:
            groups.setdefault(cells[1], []).append(cells[0])
    if faults:
        raise TrecFileFaults(path, faults)
    return groups
