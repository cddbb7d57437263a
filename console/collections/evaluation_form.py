"""What an evaluation asks for: qrels, runs, measures, and how they are treated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from error_codes import CodedText
from results.models import Result
from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.result_kinds.evaluation import WEIGHTS, settings_of

COMMON = (
    "nDCG@10",
    "RR@10",
    "Success@1",
    "P@5",
    "P@10",
    "R@100",
    "AP",
    "Bpref",
    "RBP",
    "Judged@10",
)
CONFIDENCE = 0.95
SAMPLES = 20
"""As many as are offered, the newest first."""
# Between names, not inside of one's brackets.
SEPARATOR = re.compile(r"[;\n]|,(?![^()]*\))")


class EvaluationForm(forms.Form):
    """Runs against qrels, as `evaluate_runs` takes them."""

    qrels = forms.ChoiceField(label=gettext_lazy("Qrels"))
    runs = forms.MultipleChoiceField(
        label=gettext_lazy("Runs"), widget=forms.CheckboxSelectMultiple
    )
    measures = forms.MultipleChoiceField(
        label=gettext_lazy("Measures"),
        required=False,
        choices=[(name, name) for name in COMMON],
        widget=forms.CheckboxSelectMultiple,
    )
    others = forms.CharField(
        label=gettext_lazy("Other measures"),
        required=False,
        max_length=1000,
        help_text=gettext_lazy(
            "With commas between: nDCG(dcg='exp-log2')@10, P(rel=2)@5, infAP, RBP(p=0.9), "
            "nDCG(judged_only=True)@10; trec_eval's names too."
        ),
    )
    primary = forms.CharField(
        label=gettext_lazy("Primary measures"),
        required=False,
        max_length=1000,
        initial="nDCG@10",
        help_text=gettext_lazy(
            "Their tests are corrected together, and the answer is of the first. Empty: all."
        ),
    )
    missing = forms.ChoiceField(
        label=gettext_lazy("Topics that a run lacks"),
        choices=[
            ("common", gettext_lazy("compare on topics that both have")),
            ("zero", gettext_lazy("count 0 for whoever lacks them")),
        ],
    )
    ties = forms.ChoiceField(
        label=gettext_lazy("Documents of the same score"),
        required=False,
        choices=[
            ("falling", gettext_lazy("by name, last name first, as trec_eval")),
            ("rising", gettext_lazy("by name, first name first")),
        ],
    )
    leave_out_without_relevant = forms.BooleanField(
        label=gettext_lazy("Leave topics out that have no relevant document, for all runs"),
        required=False,
    )
    double = forms.BooleanField(
        label=gettext_lazy("Compare scores as 64-bit floats, as trec_eval 10 does"), required=False
    )
    weights = forms.ChoiceField(
        label=gettext_lazy("Topics stand for"),
        required=False,
        help_text=gettext_lazy(
            "Of a sample that drew targets with unequal probabilities: means and differences for "
            "all its targets too, each topic weighed by 1 / probability. Tests and groups are of "
            "the topics as they are."
        ),
    )
    test = forms.ChoiceField(
        label=gettext_lazy("Test"),
        required=False,
        choices=[
            ("", gettext_lazy("randomisation; McNemar's for Success")),
            ("randomisation", gettext_lazy("randomisation")),
            ("t", gettext_lazy("paired t")),
            ("mcnemar", gettext_lazy("McNemar's exact test, for Success alone")),
        ],
    )
    confidence = forms.FloatField(
        label=gettext_lazy("Confidence of the intervals"),
        required=False,
        min_value=0.5,
        max_value=0.999,
        initial=CONFIDENCE,
        help_text=gettext_lazy("Between 0.5 and 0.999. Significance stays at .05."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of random draws"),
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        initial=0,
    )

    DEFAULT_MEASURES: tuple[str, ...] = ("nDCG@10", "RR@10", "Judged@10")
    ADVANCED: tuple[str, ...] = (
        *("ties", "leave_out_without_relevant", "double", "test", "confidence", "seed"),
    )
    """Whose defaults serve, folded away."""
    HAS_WEIGHTS = True

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.usable = usable_files(collection)
        for name, kind in (("qrels", CollectionFile.Kind.QRELS), ("runs", CollectionFile.Kind.RUN)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices_of(self.usable, kind)
        self.fields["measures"].initial = list(self.DEFAULT_MEASURES)
        self.fields["runs"].initial = [key for key, _name in choices_of(self.usable, "run")]
        self._offer_weights(collection)

    def _offer_weights(self, collection: Collection) -> None:
        """The samples whose topics may be weighed; no field without any, or of another page."""
        kind = ResultType.TARGETS
        samples = Result.objects.of(collection, kind)[:SAMPLES] if self.HAS_WEIGHTS else []
        offered = [(str(one.pk), weights_title(one)) for one in samples]
        if not offered:
            del self.fields["weights"]
            return
        field = self.fields["weights"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", _("themselves alone")), *offered]

    def begin_with_result(self, version: Result) -> None:
        """Offer the choices of a result, and the runs and qrels that came since."""
        files = [key for key in version.files.values_list("file", flat=True) if key is not None]
        self.begin_with({"settings": version.settings, "inputs": files})
        for name, kind in (("runs", CollectionFile.Kind.RUN), ("qrels", CollectionFile.Kind.QRELS)):
            keys = self.initial.get(name)
            if isinstance(keys, list):
                offered = dict(self.fields[name].choices)  # type: ignore[attr-defined]
                since = (one for one in self.usable.values() if one.kind == kind)
                keys += [
                    str(one.pk)
                    for one in since
                    if one.created_at > version.created_at and str(one.pk) in offered
                ]

    def begin_with_qrels(self, evaluated: Result) -> None:
        """Offer the qrels that were evaluated, of which the report speaks."""
        if isinstance(self.fields["qrels"], forms.MultipleChoiceField):
            return
        for key in evaluated.files.filter(kind=CollectionFile.Kind.QRELS).values_list(
            "file", flat=True
        ):
            if key in self.usable:
                self.initial["qrels"] = str(key)

    def begin_with(self, arguments: Mapping[str, Any]) -> None:
        """Offer the choices of a job that failed or of a result, to be changed, not made anew."""
        rules = arguments.get("settings", {})
        files = [self.usable[key] for key in arguments.get("inputs", ()) if key in self.usable]
        values = {name: value for name, value in rules.items() if name in self.fields}
        values["runs"] = [str(one.pk) for one in files if one.kind == CollectionFile.Kind.RUN]
        qrels = [str(one.pk) for one in files if one.kind == CollectionFile.Kind.QRELS]
        by_machine = CollectionFile.MadeBy.MACHINE
        machines = [str(one.pk) for one in files if one.made_by == by_machine]
        if "machine" in self.fields:
            qrels = [key for key in qrels if key not in machines]
            values["machine"] = next(iter(machines), None)
        if "assessors" in self.fields:
            of_several = [one for one in files if one.kind == CollectionFile.Kind.ASSESSORS]
            values["assessors"] = next((str(one.pk) for one in of_several), None)
        is_list = isinstance(self.fields["qrels"], forms.MultipleChoiceField)
        values["qrels"] = qrels if is_list else next(iter(qrels), None)
        listed = {name for name, _title in self.measure_choices}
        names = rules.get("measures", [])
        values["measures"] = [name for name in names if name in listed]
        values["others"] = ", ".join(name for name in names if name not in listed)
        values["primary"] = ", ".join(rules.get("primary", []))
        values["double"] = not rules.get("single_precision", True)
        for name in ("outside", "sharing"):
            run_names = rules.get(name) or ()
            values[name] = [key for key, one in self._runs_by_key() if one.name in run_names]
        self.initial = values

    def _runs_by_key(self) -> list[tuple[str, CollectionFile]]:
        kind = CollectionFile.Kind.RUN
        return [(str(pk), one) for pk, one in self.usable.items() if one.kind == kind]

    @property
    def measure_choices(self) -> list[tuple[str, str]]:
        """The measures that are listed; others are typed."""
        field = self.fields["measures"]
        assert isinstance(field, forms.ChoiceField)
        return list(field.choices)  # type: ignore[arg-type]

    @property
    def basic_fields(self) -> list[BoundField]:
        return [field for field in self if field.name not in self.ADVANCED]

    @property
    def advanced_fields(self) -> list[BoundField]:
        return [self[name] for name in self.ADVANCED if name in self.fields]

    @property
    def has_advanced_errors(self) -> bool:
        """Whether what is folded away must be looked at."""
        return any(field.errors for field in self.advanced_fields)

    @property
    def qrels_file(self) -> CollectionFile:
        """The qrels that were chosen."""
        return self.usable[int(self.cleaned_data["qrels"])]

    @property
    def run_files(self) -> list[CollectionFile]:
        """The runs that were chosen."""
        return [self.usable[int(key)] for key in self.cleaned_data["runs"]]

    @property
    def problem_when_empty(self) -> str:
        """Why nothing can be evaluated yet; empty where something can."""
        kinds = {file.kind for file in self.usable.values()}
        if CollectionFile.Kind.RUN not in kinds:
            return CodedText(
                _("An evaluation needs runs and qrels; there are no runs yet."), code="no_runs"
            )
        if CollectionFile.Kind.QRELS not in kinds:
            if CollectionFile.Kind.ASSESSORS in kinds:
                return CodedText(
                    _(
                        "An evaluation needs one grade of each document; there are only several "
                        "assessors' grades yet. Make qrels of them by a rule."
                    ),
                    code="only_assessors",
                )
            return CodedText(
                _("An evaluation needs runs and qrels; there are no qrels yet."), code="no_qrels"
            )
        return ""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        try:
            settings_of(self.rules)
        except RetrievalError as refused:
            text = str(refused)
            # others begin with a name, such as nDCG or rel, which is spelled as it is
            if text.startswith(("measure ", "the ")):
                text = text[:1].upper() + text[1:]
            self.add_error(self._field_at_fault(), ValidationError(text, code=refused.code))
        return data

    def _field_at_fault(self) -> str:
        """The field without which the settings could be: the test, or what is primary; else the
        measures are at fault."""
        for name, nothing in (("test", None), ("primary", [])):
            try:
                settings_of(self.rules | {name: nothing})
            except RetrievalError:
                continue
            if name in self.fields:
                return name
        return "others" if self.cleaned_data.get("others") else "measures"

    @property
    def rules(self) -> dict[str, Any]:
        """The settings as they are stored with what comes of them."""
        data = self.cleaned_data
        weights = {WEIGHTS: int(data["weights"])} if data.get("weights") else {}
        return weights | {
            "measures": [*data.get("measures", []), *_names(data.get("others", ""))],
            "primary": _names(data.get("primary", "")),
            "missing": data.get("missing", "common"),
            "ties": data.get("ties") or "falling",
            "leave_out_without_relevant": data.get("leave_out_without_relevant", False),
            "single_precision": not data.get("double", False),
            "test": data.get("test") or None,
            "confidence": data.get("confidence") or CONFIDENCE,
            "seed": data.get("seed") or 0,
        }


def _names(text: str) -> Sequence[str]:
    return [name.strip() for name in SEPARATOR.split(text) if name.strip()]


def weights_title(sample: Result) -> str:
    """What the topics of a sample stand for."""
    text = _("all targets that sample {number} was drawn from ({n} drawn)")
    return text.format(number=sample.number, n=format(sample.facts["n_topics"], ","))


def usable_files(collection: Collection) -> dict[int, CollectionFile]:
    """The collection's runs and qrels, people's first, by key."""
    rows = collection.files.usable().defer("faults").people_first()
    return {row.pk: row for row in rows}


def choices_of(files: Mapping[int, CollectionFile], kind: str) -> list[tuple[str, str]]:
    """Files of a kind, for a field to choose from; those of simulated workers say so."""

    def name_of(row: CollectionFile) -> str:
        if row.made_by == CollectionFile.MadeBy.SIMULATED:
            return _("{name} (simulated workers)").format(name=row.name)
        return f"{row.name} ({row.family})" if row.family else row.name

    return [(str(row.pk), name_of(row)) for row in files.values() if row.kind == kind]
