from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from console.chart_values import ranges_in_words
from error_codes import CodedText
from presentation.documents import Table
from presentation.numbers import format_interval, format_number, group_values, join_names
from results.kinds import Chart
from results.models import Result
from simulation.figures import choices_figure, has_several, line_of, turns_figure
from simulation.models import StoredCatalogue, StoredRecommender
from simulation.pages.tables import TABLES, StoredRun, is_tied, sensitivity_table, turns_table
from simulation.stored_catalogues import subject_of_training
from simulation.stored_experiments import find_experiment, jobs_of
from stats.libraries import pd
from work.models import Job

TURNS, TOLERANCE, P_SWITCH = "turns", "tolerance", "p-switch"
FRAME = ("recommender", "user", "turn", "mean", "ci_low", "ci_high")


class ExperimentView:
    def __init__(self, run: StoredRun, query: Mapping[str, str]) -> None:
        self.run, self.version = run, run.version
        name = query.get("measure", "")
        self.measure = name if name in run.measures else run.measures[0]

    @cached_property
    def answer(self) -> ExperimentAnswer:
        return ExperimentAnswer(
            self.measure,
            find_experiment(self.version).catalogue.kind == StoredCatalogue.Kind.STAND_IN,
            [row for row in self.run.last.values() if row.measure == self.measure],
            self._of_measure("comparisons"),
            self._of_measure("causes"),
            self._of_measure("improvements"),
            self.run.is_mixed,
        )

    def _of_measure(self, table: str) -> list[SimpleNamespace]:
        return [row for row in self.run.rows(table) if row.measure == self.measure]

    @cached_property
    def tables(self) -> dict[str, Table]:
        return {name: make(self.run, [self.measure]) for name, make in TABLES.items()}

    @cached_property
    def sensitivity(self) -> Table | None:
        rows = self.run.long_rows("sensitivity", measure=self.measure)
        return sensitivity_table(self.run, rows, self.measure) if rows else None

    @cached_property
    def turns(self) -> Table:
        return turns_table(self.run, self._rows)

    @property
    def query(self) -> str:
        return urlencode({"version": self.version.number, "measure": self.measure})

    @cached_property
    def _rows(self) -> list[SimpleNamespace]:
        return self.run.long_rows("turns", measure=self.measure)

    @cached_property
    def figures(self) -> dict[str, Chart]:
        users = [SimpleNamespace(**one) for one in self.version.facts["users"]]
        figures = [self._turns()]
        if has_several(users, "tolerance"):
            title = _("By tolerance, at the last turn")
            figures.append(self._against(TOLERANCE, "tolerance", title, _("Tolerance, turns")))
        if has_several(users, "p_switch"):
            title = _("By P(switch), at the last turn")
            axis = _("Probability of switching")
            figures.append(self._against(P_SWITCH, "p_switch", title, axis))
        return {one.name: one for one in figures}

    def _turns(self) -> Chart:
        frame = pd.DataFrame([_plain(row) for row in self._rows])
        names = self.run.user_names
        return Chart(
            TURNS,
            _("Turn by turn"),
            _(
                "{measure} of each recommender at turns 1 to {turn}, a line for each of {n} users "
                "with its 95 % interval. Lines that coincide hide one another; the table “Every "
                "turn” has each."
            ).format(measure=self.measure, turn=self.run.last_turn, n=len(names)),
            frame,
            lambda: turns_figure(frame, self.measure, names),
            self._summary(frame),
        )

    def _against(self, name: str, field: str, title: str, axis: str) -> Chart:
        kinds = ("prob",) if field == "p_switch" else ("tol", "prob")
        frame = pd.DataFrame(
            [
                _plain(row) | line_of(row, field)
                for row in self._rows
                if row.turn == self.run.last_turn and row.kind in kinds
            ]
        )
        return Chart(
            name,
            title,
            _(
                "{measure} at turn {turn} against: {axis}. A point is a user, with its interval."
            ).format(measure=self.measure, turn=self.run.last_turn, axis=axis),
            frame,
            lambda: choices_figure(frame, self.measure, field, axis),
            self._summary(frame),
        )

    def _summary(self, frame: pd.DataFrame) -> str:
        return _(
            "{measure} at turn {turn}, over users: {ranges}. The table “{table}” has each."
        ).format(
            measure=self.measure,
            turn=self.run.last_turn,
            ranges=ranges_in_words(frame[frame["turn"] == self.run.last_turn]),
            table=self.turns.caption,
        )


