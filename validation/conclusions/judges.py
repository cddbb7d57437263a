from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from typing import Any

from annotation.readers.columns import open_table, refusing_tables, refusing_values
from annotation.readers.label_tables import Kind, LabelTable, read_labels, settle_repeats
from annotation.readers.policies import Reading
from annotation.readers.shapes import Columns, Where
from error_codes import CodedText
from metrics.exceptions import ColumnsUnfit
from presentation.numbers import plain_values
from stats.agreement import cohen_kappa
from stats.inference.alternative_annotator import alternative_annotator_test
from stats.inference.annotator_wins import AlternativeTest, Level, Undecided
from stats.inference.judge_soundness import Drift, judge_shift
from stats.libraries import np, pd

MAY_REPLACE = "may_replace"
CANNOT_TELL = "cannot_tell"
NOT_SHOWN = "not_shown"
TOO_LITTLE = "too_little_data"
REASONS = {
    Undecided.NO_JUDGE: "no item has labels of the judge and of two annotators",
    Undecided.TOO_FEW_ANNOTATORS: (
        "fewer than three annotators have enough items with the judge and another annotator"
    ),
}


@dataclass(frozen=True)
class JudgeTest:
    judge: str
    level: Level
    test: AlternativeTest
    judge_agreement: float
    human_agreement: float

    @property
    def conclusion(self) -> str:
        if self.test.reason is not None:
            return TOO_LITTLE
        if not self.test.passes:
            return NOT_SHOWN
        passing = any(control.passes for control in self.test.controls.values())
        return CANNOT_TELL if passing else MAY_REPLACE

    def record(self) -> dict[str, Any]:
        test = self.test
        rest = {
            "judge": self.judge,
            "level": self.level,
            "epsilon": test.epsilon,
            "winning_rate": test.winning_rate,
            "advantage_probability": test.advantage_probability,
            "advantage_ci_low": test.advantage_low,
            "advantage_ci_high": test.advantage_high,
            "passes": test.passes,
            "least_epsilon": test.least_epsilon,
            "conclusion": self.conclusion,
            "n_items": test.n_items,
            "judge_human_agreement": self.judge_agreement,
            "human_human_agreement": self.human_agreement,
            "agreement_is": "kappa" if self.level == "nominal" else "pearson",
            "reason": test.reason,
        }
        return plain_values(rest) | {
            "controls": {name: plain_values(asdict(c)) for name, c in test.controls.items()},
            "annotators": [plain_values(asdict(one)) for one in test.annotators],
            "skipped": list(test.skipped),
            "notes": list(test.notes),
        }

    def lines(self) -> Iterator[str]:
        yield self.sentence()
        for name, control in self.test.controls.items():
            state = "passes too" if control.passes else "does not pass"
            yield (
                f"A {name} judge {state} (winning rate {control.winning_rate:.2f}, advantage "
                f"{control.advantage_probability:.3f})."
            )
        for one in self.test.annotators:
            yield (
                f"Instead of {one.annotator}: {one.n} items, the annotator wins more often by "
                f"{one.mean_difference:+.3f}{_limits(one.ci_low, one.ci_high)}, "
                f"p = {one.p:.4f}, adjusted {one.p_adjusted:.4f}."
            )
        yield from (f"Note: {note}." for note in self.test.notes)

    def sentence(self) -> str:
        test, at = self.test, f"at epsilon {self.test.epsilon:g}"
        if test.reason is not None:
            return (
                f"Too little data to say whether {self.judge} may stand in: {REASONS[test.reason]}."
            )
        numbers = (
            f"winning rate {test.winning_rate:.2f}, advantage probability "
            f"{test.advantage_probability:.3f}{_limits(test.advantage_low, test.advantage_high)}"
        )
        if self.conclusion == MAY_REPLACE:
            return f"{self.judge} may stand in for one of these annotators {at} ({numbers})."
        if self.conclusion == CANNOT_TELL:
            return (
                f"{self.judge} passes {at}, but so does a judge that knows nothing: these items "
                f"cannot distinguish the two ({numbers})."
            )
        least = "none passes" if isnan(test.least_epsilon) else f"{test.least_epsilon:g} would"
        return (
            f"It is not shown that {self.judge} may stand in {at} ({numbers}; "
            f"of epsilons, {least})."
        )


def judge_test_of_file(
    path: Path,
    columns: Columns,
    *,
    judge: str,
    level: Level,
    epsilon: float,
    min_items: int,
    seed: int,
    reading: Reading | None = None,
    judge_path: Path | None = None,
) -> JudgeTest:
    """The test of the labels in a file, of which the judge's are rows like any other's, or are
    in a second file with these columns; of that, no other rows are used."""
    reading = reading or Reading()
    kind: Kind = "number" if level == "interval" else "text"
    table = read_labels(path, columns, kind=kind, reading=reading)
    if judge_path is not None:
        of_judge = replace(columns, where={**columns.where, columns.annotator[0]: (judge,)})
        table = table.joined(read_labels(judge_path, of_judge, kind=kind, reading=reading))
    if judge not in table.annotators:
        known = ", ".join(sorted({*table.annotators})[:8])
        raise ColumnsUnfit(
            f"There is no annotator '{judge}'; there are {known}.", code="judge_unknown"
        )
    with refusing_values(path):
        test = alternative_annotator_test(
            table.items,
            table.annotators,
            table.values,
            judge=judge,
            level=level,
            epsilon=epsilon,
            clusters=table.clusters,
            min_items=min_items,
            rng=seed,
        )
    with_judge, among_humans = _agreements(table, judge, level)
    return JudgeTest(judge, level, test, with_judge, among_humans)


