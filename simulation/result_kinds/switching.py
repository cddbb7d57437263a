from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.exceptions import AnnotationError
from annotation.models import Study
from annotation.study_facts import raters_of
from console.chart_values import values_in_words
from presentation.numbers import format_estimate, join_names
from presentation.row_files import Kind, RowFile
from results.kinds import (
    Chart,
    Computed,
    Estimate,
    Given,
    PValue,
    Record,
    ResultKind,
    Row,
    Table,
    Text,
    Value,
    register_kind,
    sentence,
)
from results.models import Result
from results.settings import Names, Number, setting
from simulation.exceptions import DialoguesUnfit, SimulationError
from simulation.figures import spans_figure
from simulation.models import DialogueStudy
from simulation.plans import named_user
from simulation.recorded_dialogues import dialogues_of
from simulation.switching import DEFAULT_USERS, decisions_of, switching_record
from stats.libraries import pd

MOST_SEED = 2**31 - 1
SIGNIFICANT = 0.05
# Columns of the file of every number.
ESTIMATE_COLUMNS: dict[str, Kind] = {
    "part": "text",
    "name": "text",
    "user": "text",
    "recommender": "text",
    "value": "number",
    "ci_low": "number",
    "ci_high": "number",
    "p": "number",
    "p_adjusted": "number",
    "is_equivalent": "boolean",
    "reason": "text",
}


class DialogueKind(ResultKind[Study]):
    subject = "study"
    refusals = (SimulationError, AnnotationError)

    def open_subject(self, key: int) -> Study:
        study = Study.objects.filter(pk=key, dialogues__kind=self.name).first()
        if study is None:
            raise DialoguesUnfit(_("The study was deleted meanwhile."))
        return study

    def find_subject(self, name: str) -> Study:
        return dialogues_of(Study.objects.named(name), self.name).study

    def load_inputs(self, subject: Study, keys: Sequence[int]) -> Sequence[Any]:
        return ()

    def describe_inputs(self, subject: Study, inputs: Sequence[Any]) -> list[Any]:
        return [subject.dialogues.log_sha256, subject.judgments_version]

    @abstractmethod
    def list_estimates(self, record: Record) -> Iterable[Row]:
        pass

    def write_estimates(self, result: Result) -> RowFile:
        rows = self.list_estimates(result.record)
        return RowFile(ESTIMATE_COLUMNS, (tuple(row.values()) for row in rows))


def estimate(
    part: str,
    name: str,
    value: float | None = None,
    limits: Sequence[float | None] = (None, None),
    **more: Any,
) -> Row:
    low, high = limits
    number = None if value is None else float(value)
    numbers = {"part": part, "name": name, "value": number, "ci_low": low, "ci_high": high}
    row = dict.fromkeys(ESTIMATE_COLUMNS) | {"user": "", "recommender": ""} | numbers | more
    return row | {"reason": row["reason"] or ""}


def limits_of(row: Row) -> tuple[float | None, float | None]:
    return row["ci_low"], row["ci_high"]


def named_frame(rows: Iterable[tuple[str, Row]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"name": name} | {key: row[key] for key in ("value", "ci_low", "ci_high")}
            for name, row in rows
            if row["value"] is not None
        ]
    )