def _plain(row: SimpleNamespace) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FRAME}


SIGNIFICANT = 0.05
SIGNED = "+.3f"
MOST_NAMED = 3


def signed(value: float | None) -> str:
    """With a typographic minus."""
    return "–" if value is None else f"{value:{SIGNED}}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class ExperimentAnswer:
    """One measure at the last turn; `results` are in the order of the design."""

    measure: str
    is_stand_in: bool
    results: Sequence[SimpleNamespace]
    comparisons: Sequence[SimpleNamespace]
    causes: Sequence[SimpleNamespace]
    improvements: Sequence[SimpleNamespace]
    is_mixed: bool = False

    @cached_property
    def best(self) -> dict[str, tuple[str, bool | None]]:
        """By user: the recommender with the greatest mean, and whether all others are significantly
        behind it (None if it is the only one)."""
        firsts = {}
        for user, rows in group_values((row.user, row) for row in self.results).items():
            first = max(rows, key=lambda row: row.mean or 0.0).recommender
            others = {row.recommender for row in rows} - {first}
            is_sure = self._behind(user, first) >= others if others else None
            firsts[user] = (first, is_sure)
        return firsts

    def _behind(self, user: str, first: str) -> set[str]:
        return {
            row.b if row.a == first else row.a
            for row in self.comparisons
            if row.what == "recommenders"
            and row.within == user
            and first in (row.a, row.b)
            and row.p_adjusted is not None
            and row.p_adjusted < SIGNIFICANT
        }

    @property
    def first_sentence(self) -> str:
        said = " ".join(part for part in (self._stand_in, self._recommenders) if part)
        return CodedText(said, code=self._recommenders.code)

    @property
    def _stand_in(self) -> str:
        if not self.is_stand_in:
            return ""
        return _(
            "The embeddings are stand-ins: this shows how the programs behave, and nothing about "
            "products or recommenders."
        )

    @property
    def _recommenders(self) -> CodedText:
        names = {name for name, _is_sure in self.best.values()}
        is_sure = {sure for _name, sure in self.best.values()}
        if is_sure == {None}:
            [name] = names
            return CodedText(
                _(
                    "{name} alone was simulated: how far users differ can be concluded, and not "
                    "which recommender is best."
                ).format(name=name),
                code="one_recommender",
            )
        if len(names) == 1 and is_sure == {True}:
            text = _("Under every user {name} is best by {measure}, by more than chance explains.")
            return CodedText(text.format(name=names.pop(), measure=self.measure), code="best")
        if len(names) == 1:
            return CodedText(
                _(
                    "Under every user {name} has the highest {measure}, but not each lead is more "
                    "than chance explains."
                ).format(name=names.pop(), measure=self.measure),
                code="best_undecided",
            )
        return CodedText(
            _("Which recommender is best by {measure} depends on the user: {parts}.").format(
                measure=self.measure, parts="; ".join(self._parts())
            ),
            code="best_depends",
        )

    def _parts(self) -> Iterator[str]:
        for (name, sure), users in group_values(
            (best, user) for user, best in self.best.items()
        ).items():
            some = [*users[:MOST_NAMED]]
            if len(users) > MOST_NAMED:
                some.append(_("{n} more").format(n=len(users) - MOST_NAMED))
            text = _("{name} under {users}") if sure else _("{name} under {users} (not decided)")
            yield text.format(name=name, users=join_names(some))

    @property
    def details(self) -> list[str]:
        return [*self._underestimation(), *self._users(), *self._best_of_many()]

    def _underestimation(self) -> Iterator[str]:
        """By recommender: the user whose mean is furthest above the first user's with the target
        alone, and how much of that is due to the qrels."""
        for name, rows in group_values((row.recommender, row) for row in self.causes).items():
            # Named beforehand, not the best one: the last of the design.
            row = rows[-1]
            if row.total_delta is None:
                continue
            text = self._of_cause(row)
            interval = format_interval(row.total_ci_low, row.total_ci_high)
            said = text.format(
                name=name,
                change=f"{signed(row.total_delta)} {interval}".rstrip(),
                user=row.user,
                low=format_number(row.base_target),
                high=format_number(row.meta_all),
                qrels=signed(row.qrels_delta),
                user_part=signed(row.user_delta),
            )
            yield CodedText(said, code=text.code)

    @staticmethod
    def _of_cause(row: SimpleNamespace) -> CodedText:
        if row.total_ci_low is not None and row.total_ci_low > 0:
            return CodedText(
                _(
                    "Evaluation by the target alone, with SimBase, underestimates {name}: {low} "
                    "instead of {high} with {user} and alternatives, {change}. More relevant "
                    "items make up {qrels} of it, what the user does {user_part}."
                ),
                code="underestimates",
            )
        if row.total_ci_high is not None and row.total_ci_high < 0:
            return CodedText(
                _(
                    "Evaluation by the target alone, with SimBase, overestimates {name}: {low} "
                    "instead of {high} with {user} and alternatives, {change}. More relevant "
                    "items make up {qrels} of it, what the user does {user_part}."
                ),
                code="overestimates",
            )
        return CodedText(
            _(
                "For {name}, evaluation by the target alone, with SimBase, and that with {user} "
                "and alternatives do not differ by more than chance explains: {low} and {high}, "
                "{change}."
            ),
            code="not_different",
        )

    def _users(self) -> Iterator[str]:
        rows = [row for row in self.comparisons if row.what == "users"]
        if not rows:
            return
        differ = [row for row in rows if (row.p_adjusted or 1.0) < SIGNIFICANT]
        if self.is_mixed:
            text = _(
                "Of {n} comparisons of a user, evaluated by target and alternatives, with SimBase, "
                "evaluated by the target alone, {differ} differ by more than chance explains (p "
                "after Holm below .05)."
            )
        else:
            text = _(
                "Of {n} comparisons of a user with SimBase under the same qrels, {differ} differ "
                "by more than chance explains (p after Holm below .05)."
            )
        code = "users_differ_mixed" if self.is_mixed else "users_differ"
        yield CodedText(text.format(n=len(rows), differ=len(differ)), code=code)

    def _best_of_many(self) -> Iterator[str]:
        results = group_values((one.recommender, one) for one in self.results)
        for row in self.improvements:
            # The first is SimBase's; one of several equal means is the best of none.
            others = results[row.recommender][1:]
            n_tied = sum(is_tied(one.mean or 0.0, row.best) for one in others)
            if (
                row.best > row.base
                and not is_tied(row.best, row.base)
                and n_tied == 1 < row.best_of
            ):
                yield _(
                    "{user} is the best of {n} rows for {name}: of equal ones the best would be "
                    "{gain} standard errors above their mean."
                ).format(
                    user=row.best_user,
                    n=row.best_of,
                    name=row.recommender,
                    gain=f"{row.expected_gain_se:.2f}",
                )


