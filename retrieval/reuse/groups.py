"""Which pooled runs are of one family, and which were not pooled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotation.readers.report import ReadingReport, place_of_line
from error_codes import CodedText
from retrieval.exceptions import RunsUnfit, TrecFileFaults
from retrieval.text_lines import each_text_line
from retrieval.trec_files import MOST_FAULTS

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Families:
    """Runs in the pool and their groups; a run of no group is one by itself."""

    runs: tuple[str, ...]
    is_pooled: Flags
    groups: Mapping[str, tuple[str, ...]]
    """Those of the pooled runs; named ones first."""

    @property
    def has_groups(self) -> bool:
        return any(runs != (name,) for name, runs in self.groups.items())

    def group_of(self, run: str) -> str:
        """The name of its group, its own where it was not pooled."""
        return next((name for name, runs in self.groups.items() if run in runs), run)

    def members(self, runs: Sequence[str]) -> Flags:
        """Which of all runs these are."""
        return np.isin(np.array(self.runs), list(runs))


def families(
    names: Sequence[str], groups: Mapping[str, Sequence[str]], outside: Sequence[str]
) -> Families:
    """The runs with their groups, once both name runs that are there."""
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
    """Groups of a file: each line has a run and its group, with white space between."""
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