def describe_truest(gains: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Users significantly closer to people than the first. Rows have `user`, `gain`, `p` and
    `p_adjusted`; only the first user has no p."""
    others = [row for row in gains if row["p"] is not None]
    if not others:
        return
    first = find_first(gains)
    truer = [
        row["user"]
        for row in others
        if row["p_adjusted"] is not None
        and row["p_adjusted"] < SIGNIFICANT
        and (row["gain"] or 0) > 0
    ]
    if not truer:
        yield sentence("none_truer", _("No user is shown to be truer than {first}."), first=first)
        return
    text = ngettext(
        "{users} is truer than {first}, by more than chance explains.",
        "{users} are truer than {first}, by more than chance explains.",
        len(truer),
    )
    yield sentence("truer", text, users=join_names(truer), first=first)


def find_first(gains: Sequence[Mapping[str, Any]]) -> str:
    return next((str(row["user"]) for row in gains if row["p"] is None), "")


SHARES = {
    "after_loss": gettext_lazy("P(switch) after a loss"),
    "after_gain": gettext_lazy("P(switch) after a gain"),
    "nearest_excess": gettext_lazy("the nearest alternative, more often than by chance"),
    "leaves": gettext_lazy("leave"),
}
# Names in the record that differ from those of the shares.
KEYS = {"after_loss": "p_switch_after_loss", "after_gain": "p_switch_after_gain"}


@dataclass(frozen=True, kw_only=True)
class SwitchingSettings:
    users: Sequence[str] = setting(
        DEFAULT_USERS,
        Names(
            label=gettext_lazy("Simulated users"),
            help=gettext_lazy(
                "As a command line names them, with semicolons between: base, tol:3, prob:3:0.75. "
                "Others are tested against the first. Do not choose settings by these answers."
            ),
            have_commas=True,
        ),
    )
    seed: int = setting(0, Number(label=gettext_lazy("Seed"), least=0, most=MOST_SEED))


def list_shares(record: Record) -> list[Row]:
    return [
        {"name": name, "share": one} | one
        for name, one in ((name, record[KEYS.get(name, name)]) for name in SHARES)
    ]


def list_users(record: Record) -> list[Row]:
    return [one | {"is_truest": place == 0} for place, one in enumerate(record["users"])]


def list_terms(record: Record) -> list[Row]:
    reason = record["reason"]
    text = _("deviation between: {name}")
    return [
        *(one | {"reason": reason} for one in record["coefficients"]),
        *(
            {"name": text.format(name=name), "value": value, "reason": reason}
            for name, value in record["deviations"].items()
        ),
    ]


def _explain_users(result: Result) -> str:
    return _("The first is {user}. Intervals and tests are over workers.").format(
        user=find_first(result.record["users"])
    )


@register_kind
class SwitchingKind(DialogueKind):
    name = DialogueStudy.Kind.SWITCHING.value
    title = gettext_lazy("Simulated users and people")
    job = "report_switching"
    job_label = gettext_lazy("Comparing users with people")
    settings = SwitchingSettings
    fields_of_errors = {
        "unknown_user": ("users",),
        "repeated_user": ("users",),
        "no_user": ("users",),
    }
    tables = {
        "shares": Table(
            gettext_lazy("How often people switch, and leave"),
            {
                "name": Text(gettext_lazy("What people do"), labels=SHARES),
                "share": Estimate(gettext_lazy("Share")),
            },
            note=lambda result: _(
                "P(switch) is of those who stayed: who left decided nothing about the product."
            ),
            rows=list_shares,
        ),
        "users": Table(
            gettext_lazy("How far simulated users' rules are from what people did"),
            {
                "user": Text(gettext_lazy("User")),
                "brier": Value(gettext_lazy("Squared error"), best="is_truest"),
                "gain": Estimate(gettext_lazy("smaller than the first's by")),
                "p_adjusted": PValue(gettext_lazy("p, Holm")),
            },
            note=_explain_users,
            rows=list_users,
        ),
        "model": Table(
            gettext_lazy("What decides whether people switch, in logits"),
            {
                "name": Text(gettext_lazy("Term")),
                "value": Estimate(gettext_lazy("Estimate")),
                "p": PValue(gettext_lazy("p"), reason="reason", is_optional=True),
            },
            note=lambda result: _(
                "The article has people switch after a loss (a coefficient above 0), the program "
                "released with it after a gain (below 0). A deviation of 0 is the least that there "
                "can be: so many answers show no difference beyond chance there."
            ),
            rows=list_terms,
        ),
    }

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        try:
            users = [named_user(name).name for name in settings["users"]]
        except ValueError as error:
            raise DialoguesUnfit(f"{error}.", code="unknown_user") from None
        if not users:
            raise DialoguesUnfit(_("Name at least one user."), code="no_user")
        if twice := next((user for user in users if users.count(user) > 1), ""):
            raise DialoguesUnfit(
                _("{user} is named twice.").format(user=twice), code="repeated_user"
            )

    def compute(self, given: Given[Study]) -> Computed:
        study, names = given.subject, given.settings["users"]
        decisions = decisions_of(study)
        users = [named_user(name) for name in names]
        return Computed(
            record=switching_record(study, decisions, users, seed=given.settings["seed"]),
            facts={
                "n_answers": len(decisions),
                "n_annotators": int(decisions["worker"].nunique()),
                "n_targets": int(decisions["target"].nunique()),
                "users": names,
                "judgments_version": study.judgments_version,
            },
            seed=given.settings["seed"],
        )

    def answer(self, result: Result) -> str:
        record = result.record
        loss, gain = record["p_switch_after_loss"], record["p_switch_after_gain"]
        code = "probabilities"
        text = _("{who} switch after a loss with a probability of {loss}, after a gain of {gain}.")
        if loss["value"] is None and gain["value"] is None:
            code = "unknown"
            text = _("How often {raters} switch cannot be said: {reason}.")
        elif gain["value"] is None:
            code = "after_loss"
            text = _("{who} switch after a loss with a probability of {loss}.")
        elif loss["value"] is None:
            code = "after_gain"
            text = _("{who} switch after a gain with a probability of {gain}.")
        assert isinstance(result.subject, Study)
        raters = raters_of(result.subject)
        return sentence(
            code,
            text,
            who=raters.subject,
            raters=raters.named,
            loss=format_estimate(loss["value"], *limits_of(loss)),
            gain=format_estimate(gain["value"], *limits_of(gain)),
            reason=record["reason"] or "",
        )

    def details(self, result: Result) -> Iterator[str]:
        record = result.record
        shares = [record[key] for key in KEYS.values()]
        if record["reason"] and any(one["value"] is not None for one in shares):
            text = _(
                "These are shares of decisions, with intervals over workers. The model is "
                "undefined: {reason}."
            )
            yield sentence("undefined_model", text, reason=record["reason"])
        counts = record["choices"]
        n = sum(counts.values())
        text = _("{n} decisions: {keep} kept the target, {switch} took another, {leave} left.")
        named = {name: f"{count:,}" for name, count in counts.items()}
        yield sentence("decisions", text, n=f"{n:,}", **named)
        if counts["leave"]:
            text = _("Probabilities of switching are of the {n} decisions in which they stayed.")
            yield sentence("stayed", text, n=f"{n - counts['leave']:,}")
        fits = [one | {"gain": one["gain"]["value"]} for one in record["users"]]
        yield from describe_truest(fits)
        yield from _describe_too_few(fits, result.facts["n_annotators"])

    def charts(self, result: Result) -> Iterator[Chart]:
        record = result.record
        shares = named_frame((str(SHARES[name]), record[key]) for name, key in KEYS.items())
        errors = named_frame(
            (one["user"], {"value": one["brier"], "ci_low": None, "ci_high": None})
            for one in record["users"]
        )
        if len(shares):
            yield Chart(
                "switching",
                _("How often people switch"),
                _("P(switch) of people after a loss and after a gain, with 95 % intervals."),
                shares,
                partial(spans_figure, shares, _("P(switch)")),
                values_in_words(shares),
            )
        if len(errors):
            yield Chart(
                "errors",
                _("How far simulated users are from people"),
                _("The mean squared error of each user's rule; less is truer."),
                errors,
                partial(spans_figure, errors, _("Mean squared error")),
                values_in_words(errors),
            )

    def list_estimates(self, record: Record) -> Iterator[Row]:
        for name, n in record["choices"].items():
            yield estimate("choice", name, n)
        for one in list_shares(record):
            yield estimate("share", one["name"], one["value"], limits_of(one), reason=one["reason"])
        reason = record["reason"]
        for one in record["coefficients"]:
            yield estimate(
                "coefficient", one["name"], one["value"], limits_of(one), p=one["p"], reason=reason
            )
        for name, value in record["deviations"].items():
            yield estimate("deviation", name, value, reason=reason)
        for one in record["users"]:
            yield estimate("fit", "brier", one["brier"], user=one["user"])
            gain, tests = one["gain"], {name: one[name] for name in ("user", "p", "p_adjusted")}
            yield estimate(
                "fit", "gain", gain["value"], limits_of(gain), reason=gain["reason"], **tests
            )


def _describe_too_few(fits: list[Row], n_workers: int) -> Iterator[str]:
    """With n workers there are 2^n sign flips, so that few workers can never show a difference."""
    n_tests = sum(row["p"] is not None for row in fits)
    least = min(1.0, n_tests * 2.0 / 2.0 ** min(n_workers, 60))
    if n_tests and least >= SIGNIFICANT:
        text = ngettext(
            "No answers of {n} worker could show who is truer: p is never below {p}.",
            "No answers of {n} workers could show who is truer: p is never below {p}.",
            n_workers,
        )
        yield sentence("too_few_workers", text, n=n_workers, p=f"{least:.3f}")
