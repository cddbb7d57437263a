"""What an experiment comes to, in sentences: which recommender is best under which user, and how
much evaluation by the target alone underestimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from error_codes import CodedText
from presentation.numbers import format_interval, format_number
from presentation.phrases import join_names
from simulation.models import CauseRow, ComparisonRow, ImprovementRow, TurnResult
from simulation.pages.tables import is_tied

SIGNIFICANT = 0.05
SIGNED = "+.3f"
MOST_NAMED = 3


def signed(value: float | None) -> str:
    """With its sign, and a minus that lines up."""
    return "–" if value is None else f"{value:{SIGNED}}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class ExperimentAnswer:
    """Of one measure at the last turn; `results` are of that turn, in the order of the design."""

    measure: str
    is_stand_in: bool
    results: Sequence[TurnResult]
    comparisons: Sequence[ComparisonRow]
    causes: Sequence[CauseRow]
    improvements: Sequence[ImprovementRow]
    is_mixed: bool = False

    @cached_property
    def best(self) -> dict[str, tuple[str, bool | None]]:
        """For each user the recommender of the greatest mean, and whether all others are behind
        it by more than chance explains; None where there is no other."""
        by_user: dict[str, list[TurnResult]] = {}
        for row in self.results:
            by_user.setdefault(row.user.name, []).append(row)
        firsts = {}
        for user, rows in by_user.items():
            first = max(rows, key=lambda row: row.mean or 0.0).recommender.name
            others = {row.recommender.name for row in rows} - {first}
            is_sure = self._behind(user, first) >= others if others else None
            firsts[user] = (first, is_sure)
        return firsts

    def _behind(self, user: str, first: str) -> set[str]:
        """The recommenders that a test sets behind the first under a user."""
        return {
            row.b if row.a == first else row.a
            for row in self.comparisons
            if row.what == ComparisonRow.What.RECOMMENDERS
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
        by_best: dict[tuple[str, bool | None], list[str]] = {}
        for user, best in self.best.items():
            by_best.setdefault(best, []).append(user)
        for (name, sure), users in by_best.items():
            some = [*users[:MOST_NAMED]]
            if len(users) > MOST_NAMED:
                some.append(_("{n} more").format(n=len(users) - MOST_NAMED))
            text = _("{name} under {users}") if sure else _("{name} under {users} (not decided)")
            yield text.format(name=name, users=join_names(some))

    @property
    def details(self) -> list[str]:
        return [*self._underestimation(), *self._users(), *self._best_of_many()]

    def _underestimation(self) -> Iterator[str]:
        """For each recommender the user whose mean is furthest above the first user's with the
        target alone, and how much of that is the qrels."""
        by_recommender: dict[str, list[CauseRow]] = {}
        for row in self.causes:
            by_recommender.setdefault(row.recommender.name, []).append(row)
        for name, rows in by_recommender.items():
            # Named beforehand, not the best one: the last of the design.
            row = rows[-1]
            if row.total_delta is None:
                continue
            interval = format_interval(row.total_ci_low, row.total_ci_high)
            text = self._of_cause(row)
            said = text.format(
                name=name,
                change=f"{signed(row.total_delta)} {interval}".rstrip(),
                user=row.user.name,
                low=format_number(row.base_target),
                high=format_number(row.meta_all),
                qrels=signed(row.qrels_delta),
                user_part=signed(row.user_delta),
            )
            yield CodedText(said, code=text.code)

    @staticmethod
    def _of_cause(row: CauseRow) -> CodedText:
        """What the change's interval allows to be said."""
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
        rows = [row for row in self.comparisons if row.what == ComparisonRow.What.USERS]
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
        means: dict[str, list[float]] = {}
        for one in self.results:
            means.setdefault(one.recommender.name, []).append(one.mean or 0.0)
        for row in self.improvements:
            # The first is SimBase's; one of several equal means is the best of none.
            others = means[row.recommender.name][1:]
            n_tied = sum(is_tied(mean, row.best) for mean in others)
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
                    name=row.recommender.name,
                    gain=f"{row.expected_gain_se:.2f}",
                )