def _agreements(table: LabelTable, judge: str, level: Level) -> tuple[float, float]:
    columns: dict[str, Any] = {"item": table.items, "annotator": table.annotators}
    wide = pd.DataFrame(columns | {"value": table.values}).pivot(
        index="item", columns="annotator", values="value"
    )
    people = [name for name in wide.columns if name != judge]
    with_judge = [_agreement(wide[judge], wide[name], level) for name in people]
    among = [_agreement(wide[a], wide[b], level) for a, b in combinations(people, 2)]
    return _mean(with_judge), _mean(among)


def _agreement(one: pd.Series[Any], other: pd.Series[Any], level: Level) -> float:
    both = one.notna() & other.notna()
    if both.sum() < 2:
        return nan
    if level == "nominal":
        return cohen_kappa(list(one[both]), list(other[both]), ci="analytic").value
    x, y = (side[both].to_numpy(dtype=np.float64) for side in (one, other))
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else nan


def _mean(values: list[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return float(np.mean(known)) if known else nan


def _limits(low: float, high: float) -> str:
    return "" if isnan(low) else f" [{low:.3f}, {high:.3f}]"


ANCHORS = 50
# If most scores did not move, the interval of the mean needs about this many that did.
MOVED = 30
ALPHA = 0.05


@dataclass(frozen=True)
class DriftColumns:
    before: str
    after: str
    human: str | None = None
    cluster: str | None = None
    item: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class JudgeDrift:
    drift: Drift
    tolerance: float

    @property
    def has_drifted(self) -> bool:
        return self.drift.p_beyond < ALPHA

    def record(self) -> dict[str, Any]:
        return plain_values(asdict(self.drift)) | {
            "tolerance": self.tolerance,
            "drifted": self.has_drifted,
            "notes": list(self.notes()),
            "note_codes": [note.code for note in self.notes()],
        }

    def lines(self) -> Iterator[str]:
        one = self.drift
        limits = "" if isnan(one.ci_low) else f" [{one.ci_low:+.4g}, {one.ci_high:+.4g}]"
        state = "has moved" if self.has_drifted else "is not shown to have moved too far"
        yield (
            f"The judge {state}: {one.shift:+.4g}{limits} on {one.n} anchor items, "
            f"p = {one.p_adjusted:.4f}, tolerance {self.tolerance:g}."
        )
        if not isnan(one.distance_shift):
            limits = f" [{one.distance_ci_low:+.4g}, {one.distance_ci_high:+.4g}]"
            limits = ", all alike" if isnan(one.distance_ci_low) else limits
            yield (
                f"Mean distance from people: {one.distance_before:.4g} before, "
                f"{one.distance_after:.4g} after ({one.distance_shift:+.4g}{limits})."
            )
        yield from (f"Note: {note}." for note in self.notes())

    def notes(self) -> Iterator[CodedText]:
        one = self.drift
        if one.n_clusters < ANCHORS:
            units = "anchor items" if one.n_clusters == one.n else "clusters of anchor items"
            yield CodedText(
                f"{one.n_clusters} {units}; {ANCHORS} or more are advised", code="few_anchors"
            )
        if one.n >= ANCHORS and 0 < one.n_moved < min(MOVED, one.n):
            text = f"only {one.n_moved} scores moved: the interval is a rough guide below {MOVED}"
            yield CodedText(text, code="few_moved")


def drift_of_file(
    path: Path,
    columns: DriftColumns,
    *,
    tolerance: float = 0.0,
    looks: int = 1,
    reading: Reading | None = None,
) -> JudgeDrift:
    """The shift of the judge whose scores at two versions are columns of a file.

    Anchor items without one of the scores, or without the human rating, are left out.
    """
    reading = reading or Reading()
    scores = [name for name in (columns.before, columns.after, columns.human) if name]
    cluster = [columns.cluster] if columns.cluster else []
    with refusing_tables():
        table = open_table(path, [*scores, *columns.item, *cluster], columns.where, reading)
        table.drop_missing(*dict.fromkeys(scores))
        clusters = table.names(cluster[0], "clusters").to_list() if cluster else None
        values = [table.numbers(name) for name in scores]
        if columns.item:
            units = table.units(columns.item)
            values, kept = settle_repeats(table, [units], values, reading.repeats("refuse"))
            clusters = clusters and [clusters[row] for row in kept.tolist()]
    before, after, *human = values
    with refusing_values(path):
        drift = judge_shift(
            before,
            after,
            human=human[0] if human else None,
            clusters=clusters,
            tolerance=tolerance,
            looks=looks,
        )
    return JudgeDrift(drift, tolerance)
