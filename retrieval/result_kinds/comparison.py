from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import format_estimate, format_number, join_names
from results.kinds import (
    Chart,
    Chosen,
    Computed,
    Count,
    Estimate,
    Given,
    PValue,
    Record,
    Row,
    Table,
    Text,
    Value,
    register_kind,
    sentence,
)
from results.models import Result
from results.settings import Inputs
from retrieval.charts import MOST_DRAWN, means_chart
from retrieval.evaluated_runs import few_runs_sentence
from retrieval.exceptions import RunsUnfit
from retrieval.models import Collection, CollectionFile, FileTopic, ResultType
from retrieval.rankings import ComparisonSettings, compare_qrels
from retrieval.result_kinds.base import (
    RUNS,
    ComparisonSettings as QrelsSettings,
    Kind,
    RunsKind,
    find_measure,
    settings_of,
)
from retrieval.stored_files import assessors_grades, opened_files

COMPARE = "compare_collection_qrels"
FEWEST = 2
MOST_SWAPS = 3
MOST_SENTENCES = 6
CHOSEN = ("rbo_p", "rbo_ties", "n_resamples", "n_draws")
MEASURE, RUN = Text(gettext_lazy("Measure")), Text(gettext_lazy("Run"))
QRELS, TOPICS = gettext_lazy("Qrels"), Count(gettext_lazy("Topics"))
PAIR = {"measure": MEASURE, "first": Text(QRELS), "second": Text(gettext_lazy("Against"))}
CHANGES = {
    "kept": gettext_lazy("significant under both"),
    "lost": gettext_lazy("significance lost"),
    "gained": gettext_lazy("significance gained"),
    "reversed": gettext_lazy("significant the other way"),
    "neither": gettext_lazy("significant under neither"),
}
KINDS = {
    "given": gettext_lazy("people"),
    "machine": gettext_lazy("a machine"),
    "assessor": gettext_lazy("an assessor"),
    "derived": gettext_lazy("derived"),
}


def comparison_settings(
    rules: Mapping[str, Any], files: Sequence[CollectionFile]
) -> ComparisonSettings:
    machines = [
        file.name
        for file in files
        if file.kind == Kind.QRELS and file.made_by == CollectionFile.MadeBy.MACHINE
    ]
    return ComparisonSettings(
        evaluation=settings_of(rules),
        truth=rules.get("truth") or None,
        top=rules.get("top") or None,
        machines=tuple(machines),
        **{name: rules[name] for name in CHOSEN if name in rules},
        judgments={one.name: one.judgments for one in files if one.kind == Kind.QRELS},
    )


def _require_common_topic(files: Sequence[CollectionFile]) -> None:
    """Refuse what would fail as a job; ends at the first topic that all files name."""
    first, *others = sorted(files, key=lambda file: file.n_topics)
    topics = FileTopic.objects.filter(file=first).order_by()
    for file in others:
        topics = topics.filter(Exists(FileTopic.objects.filter(file=file, topic=OuterRef("topic"))))
    if not topics.exists():
        raise RunsUnfit(_("The qrels have no topic in common."), code="no_common_topic")


def _describe_qrels(record: Record, files: Sequence[CollectionFile]) -> list[Row]:
    by_name = {file.name: file for file in files if file.kind == Kind.QRELS}
    rows = []
    for one in record["qrels"]:
        file = by_name.get(one["name"])
        if one["kind"] == "assessor":
            one = one | {"judgments": one["name"], "assessor": one["name"]}
        elif one["kind"] != "derived" and file is not None:
            described = {name: getattr(file, name) for name in ("judgments", "assessor", "rule")}
            one = one | described
        rows.append(one)
    return rows


def _list_similarities(record: Record) -> list[Row]:
    return [
        pair | {"rbo_min": pair["rbo"]["min"], "rbo_residual": pair["rbo"]["residual"]}
        for pair in record["pairs"]
    ]


def _list_significance(record: Record) -> list[Row]:
    return [pair | pair["significance"] for pair in record["pairs"]]


