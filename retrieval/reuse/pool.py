from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotation.readers.drafts import ReadingReport, place_of_line
from error_codes import CodedText
from presentation.records import plain_values
from retrieval.exceptions import RunsUnfit, TrecFileFaults
from retrieval.reuse.records import JUDGED_AT, Row
from retrieval.text_lines import each_text_line
from retrieval.trec_files import MOST_FAULTS, RelevanceGrades
from stats.arguments import Integers
from stats.ranking import JudgedLists
from stats.ranking.measures import judged
from stats.ranking.pool_bias import judgments_only_of, new_by_depth, share_over_topics

Flags = NDArray[np.bool_]
NO_RUN = "(no pooled run)"


Members = NDArray[np.bool_]


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
