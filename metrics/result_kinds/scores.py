"""Results of metrics without human ratings: means of systems, the effect of a prompt, and agreement
of metrics, with the charts of the end-to-end chatbot benchmark (Banerjee et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import SCORES
from metrics.exceptions import NothingToValidate, NotPaired
from metrics.models import ScoringRun
from metrics.score_comparisons import (
    ALL,
    ENCODERS,
    metric_pairs,
    prompt_effects,
    scored_responses,
    system_scores,
)
from presentation.libraries import alt
from presentation.numbers import format_estimate, format_number, plain_records, plain_values
from presentation.theme import FILLING, Picture, axis_title
from results.kinds import (
    Chart,
    Computed,
    Count,
    Estimate,
    Given,
    PValue,
    Row,
    Table,
    Text,
    Value,
    register_kind,
    sentence,
)
from results.models import Result
from stats.libraries import pd

# Bars of more questions cannot be read side by side. Tables contain all questions.
MOST_QUESTIONS = 50
METRIC, SYSTEM = (
    Text(gettext_lazy("Metric")),
    Text(gettext_lazy("System"), {ALL: gettext_lazy("all")}),
)


@register_kind
class ScoresKind(StudyKind):
    name = "scores"
    page = SCORES
    title = gettext_lazy("Scores")
    form = 2
    depends_on = ("scores_version",)
    tables = {
        "prompts": Table(
            gettext_lazy("Prompts compared"),
            {
                "metric": METRIC,
                "system": SYSTEM,
                "first": Text(gettext_lazy("First prompt")),
                "mean_first": Value(gettext_lazy("Its mean")),
                "second": Text(gettext_lazy("Second prompt")),
                "mean_second": Value(gettext_lazy("Its mean")),
                "mean": Estimate(gettext_lazy("Difference (95% interval)")),
                "t_p_holm": PValue(gettext_lazy("p (t), Holm")),
                "wilcoxon_p_holm": PValue(gettext_lazy("p (Wilcoxon), Holm")),
                "n_pairs": Count(gettext_lazy("Questions")),
            },
            note=lambda result: _(
                "Variants of a metric, such as precision, enter no test and have no p."
            ),
        ),
        "systems": Table(
            gettext_lazy("Means of systems"),
            {
                "metric": METRIC,
                "system": SYSTEM,
                "condition": Text(gettext_lazy("Condition"), {ALL: gettext_lazy("all")}),
                "mean": Value(gettext_lazy("Mean")),
                "sd": Value(gettext_lazy("Standard deviation")),
                "n": Count(gettext_lazy("Scores")),
                "n_undefined": Count(gettext_lazy("Undefined")),
            },
        ),
        "signatures": Table(
            gettext_lazy("Signatures"),
            {"metric": METRIC, "signature": Text(gettext_lazy("Signature"))},
        ),
        "metrics": Table(
            gettext_lazy("Metrics compared with each other"),
            {
                "first": METRIC,
                "second": Text(gettext_lazy("Other metric")),
                "r_squared": Value(gettext_lazy("R²")),
                "n": Count(gettext_lazy("Responses")),
            },
        ),
    }

    def compute(self, given: Given[Study]) -> Computed:
        study = given.subject
        names, scores = _name_runs(study), scored_responses(study)
        if scores.empty:
            text = _("Study '{study}' has no scores. Score it, or import scores.")
            raise NothingToValidate(text.format(study=study.slug), code="no_scores")
        scores["name"] = [
            names[key] for key in zip(scores["metric"], scores["signature"], strict=True)
        ]
        conditions = [name for name in dict.fromkeys(scores["condition"]) if name]
        effects, notes = [], []
        if len(conditions) == 2:
            try:
                effects = prompt_effects(study, prompts=(conditions[0], conditions[1]))
                # Conditions are prompts only if they share questions.
                effects = effects if any(one.difference.n_pairs for one in effects) else []
            except NotPaired as refused:
                notes.append(str(refused))
        values = scores.pivot(index=["item", "candidate"], columns="name", values="value")
        record = {
            "conditions": conditions,
            "names": list(names.values()),
            "signatures": [
                {"metric": name, "signature": signature}
                for (_metric, signature), name in names.items()
            ],
            "prompts": [
                _named(names, one.record()) | {"first": conditions[0], "second": conditions[1]}
                for one in effects
            ],
            "systems": [_named(names, plain_values(one)) for one in system_scores(study)],
            "metrics": [plain_values(one) for one in metric_pairs(values, list(names.values()))],
            "responses": _responses(scores, values),
        }
        n_questions = scores["context"].nunique()
        if n_questions > MOST_QUESTIONS:
            text = _("Charts show the first {shown} of {n} questions.")
            notes.append(text.format(shown=MOST_QUESTIONS, n=f"{n_questions:,}"))
        return Computed(record=record, facts={"n_topics": n_questions}, notes=notes)

    def answer(self, result: Result) -> str:
        main = main_metric(result.record["names"])
        if effect := _find_effect(result, main):
            return _describe_effect(effect, *result.record["conditions"])
        means = [
            one
            for one in result.record["systems"]
            if one["metric"] == main and one["condition"] == ALL and one["mean"] is not None
        ]
        if not means:
            return sentence("undefined", _("No score is defined."))
        best = max(means, key=lambda one: one["mean"])
        text = _("{system} has the highest mean of {metric}: {value}.")
        return sentence(
            "highest", text, system=best["system"], metric=main, value=format_number(best["mean"])
        )

    def details(self, result: Result) -> Iterator[str]:
        if not (effect := _find_effect(result, main_metric(result.record["names"]))):
            return
        text = _("A 95% interval over {n} questions. A question counts once for all systems.")
        yield sentence("interval", text, n=effect["n_pairs"])
        tested = [
            one
            for one in result.record["prompts"]
            if one["system"] == ALL and one["t_p_holm"] is not None
        ]
        agreeing = [one for one in tested if (one["mean"] > 0) == (effect["mean"] > 0)]
        text = _("{k} of {n} tested metrics change in this direction.")
        yield sentence("metrics", text, k=len(agreeing), n=len(tested))

    def charts(self, result: Result) -> Iterator[Chart]:
        names = result.record["names"]
        rows = pd.DataFrame(result.record["responses"])
        precise = [name.removesuffix("_precision") for name in names if name.endswith("_precision")]
        clouds = [(f"{one}_recall", f"{one}_precision") for one in precise]
        clouds += combinations([name for name in names if name.split()[0] in ENCODERS], 2)
        parts = [
            (number, condition, rows[rows["condition"] == condition])
            for number, condition in enumerate(result.record["conditions"] or [""])
        ]
        for at, name in enumerate(names):
            for number, condition, part in parts:
                yield _bars(f"bars-{at}-{number}", part, name, condition)
        for at, (x, y) in enumerate(clouds):
            for number, condition, part in parts:
                if x in names:
                    yield _cloud(f"points-{at}-{number}", part, (x, y), condition)


def _name_runs(study: Study) -> dict[tuple[str, str], str]:
    """A name per metric and signature: the metric, or the signature if the metric has several."""
    runs = list(ScoringRun.objects.of(study).order_by("pk").values_list("metric", "signature"))
    metrics = [metric for metric, _signature in runs]
    return {
        (metric, signature): metric if metrics.count(metric) == 1 else f"{metric} {signature}"
        for metric, signature in runs
    }


def _named(names: Mapping[tuple[str, str], str], row: Row) -> dict[str, Any]:
    return {**row, "metric": names[row["metric"], row["signature"]]}


def _responses(scores: pd.DataFrame, values: pd.DataFrame) -> list[dict[str, Any]]:
    """A row per response to one of the first questions, with a column per metric."""
    about = scores.drop_duplicates(["item", "candidate"]).set_index(["item", "candidate"])
    # An item without a context counts as its own question.
    questions = about["context"].where(about["context"] != "", about.index.get_level_values("item"))
    about["question"] = pd.factorize(questions)[0] + 1
    about = about[about["question"] <= MOST_QUESTIONS]
    rows = about[["question", "system", "condition"]].join(values)
    return plain_records(rows.sort_values(["question", "system"]).reset_index(drop=True))


def _find_effect(result: Result, metric: str) -> Row | None:
    """The effect of the second prompt over all systems; None if it is undefined."""
    return next(
        (
            one
            for one in result.record["prompts"]
            if one["metric"] == metric and one["system"] == ALL and one["ci_low"] is not None
        ),
        None,
    )


def _describe_effect(effect: Row, first: str, second: str) -> str:
    code, text = (
        "undetermined",
        _(
            "Whether {metric} is higher with {second} or with {first} is undetermined: difference "
            "{estimate}."
        ),
    )
    if effect["ci_low"] > 0:
        code = "higher"
        text = _("{metric} is higher with {second} than with {first}: difference {estimate}.")
    elif effect["ci_high"] < 0:
        code = "lower"
        text = _("{metric} is lower with {second} than with {first}: difference {estimate}.")
    estimate = format_estimate(effect["mean"], effect["ci_low"], effect["ci_high"])
    names = {"metric": effect["metric"], "first": first, "second": second}
    return sentence(code, text, estimate=estimate, **names)


def main_metric(names: Iterable[str]) -> str:
    """The first that compares meanings, or else the first."""
    names = list(names)
    return next((name for name in names if name.split()[0] in ENCODERS), names[0])


def _titled(title: str, condition: str) -> str:
    return f"{title}, {condition}" if condition else title


def _bars(name: str, rows: pd.DataFrame, metric: str, condition: str) -> Chart:
    drawn = rows[["question", "system", metric]].rename(columns={metric: "value"})
    means = drawn.groupby("system", sort=False)["value"].mean()
    return Chart(
        name=name,
        title=_titled(_("{metric} by question").format(metric=metric), condition),
        words=_("Means: {means}.").format(
            means=", ".join(f"{system} {format_number(mean)}" for system, mean in means.items())
        ),
        frame=drawn,
        draw=partial(_draw_bars, drawn, metric),
    )


def _scale(values: pd.Series) -> alt.Scale:
    """From 0 to 1 for scores in this range, so that charts of two prompts can be compared."""
    return alt.Scale(domain=[0, 1]) if values.dropna().between(0, 1).all() else alt.Scale()


def _draw_bars(rows: pd.DataFrame, metric: str) -> Picture:
    picture: Picture = (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("question:O", title=axis_title(_("Question")), axis=alt.Axis(labelAngle=0)),
            xOffset="system:N",
            y=alt.Y("value:Q", title=axis_title(metric), scale=_scale(rows["value"])),
            color=alt.Color("system:N", title=None, legend=alt.Legend(orient="top")),
            tooltip=["question:O", "system:N", alt.Tooltip("value:Q", format=".3f")],
        )
        .properties(width="container", height=220, autosize=FILLING)
    )
    return picture


def _cloud(name: str, rows: pd.DataFrame, axes: tuple[str, str], condition: str) -> Chart:
    drawn = rows[["question", "system", *axes]].dropna()
    drawn.columns = pd.Index(["question", "system", "x", "y"])
    r_squared = drawn["x"].corr(drawn["y"]) ** 2 if len(drawn) > 2 else None
    return Chart(
        name=name,
        title=_titled(_("{y} against {x}").format(x=axes[0], y=axes[1]), condition),
        words=_("R² {value}, over {n} responses.").format(
            value=format_number(r_squared), n=f"{len(drawn):,}"
        ),
        frame=drawn,
        draw=partial(_draw_cloud, drawn, axes),
    )


def _draw_cloud(rows: pd.DataFrame, axes: tuple[str, str]) -> Picture:
    x, y = (
        encoding(f"{field}:Q", title=axis_title(title), scale=_scale(rows[field]))
        for encoding, field, title in ((alt.X, "x", axes[0]), (alt.Y, "y", axes[1]))
    )
    picture: Picture = (
        alt.Chart(rows)
        .mark_point(filled=True, size=60)
        .encode(
            x=x,
            y=y,
            color=alt.Color("system:N", title=None, legend=alt.Legend(orient="top")),
            shape=alt.Shape("system:N", title=None),
            tooltip=["question:O", "system:N", "x:Q", "y:Q"],
        )
        .properties(width="container", height=300, autosize=FILLING)
    )
    return picture