def _list_changed(record: Record) -> list[Row]:
    rows = []
    for pair in record["pairs"]:
        of_pair = {name: pair[name] for name in PAIR}
        changed = {(one["a"], one["b"]): one for one in [*pair["swapped"], *pair["changed"]]}
        rows += [of_pair | one for one in changed.values()]
    return rows


def _list_ranked(record: Record) -> list[Row]:
    return [
        {"qrels": ranking["qrels"], "measure": ranking["measure"], **system}
        for ranking in record["rankings"]
        for system in ranking["systems"]
    ]


def _list_assessors(record: Record) -> list[Row]:
    return [record["assessors"]] if record["assessors"] else []


def _list_designs(record: Record) -> list[Row]:
    rows = []
    for design in record["random_assessor"]:
        swaps = sorted(design["swaps"], key=lambda swap: -swap["share"])[:MOST_SWAPS]
        often = ", ".join(f"{one['a']} > {one['b']} {one['share']:.0%}" for one in swaps)
        rows.append(design | design["tau_b"] | {"often_swapped": often})
    return rows


def _find_least_tau(rows: Sequence[Row], result: Result) -> str:
    taus = [one["tau_b"]["value"] for one in rows if one["tau_b"]["value"] is not None]
    return _("tau-b {least} or more").format(least=format_number(min(taus), 2)) if taus else ""


def _count_kept(rows: Sequence[Row], result: Result) -> str:
    changes = [pair["significance"] for pair in _select_pairs(result)]
    n_kept = sum(one["kept"] for one in changes)
    n_decided = n_kept + sum(one["lost"] + one["reversed"] for one in changes)
    return _("{kept} of {n} decided differences kept").format(kept=n_kept, n=n_decided)


def _find_kappas(rows: Sequence[Row], result: Result) -> str:
    known = [one["kappa"]["value"] for one in rows if one["kappa"]["value"] is not None]
    if not known:
        return ""
    least, most = format_number(min(known), 2), format_number(max(known), 2)
    return _("kappa from {least} to {most}").format(least=least, most=most)


def _explain_similarity(result: Result) -> str:
    settings = result.settings
    return _(
        "1 is the same order; {level} intervals are for new topics. tau_AP and RBO weigh the "
        "top most: RBO with p = {p}, ties by variant {ties}. With few runs tau-b is coarse."
    ).format(
        level=result.level,
        p=f"{settings.get('rbo_p', ComparisonSettings.rbo_p):g}",
        ties=settings.get("rbo_ties", ComparisonSettings.rbo_ties),
    )


def _explain_overlap(result: Result) -> str:
    return _(
        "Overlap: relevant to both, of those relevant to either. {level} intervals are for new "
        "topics."
    ).format(level=result.level)


def _list_warnings(result: Result) -> str:
    return "; ".join(one for row in _list_assessors(result.record) for one in row["warnings"])