@dataclass(frozen=True)
class Standing:
    """Parts done and total (0 if unknown), and which failed or were stopped."""

    n_done: int
    n_total: int
    is_finished: bool
    jobs: Sequence[Job]

    @property
    def is_under_way(self) -> bool:
        return not self.is_finished and any(job.is_unfinished for job in self.jobs)

    @property
    def is_running(self) -> bool:
        return any(job.state == Job.State.RUNNING for job in self.jobs)

    @property
    def problems(self) -> list[str]:
        failed = [job.message for job in self.jobs if job.state == Job.State.FAILED]
        return list(dict.fromkeys(failed))


def standing_of_run(version: Result) -> Standing:
    """The evaluation counts as one more part."""
    n_pieces = version.pieces.count()
    if version.finished_at is not None:
        return Standing(n_pieces + 1, n_pieces + 1, True, [])
    n_done = version.pieces.exclude(done_at=None).count()
    return Standing(n_done, n_pieces + 1 if n_pieces else 0, False, jobs_of(version))


def standing_of_training(row: StoredRecommender) -> Standing:
    is_finished = row.finished_at is not None
    jobs = [] if is_finished else list(Job.objects.about(subject_of_training(row))[:1])
    return Standing(row.epochs.count(), row.n_epochs, is_finished, jobs)
