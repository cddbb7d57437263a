"""What a report on dialogues comes to, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.simulated_answers import raters_of
from console.dialogues.rows import StoredReport
from error_codes import CodedText
from presentation.numbers import format_interval, format_number
from presentation.phrases import join_names
from simulation.dialogue_estimates import BIAS, CHOICE, COEFFICIENT, FIT, ORDER, SHARE
from simulation.models import DialogueEstimate, DialogueStudy
from simulation.outcome_report import FEW_RECOMMENDERS

SIGNIFICANT = 0.05


def _text(row: DialogueEstimate) -> str:
    return f"{format_number(row.value)} {format_interval(row.ci_low, row.ci_high)}".strip()


class ReportAnswer:
    """The first sentence and those that follow."""

    def __init__(self, report: StoredReport) -> None:
        self.report = report
        self.is_switching = report.report.dialogues.kind == DialogueStudy.Kind.SWITCHING

    @property
    def first_sentence(self) -> str:
        return self._switching() if self.is_switching else self._order()

    @property
    def details(self) -> list[str]:
        return list(self._switching_details() if self.is_switching else self._order_details())

    def _switching(self) -> str:
        loss, gain = (self.report.one(SHARE, name) for name in ("after_loss", "after_gain"))
        code = "probabilities"
        text = _("{who} switch after a loss with a probability of {loss}, after a gain of {gain}.")
        if loss.value is None and gain.value is None:
            code = "unknown"
            text = _("How often {raters} switch cannot be said: {reason}.")
        elif gain.value is None:
            code = "after_loss"
            text = _("{who} switch after a loss with a probability of {loss}.")
        elif loss.value is None:
            code = "after_gain"
            text = _("{who} switch after a gain with a probability of {gain}.")
        raters = raters_of(self.report.report.dialogues.study)
        values = {"loss": _text(loss), "gain": _text(gain), "reason": self._undefined_model}
        return CodedText(text.format(who=raters.subject, raters=raters.named, **values), code=code)

    @property
    def _undefined_model(self) -> str:
        """Why no model says what people's decisions depend on, if none does."""
        return next((row.reason for row in self.report.part(COEFFICIENT)), "")

    def _switching_details(self) -> Iterator[str]:
        if self._undefined_model and _is_known(self.report.part(SHARE)[:2]):
            yield CodedText(
                _(
                    "These are shares of decisions, with intervals over workers. The model is "
                    "undefined: {reason}."
                ).format(reason=self._undefined_model),
                code="undefined_model",
            )
        counts = {row.name: int(row.value or 0) for row in self.report.part(CHOICE)}
        yield CodedText(
            _("{n} decisions: {keep} kept the target, {switch} took another, {leave} left.").format(
                n=f"{sum(counts.values()):,}", **{name: f"{n:,}" for name, n in counts.items()}
            ),
            code="decisions",
        )
        if leave := counts.get("leave", 0):
            text = _("Probabilities of switching are of the {n} decisions in which they stayed.")
            yield CodedText(text.format(n=f"{sum(counts.values()) - leave:,}"), code="stayed")
        if truest := self._truest(self.report.part(FIT, "gain")):
            yield truest
        yield from self._too_few_workers(self.report.part(FIT, "gain"))

    def _too_few_workers(self, gains: list[DialogueEstimate]) -> Iterator[str]:
        """That no answers of so few could show a difference: of n workers there are 2^n ways to
        flip signs."""
        n_workers = self.report.report.n_annotators
        n_tests = sum(row.p is not None for row in gains)
        least = min(1.0, n_tests * 2.0 / 2.0 ** min(n_workers, 60))
        if n_tests and least >= SIGNIFICANT:
            yield CodedText(
                ngettext(
                    "No answers of %(n)s worker could show who is truer: p is never below %(p)s.",
                    "No answers of %(n)s workers could show who is truer: p is never below %(p)s.",
                    n_workers,
                )
                % {"n": n_workers, "p": f"{least:.3f}"},
                code="too_few_workers",
            )

    def _truest(self, gains: list[DialogueEstimate]) -> str:
        """Who is truer than the first user by more than chance explains."""
        first = next((row.user for row in gains if row.p is None), "")
        others = [row for row in gains if row.p is not None]
        if not others:
            return ""
        truer = [row.user for row in others if _is_sure(row) and (row.value or 0) > 0]
        if not truer:
            return CodedText(
                _("No user is shown to be truer than {first}.").format(first=first),
                code="none_truer",
            )
        return CodedText(
            ngettext(
                "%(users)s is truer than %(first)s, by more than chance explains.",
                "%(users)s are truer than %(first)s, by more than chance explains.",
                len(truer),
            )
            % {"users": join_names(truer), "first": first},
            code="truer",
        )

    def _order(self) -> str:
        rows = self.report.part(ORDER, "spa")
        best = max(rows, key=lambda row: row.value or 0.0)
        alike = [row for row in rows if format_number(row.value) == format_number(best.value)]
        text = _("{user} orders recommenders most as people do: soft pairwise accuracy {spa}")
        if len(alike) == len(rows) > 1:
            text = _("All users order recommenders as people do by soft pairwise accuracy {spa}")
        elif len(rows) == 1:
            text = _("{user} orders recommenders as people do by soft pairwise accuracy {spa}")
        said = text.format(user=join_names([row.user for row in alike]), spa=_text(best))
        top = self.report.attainable("spa")
        if top is None:
            return CodedText(
                _("{said}. {basis}").format(said=said, basis=self._n_pairs), code=self._n_pairs.code
            )
        text = _("{said}, where a user who knows what people would say has about {top}. {basis}")
        return CodedText(
            text.format(said=said, top=format_number(top), basis=self._n_pairs),
            code=self._n_pairs.code,
        )

    @property
    def _n_pairs(self) -> CodedText:
        """How many pairs an order rests on, and whether it says anything."""
        n = len({row.recommender for row in self.report.part(BIAS)})
        n_pairs = n * (n - 1) // 2
        if n >= FEW_RECOMMENDERS:
            return CodedText(
                _("That rests on {n} pairs of recommenders.").format(n=f"{n_pairs:,}"), code="pairs"
            )
        return CodedText(
            ngettext(
                "That rests on %(n)s pair of recommenders, which says little: compare ten or more "
                "variants.",
                "That rests on %(n)s pairs of recommenders, which says little: compare ten or more "
                "variants.",
                n_pairs,
            )
            % {"n": n_pairs},
            code="few_pairs",
        )

    def _order_details(self) -> Iterator[str]:
        if truest := self._truest(self.report.part(ORDER, "spa_gain")):
            yield truest
        for user in (row.user for row in self.report.part(ORDER, "spa")):
            yield self._biased(user)

    def _biased(self, user: str) -> str:
        rows = [row for row in self.report.part(BIAS, "bias") if row.user == user]
        low = [row.recommender for row in rows if row.ci_high is not None and row.ci_high < 0]
        high = [row.recommender for row in rows if row.ci_low is not None and row.ci_low > 0]
        parts = []
        if low:
            parts.append(_("underestimates {names}").format(names=join_names(low)))
        if high:
            parts.append(_("overestimates {names}").format(names=join_names(high)))
        verdicts = "; ".join([*parts, self._equivalent(rows)])
        return CodedText(
            _("{user} {verdicts}.").format(user=user, verdicts=verdicts), code="biases"
        )

    def _equivalent(self, rows: list[DialogueEstimate]) -> str:
        """On how many recommenders, of those on which it could be tested."""
        tested = [row.is_equivalent for row in rows if row.is_equivalent is not None]
        text = _("is shown to be within ± {margin} of people on {n} of {total} recommenders")
        if not tested:
            text = _(
                "could be tested for being within ± {margin} of people on 0 of {total} recommenders"
            )
        elif len(tested) < len(rows):
            text = _(
                "is shown to be within ± {margin} of people on {n} of {n_tested} recommenders on "
                "which that could be tested, of {total}"
            )
        margin = self.report.report.rules["margin"]
        return text.format(margin=margin, n=sum(tested), n_tested=len(tested), total=len(rows))


def _is_known(rows: list[DialogueEstimate]) -> bool:
    return any(row.value is not None for row in rows)


def _is_sure(row: DialogueEstimate) -> bool:
    return row.p_adjusted is not None and row.p_adjusted < SIGNIFICANT