@register_kind
class ComparisonKind(RunsKind):
    """Runs ranked under several qrels; sentences are about the first primary measure."""

    name = ResultType.COMPARISON.value
    title = gettext_lazy("How far to trust it")
    job = COMPARE
    job_label = gettext_lazy("Comparing qrels")
    form = 7
    settings = QrelsSettings
    inputs = {
        "qrels": Inputs(
            label=gettext_lazy("Qrels to compare"),
            several=True,
            begins_with_all=True,
            is_required=False,
        ),
        "assessors": Inputs(
            label=gettext_lazy("Several assessors' grades"),
            help=gettext_lazy(
                "How far any two of them agree, and what one of them alone would have said of the "
                "runs; other qrels may be left out."
            ),
            is_required=False,
        ),
        "runs": RUNS,
    }
    tables = {
        "rankings_compared": Table(
            gettext_lazy("How alike the rankings are"),
            {
                **PAIR,
                "tau_b": Estimate(gettext_lazy("tau-b")),
                "tau_ap": Estimate(gettext_lazy("tau_AP")),
                "rbo": Estimate(gettext_lazy("RBO")),
                "rbo_min": Value(gettext_lazy("RBO, least")),
                "rbo_residual": Value(gettext_lazy("RBO, residual")),
                "top": Estimate(gettext_lazy("tau-b of the best"), hide_empty=True),
            },
            finding=_find_least_tau,
            note=_explain_similarity,
            rows=_list_similarities,
        ),
        "significance": Table(
            gettext_lazy("What stays significant"),
            {
                **PAIR,
                "n_pairs": Count(gettext_lazy("Pairs")),
                "n_swapped": Count(gettext_lazy("Swapped")),
                "n_swapped_significantly": Count(gettext_lazy("decided before")),
                "kept": Count(gettext_lazy("Kept")),
                "lost": Count(gettext_lazy("Lost")),
                "gained": Count(gettext_lazy("Gained")),
                "reversed": Count(gettext_lazy("Reversed")),
                "neither": Count(gettext_lazy("Neither")),
            },
            finding=_count_kept,
            note=lambda result: _(
                "Of pairs of runs: whether p, adjusted by Holm's method, is below .05 under each."
            ),
            rows=_list_significance,
        ),
        "changed_pairs": Table(
            gettext_lazy("Pairs of runs that change"),
            {
                **PAIR,
                "a": RUN,
                "b": Text(gettext_lazy("Other run")),
                "delta_first": Value(gettext_lazy("Difference"), digits=4),
                "delta_second": Value(gettext_lazy("Under the other"), digits=4),
                "p_first": PValue(gettext_lazy("p")),
                "p_second": PValue(gettext_lazy("p there")),
                "change": Text(gettext_lazy("What changes"), CHANGES),
            },
            rows=_list_changed,
        ),
        "rankings": Table(
            gettext_lazy("Rankings"),
            {
                "measure": MEASURE,
                "qrels": Text(QRELS),
                "rank": Count(gettext_lazy("Rank")),
                "run": RUN,
                "mean": Estimate(gettext_lazy("Mean"), digits=4),
                "n_topics": TOPICS,
            },
            finding=lambda rows, result: _("under {n} qrels").format(n=len(result.record["qrels"])),
            rows=_list_ranked,
        ),
        "labels": Table(
            gettext_lazy("How far the labels agree"),
            {
                "first": PAIR["first"],
                "second": PAIR["second"],
                "n_topics": TOPICS,
                "n_documents": Count(gettext_lazy("Documents")),
                "n_both_relevant": Count(gettext_lazy("Both relevant")),
                "overlap": Estimate(gettext_lazy("Overlap")),
                "kappa": Estimate(gettext_lazy("Kappa")),
            },
            finding=_find_kappas,
            note=_explain_overlap,
        ),
        "any_two_assessors": Table(
            gettext_lazy("Any two assessors of a document"),
            {
                "n_assessors": Count(gettext_lazy("Assessors")),
                "n_documents": Count(gettext_lazy("Documents")),
                "n_pairs_of_labels": Count(gettext_lazy("Pairs of grades")),
                "overlap": Estimate(gettext_lazy("Overlap")),
                "alpha": Estimate(gettext_lazy("Krippendorff's alpha")),
            },
            finding=lambda rows, result: "",
            note=_list_warnings,
            rows=_list_assessors,
        ),
        "random_assessor": Table(
            gettext_lazy("One assessor a topic at random"),
            {
                "measure": MEASURE,
                "merged": Text(gettext_lazy("Merged")),
                "n_draws": Count(gettext_lazy("Draws")),
                "n_topics_with_choice": Count(gettext_lazy("Topics with a choice")),
                "mean": Value(gettext_lazy("tau-b, mean")),
                "q05": Value(gettext_lazy("5 %")),
                "median": Value(gettext_lazy("Median")),
                "q95": Value(gettext_lazy("95 %")),
                "often_swapped": Text(gettext_lazy("Often swap")),
            },
            finding=lambda rows, result: _("as if each topic had had one of them"),
            rows=_list_designs,
        ),
        "crossed_means": Table(
            gettext_lazy("Means over topics and assessors"),
            {
                "measure": MEASURE,
                "run": RUN,
                "mean": Estimate(gettext_lazy("Mean"), digits=4),
                "bootstrap_low": Value(gettext_lazy("Bootstrap, low"), digits=4),
                "bootstrap_high": Value(gettext_lazy("Bootstrap, high"), digits=4),
                "n_topics": TOPICS,
                "n_assessors": Count(gettext_lazy("Assessors")),
            },
            finding=lambda rows, result: _("both taken for samples"),
            rows=lambda record: record["crossed"],
        ),
        "qrels": Table(
            gettext_lazy("The qrels"),
            {
                "name": Text(QRELS),
                "kind": Text(gettext_lazy("Kind"), KINDS),
                "n_topics": TOPICS,
                "n_topics_left_out": Count(gettext_lazy("Left out")),
                "n_judged": Count(gettext_lazy("Judged")),
                "n_relevant": Count(gettext_lazy("Relevant")),
                "n_unjudged": Count(gettext_lazy("Pooled, not judged")),
                "rule": Text(gettext_lazy("Rule")),
            },
        ),
    }

    def fits(self, name: str, file: CollectionFile) -> bool:
        return file.kind == Kind.ASSESSORS if name == "assessors" else super().fits(name, file)

    def explain_missing(self, offered: Chosen) -> str:
        n_sets = len(offered["qrels"])
        if len(offered["runs"]) >= FEWEST and (n_sets >= FEWEST or offered["assessors"]):
            return ""
        text = _(
            "A comparison needs two runs and two qrels, of two assessors, rounds or rules, or one "
            "file with several assessors' grades."
        )
        return sentence("comparison_needs", text)

    def check_request(self, chosen: Chosen, settings: Mapping[str, Any]) -> None:
        sets = [*chosen["qrels"], *chosen["assessors"]]
        if len(chosen["qrels"]) < FEWEST and not chosen["assessors"]:
            raise RunsUnfit(
                _("Choose two qrels or more: what is asked is how far they agree."),
                code="too_few_qrels",
            )
        if len(chosen["runs"]) < FEWEST:
            raise RunsUnfit(_("Choose two runs or more: one has no ranking."), code="too_few_runs")
        _require_common_topic(sets)
        comparison_settings(settings, chosen["qrels"])

    def describe_inputs(self, subject: Collection, inputs: Sequence[CollectionFile]) -> list[Any]:
        # A file that is described anew, as another assessor's, is compared anew.
        described = [
            [file.name, file.judgments, file.assessor] for file in inputs if file.kind == Kind.QRELS
        ]
        return [*super().describe_inputs(subject, inputs), described]

    def compute(self, given: Given[Collection]) -> Computed:
        with opened_files(given.inputs) as (runs, qrels):
            chosen = comparison_settings(given.settings, given.inputs)
            compared = compare_qrels(
                runs,
                qrels,
                chosen,
                assessors=assessors_grades(given.inputs),
                progress=given.progress(_("qrels")),
            )
        record = compared.record()
        return Computed(
            record=record | {"qrels": _describe_qrels(record, given.inputs)},
            facts={"n_topics": compared.n_topics},
            notes=compared.notes,
            seed=chosen.evaluation.seed,
        )

    def answer(self, result: Result) -> str:
        names = list_compared(result)
        quoted = join_names([_("“{name}”").format(name=name) for name in names])
        if len(names) > MOST_SENTENCES:
            quoted = _("{n} qrels").format(n=len(names))
        values = {"measure": find_measure(result, "pairs"), "names": quoted}
        pairs = _select_pairs(result)
        if any(pair["n_swapped_significantly"] for pair in pairs):
            return sentence(
                "decided_order_changes",
                _("Who judged changes which run is better by {measure}."),
                **values,
            )
        if any(pair["n_swapped"] for pair in pairs):
            text = _(
                "The order of the runs by {measure} changes with {names} only where no test "
                "decides which run is better."
            )
            return sentence("undecided_order_changes", text, **values)
        return sentence(
            "same_order", _("The runs come in the same order by {measure} under {names}."), **values
        )

    def details(self, result: Result) -> Iterator[str]:
        pairs = sorted(_select_pairs(result), key=lambda pair: -pair["n_swapped_significantly"])
        yield from map(_describe_pair, pairs[:MOST_SENTENCES])
        if len(pairs) > MOST_SENTENCES:
            yield sentence("more_pairs", _("All pairs of qrels are in the tables below."))
        if few := few_runs_sentence(count_runs(result)):
            yield few
        yield from map(_describe_assessors, _list_assessors(result.record))
        machines = sorted(one["name"] for one in result.record["qrels"] if one["kind"] == "machine")
        if machines:
            text = _(
                "{names}: a machine judged. High agreement over all runs does not say that the "
                "best are told apart, nor that runs of its own model are not favoured."
            )
            names = join_names([_("“{name}”").format(name=one) for one in machines])
            yield sentence("machine_judged", text, names=names)

    def charts(self, result: Result) -> list[Chart]:
        measure, compared = find_measure(result, "pairs"), list_compared(result)[:MOST_DRAWN]
        rows = [
            tuple(one[name] for name in ("run", "qrels", "rank", "mean", "ci_low", "ci_high"))
            for one in _list_ranked(result.record)
            if one["measure"] == measure and one["qrels"] in compared
        ]
        return means_chart("ranks", _("The runs under each of the qrels"), measure, rows)


