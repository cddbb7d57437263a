from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import format_estimate, format_number
from results.kinds import (
    Chart,
    Chosen,
    Computed,
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
from results.settings import Inputs
from retrieval.charts import means_chart
from retrieval.evaluated_runs import SIGNIFICANT, few_runs_sentence
from retrieval.exceptions import RunsUnfit
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.result_kinds.base import (
    QRELS,
    RUNS,
    Kind,
    MachineSettings,
    RunsKind,
    find_measure,
    settings_of,
)
from retrieval.reuse.machine import NO_SUM, compare_machine
from retrieval.stored_files import opened_files

COMPARE_MACHINE = "compare_collection_machine"
RUN, MEASURE = Text(gettext_lazy("Run")), Text(gettext_lazy("Measure"))
PARTS = {
    "machine": (gettext_lazy("machine"), "machine_mean"),
    "people": (gettext_lazy("people"), "people_mean"),
    "calibrated": (gettext_lazy("calibrated"), "calibrated"),
}


def _select_estimates(result: Result) -> list[Row]:
    measure = find_measure(result, "estimates")
    return [one for one in result.record["estimates"] if one["measure"] == measure]


@register_kind
class MachineKind(RunsKind):
    name = ResultType.MACHINE.value
    title = gettext_lazy("A machine's labels")
    job = COMPARE_MACHINE
    job_label = gettext_lazy("Comparing a machine")
    form = 3
    settings = MachineSettings
    inputs = {
        "qrels": replace(QRELS, stored_as="people"),
        "machine": Inputs(label=gettext_lazy("Qrels by a machine"), stored_as="machine"),
        "runs": RUNS,
        "sharing": Inputs(
            label=gettext_lazy("Runs whose systems share its model"),
            several=True,
            is_required=False,
            is_subset=True,
            stored_as="sharing",
        ),
    }
    tables = {
        "machine_and_people": Table(
            gettext_lazy("Means by machine and by people"),
            {
                "run": RUN,
                "measure": MEASURE,
                "machine_mean": Estimate(
                    gettext_lazy("Machine"),
                    digits=4,
                    low="machine_ci_low",
                    high="machine_ci_high",
                    reason="",
                ),
                "people_mean": Estimate(
                    gettext_lazy("People"),
                    digits=4,
                    low="people_ci_low",
                    high="people_ci_high",
                    reason="",
                ),
                "gap": Estimate(
                    gettext_lazy("Machine less people"),
                    digits=4,
                    low="gap_ci_low",
                    high="gap_ci_high",
                    reason="",
                ),
                "calibrated": Estimate(
                    gettext_lazy("Calibrated"),
                    digits=4,
                    low="calibrated_ci_low",
                    high="calibrated_ci_high",
                ),
                "effective_n": Value(gettext_lazy("Worth"), digits=1),
                "lambda": Value(gettext_lazy("Weight (lambda)"), digits=2),
            },
            finding=lambda rows, result: _("machine {machine}, people {people}").format(
                machine=result.record["machine"], people=result.record["qrels"]
            ),
            note=lambda result: _(
                "Worth: of how many topics judged by people the calibrated mean is worth. Weight: "
                "of the machine's labels."
            ),
            rows=lambda record: record["estimates"],
        ),
        "model_bias": Table(
            gettext_lazy("Runs that share the machine's model"),
            {
                "measure": MEASURE,
                "gap_sharing": Value(gettext_lazy("Too high by"), digits=4),
                "gap_others": Value(gettext_lazy("Others by"), digits=4),
                "difference": Estimate(gettext_lazy("Difference"), digits=4),
                "p": PValue(gettext_lazy("p")),
                "tau": Value(gettext_lazy("tau-b")),
                "tau_without": Value(gettext_lazy("tau-b without them")),
            },
            finding=lambda rows, result: ", ".join(result.record["sharing"]),
            rows=lambda record: record["biases"],
        ),
    }

    def fits(self, name: str, file: CollectionFile) -> bool:
        if name in ("qrels", "machine"):
            is_machine = file.made_by == CollectionFile.MadeBy.MACHINE
            return file.kind == Kind.QRELS and is_machine == (name == "machine")
        return super().fits(name, file)

    def explain_missing(self, offered: Chosen) -> str:
        if all(offered[name] for name in ("runs", "qrels", "machine")):
            return ""
        text = _(
            "This needs runs, qrels by people of a sample, and qrels that say they are by a "
            "machine: open such a file by its name on Runs and qrels, and say so at “Judged by”."
        )
        return sentence("machine_needs", text)

    def check_request(self, chosen: Chosen, settings: Mapping[str, Any]) -> None:
        if chosen["machine"] == chosen["qrels"]:
            raise RunsUnfit(_("Choose people's qrels, and a machine's."))
        if not chosen["runs"]:
            raise RunsUnfit(_("Choose at least one run."))

    def compute(self, given: Given[Collection]) -> Computed:
        with opened_files(given.inputs) as (runs, qrels):
            compared = compare_machine(
                runs,
                qrels[given.settings["people"]],
                qrels[given.settings["machine"]],
                given.settings.get("sharing", []),
                settings_of(given.settings),
                sample=given.settings.get("sample") or None,
                progress=given.progress(_("run")),
            )
        return Computed(
            record=compared.record(),
            facts={"n_topics": compared.n_topics_both},
            notes=compared.notes,
            seed=given.settings.get("seed", 0),
        )

    def answer(self, result: Result) -> str:
        measure = find_measure(result, "estimates")
        gaps = [one for one in _select_estimates(result) if one["gap_ci_low"] is not None]
        if not gaps:
            text = _("How far the machine's {measure} is from people's is not known: {reason}.")
            return CodedText(
                text.format(measure=measure, reason=_explain_gap(result)), code="gap_unknown"
            )
        if all(one["gap_ci_low"] > 0 for one in gaps):
            return sentence(
                "higher",
                _("The machine's {measure} is higher than people's for every run."),
                measure=measure,
            )
        if all(one["gap_ci_high"] < 0 for one in gaps):
            return sentence(
                "lower",
                _("The machine's {measure} is lower than people's for every run."),
                measure=measure,
            )
        text = _(
            "The machine's {measure} is neither higher than people's for every run nor lower for "
            "every run."
        )
        return sentence("mixed", text, measure=measure)

    def details(self, result: Result) -> Iterator[str]:
        yield from _suggest_remedy(result)
        record = result.record
        yield CodedText(
            _("People judged {people} topics, the machine {machine}; both judged {both}.").format(
                people=f"{record['n_topics_people']:,}",
                machine=f"{record['n_topics_machine']:,}",
                both=f"{record['n_topics_both']:,}",
            ),
            code="topics_judged",
        )
        yield CodedText(
            _(
                "Calibrated means are what people would say of all topics, by the machine's labels "
                "and the sample of people's; the two are never merged."
            ),
            code="calibrated",
        )
        yield from _describe_bias(result)

    def charts(self, result: Result) -> list[Chart]:
        estimates = _select_estimates(result)
        rows = []
        for part, mean in PARTS.values():
            prefix = mean.removesuffix("_mean")
            for rank, one in enumerate(_sort_by_mean(estimates, mean), 1):
                limits = one.get(f"{prefix}_ci_low"), one.get(f"{prefix}_ci_high")
                rows.append((one["run"], str(part), rank, one.get(mean), *limits))
        return means_chart(
            "means", _("The runs by machine and by people"), find_measure(result, "estimates"), rows
        )


def _explain_gap(result: Result) -> str:
    if reason := next((one["reason"] for one in _select_estimates(result) if one["reason"]), ""):
        return str(reason)
    n = result.record["n_topics_both"]
    return ngettext("both judged {n} topic", "both judged {n} topics", n).format(n=f"{n:,}")


def _suggest_remedy(result: Result) -> Iterator[str]:
    if any(NO_SUM in (one["reason"] or "") for one in _select_estimates(result)):
        yield CodedText(
            _(
                "{measure} depends on all documents of a topic. Where people judged whole topics, "
                "choose so under “What was drawn for people”; of single documents, choose a "
                "measure such as P@10."
            ).format(measure=find_measure(result, "estimates")),
            code="whole_topics_needed",
        )


def _describe_bias(result: Result) -> Iterator[str]:
    measure = find_measure(result, "estimates")
    one = next((each for each in result.record["biases"] if each["measure"] == measure), None)
    if one is None or one["difference"] is None:
        why = one["reason"] if one and one["reason"] else ""
        if not result.settings.get("sharing"):
            why = _("no run is named as sharing it")
        text = _("Whether it favours systems of its own model is not known{why}.")
        yield CodedText(text.format(why=f": {why}" if why else ""), code="bias_unknown")
        return
    favours = one["p"] is not None and one["p"] < SIGNIFICANT
    if favours and one["difference"] > 0:
        code, text = (
            "bias_shown",
            _("It rates runs of its own model {value} higher than others, beside people."),
        )
    elif favours:
        code, text = (
            "bias_opposite",
            _(
                "It does not favour runs of its own model: beside people it rates them lower than "
                "others, difference {value}."
            ),
        )
    else:
        code, text = (
            "bias_not_shown",
            _("That it rates runs of its own model higher is not shown: difference {value}."),
        )
    yield CodedText(
        text.format(value=format_estimate(one["difference"], one["ci_low"], one["ci_high"])),
        code=code,
    )
    if one["tau"] is not None:
        yield CodedText(
            _("The runs' order by people and by the machine: tau-b {tau}.").format(
                tau=format_number(one["tau"])
            ),
            code="order",
        )
        if few := few_runs_sentence(len({each["run"] for each in result.record["estimates"]})):
            yield few


def _sort_by_mean(estimates: Sequence[Row], name: str) -> list[Row]:
    return sorted(
        estimates, key=lambda one: (one.get(name) is None, -(one.get(name) or 0), one["run"])
    )