def list_compared(result: Result) -> list[str]:
    """The qrels that were handed in, or all if no two of them rank the runs."""
    sets = result.record["qrels"]
    handed_in = [one["name"] for one in sets if one["kind"] != "derived"]
    return handed_in if len(handed_in) > 1 else [one["name"] for one in sets]


def count_runs(result: Result) -> int:
    uses = ("tau_b", "tau_ap", "rbo", "top")
    pairs = result.record["pairs"]
    return max(int(pair[use]["n_systems"]) for pair in pairs for use in uses if pair[use])


def _select_pairs(result: Result) -> list[Row]:
    measure, compared = find_measure(result, "pairs"), set(list_compared(result))
    return [
        pair
        for pair in result.record["pairs"]
        if pair["measure"] == measure and {pair["first"], pair["second"]} <= compared
    ]


def _describe_pair(pair: Row) -> str:
    tau = pair["tau_b"]
    likeness = _("{first} and {second}: tau-b {tau} over {runs} runs and {topics} topics;").format(
        first=_("“{name}”").format(name=pair["first"]),
        second=_("“{name}”").format(name=pair["second"]),
        tau=_format_value(tau),
        runs=tau["n_systems"],
        topics=f"{tau['n_topics']:,}",
    )
    swaps = ngettext(
        "%(n)d of %(all)d pairs of runs swaps, %(significant)d where a test had decided.",
        "%(n)d of %(all)d pairs of runs swap, %(significant)d where a test had decided.",
        pair["n_swapped"],
    ) % {
        "n": pair["n_swapped"],
        "all": pair["n_pairs"],
        "significant": pair["n_swapped_significantly"],
    }
    parts = [likeness, swaps, _describe_decisions(pair["significance"])]
    if tau["value"] is not None and tau["ci_low"] is None and tau["reason"]:
        parts.append(_("tau-b has no interval: {reason}.").format(reason=_(tau["reason"])))
    return CodedText(" ".join(parts), code="pair")


def _describe_decisions(changes: Mapping[str, int]) -> str:
    n_decided = changes["kept"] + changes["lost"] + changes["reversed"]
    if not n_decided:
        return _("No test decided any difference under the first.")
    return ngettext(
        "Of %(n)d difference that a test decided under the first, %(kept)d is decided the same way "
        "under the second.",
        "Of %(n)d differences that a test decided under the first, %(kept)d are decided the same "
        "way under the second.",
        n_decided,
    ) % {"n": n_decided, "kept": changes["kept"]}


def _describe_assessors(one: Row) -> str:
    text = _(
        "Any two of the {n} assessors, on a document that both judged: overlap {overlap}, "
        "Krippendorff's alpha {alpha}."
    )
    overlap, alpha = _format_value(one["overlap"]), _format_value(one["alpha"])
    return sentence("any_two_assessors", text, n=one["n_assessors"], overlap=overlap, alpha=alpha)


def _format_value(one: Row) -> str:
    if one["value"] is None:
        return _("undefined")
    return format_estimate(one["value"], one["ci_low"], one["ci_high"])
