"""What comparing qrels, estimating reuse and auditing ask for."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.collections.evaluation_form import EvaluationForm, choices_of
from console.collections.forms import SeveralFilesField
from error_codes import CodedText
from retrieval.audit.claims import read_claims
from retrieval.audit.records import Claims
from retrieval.models import Collection, CollectionFile
from retrieval.rankings import ComparisonSettings
from retrieval.result_kinds.comparison import CHOSEN, FEWEST

MOST_DRAWS = 20_000
DEFAULTS = {name: getattr(ComparisonSettings, name) for name in CHOSEN}


class ComparisonForm(EvaluationForm):
    """Runs under several qrels, as `compare_qrels` takes them."""

    qrels = forms.MultipleChoiceField(
        label=gettext_lazy("Qrels to compare"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    assessors = forms.ChoiceField(
        label=gettext_lazy("Several assessors' grades"),
        required=False,
        help_text=gettext_lazy(
            "How far any two of them agree, and what one of them alone would have said of the "
            "runs; other qrels may be left out."
        ),
    )
    truth = forms.ChoiceField(
        label=gettext_lazy("Held against"),
        required=False,
        help_text=gettext_lazy("Where one of them is taken for the truth; else all are alike."),
    )
    top = forms.IntegerField(
        label=gettext_lazy("The best runs by themselves"),
        required=False,
        min_value=2,
        max_value=10_000,
        help_text=gettext_lazy("How many: agreement over all may hide that the best change."),
    )
    rbo_p = forms.FloatField(
        label=gettext_lazy("p of rank-biased overlap (RBO)"),
        required=False,
        min_value=0.01,
        max_value=0.999,
        initial=DEFAULTS["rbo_p"],
        help_text=gettext_lazy(
            "How likely a reader goes on to the next rank. At 0.9 the first ten ranks have 86 % of "
            "the weight; with few runs a smaller p leaves less to ranks that there are not."
        ),
    )
    rbo_ties = forms.ChoiceField(
        label=gettext_lazy("Tied runs in RBO"),
        required=False,
        initial=DEFAULTS["rbo_ties"],
        choices=[
            ("b", gettext_lazy("b: order unknown, corrected as in tau-b")),
            ("a", gettext_lazy("a: order unknown, the mean over all orders")),
            ("w", gettext_lazy("w: they truly share a rank")),
        ],
    )
    n_resamples = forms.IntegerField(
        label=gettext_lazy("Resamples of the topics, for intervals"),
        required=False,
        min_value=100,
        max_value=MOST_DRAWS,
        initial=DEFAULTS["n_resamples"],
    )
    n_draws = forms.IntegerField(
        label=gettext_lazy("Draws of one assessor a topic"),
        required=False,
        min_value=100,
        max_value=MOST_DRAWS,
        initial=DEFAULTS["n_draws"],
    )

    DEFAULT_MEASURES = ("nDCG@10",)
    HAS_WEIGHTS = False
    ADVANCED = (*EvaluationForm.ADVANCED, *DEFAULTS)

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(collection, *args, **kwargs)
        qrels = choices_of(self.usable, CollectionFile.Kind.QRELS)
        self.fields["qrels"].initial = [key for key, _name in qrels]
        truth = self.fields["truth"]
        assert isinstance(truth, forms.ChoiceField)
        truth.choices = [("", _("none of them")), *((name, name) for _key, name in qrels)]
        self._choose_assessors()

    def _choose_assessors(self) -> None:
        """Offer files of several assessors, the first of them chosen; no field without any."""
        of_assessors = choices_of(self.usable, CollectionFile.Kind.ASSESSORS)
        if not of_assessors:
            del self.fields["assessors"]
            return
        field = self.fields["assessors"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", _("none")), *of_assessors]
        field.initial = of_assessors[0][0]
        self.order_fields(["qrels", "assessors"])

    @property
    def qrels_files(self) -> list[CollectionFile]:
        """The qrels that were chosen."""
        return [self.usable[int(key)] for key in self.cleaned_data["qrels"]]

    @property
    def assessors_file(self) -> CollectionFile | None:
        """The file of several assessors' grades that was chosen."""
        key = self.cleaned_data.get("assessors")
        return self.usable[int(key)] if key else None

    @property
    def problem_when_empty(self) -> str:
        n = Counter(file.kind for file in self.usable.values())
        if n["run"] < FEWEST or (n["qrels"] < FEWEST and not n["assessors"]):
            return CodedText(
                _(
                    "A comparison needs two runs and two qrels, of two assessors, rounds or rules, "
                    "or one file with several assessors' grades."
                ),
                code="comparison_needs",
            )
        return ""

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        options = {"truth": data.get("truth") or None, "top": data.get("top")}
        choices = {name: data.get(name) or default for name, default in DEFAULTS.items()}
        return super().rules | options | choices


class ReuseForm(EvaluationForm):
    """Runs left out of their pool, as `evaluate_runs --reusability` takes them."""

    pool_depth = forms.IntegerField(
        label=gettext_lazy("Depth of the pool"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=gettext_lazy(
            "How many of each run's first documents were pooled, such as 10. Empty: as deep as the "
            "pool of the qrels' study was made here, or else as many as are in the qrels of every "
            "pooled run; where runs begin with what is never pooled, such as "
            "their own target, type it, and count that document."
        ),
    )
    outside = forms.MultipleChoiceField(
        label=gettext_lazy("Runs that were not pooled"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    DEFAULT_MEASURES = ("nDCG@10",)
    HAS_WEIGHTS = False

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(collection, *args, **kwargs)
        del self.fields["test"]
        outside = self.fields["outside"]
        assert isinstance(outside, forms.ChoiceField)
        outside.choices = choices_of(self.usable, CollectionFile.Kind.RUN)

    @property
    def problem_when_empty(self) -> str:
        kinds = [file.kind for file in self.usable.values()]
        if kinds.count("run") < FEWEST or "qrels" not in kinds:
            return CodedText(
                _("Leaving one out needs two pooled runs or more, and the qrels of their pool."),
                code="reuse_needs",
            )
        return ""

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        outside = [self.usable[int(key)].name for key in data.get("outside", [])]
        return super().rules | {"pool_depth": data.get("pool_depth"), "outside": outside}


class AuditForm(forms.Form):
    """Files to audit: sent for it, and those that are here."""

    uploads = SeveralFilesField(
        label=gettext_lazy("Files"),
        required=False,
        help_text=format_lazy(
            gettext_lazy(
                "All files of a folder at once, up to {n}: Mechanical Turk batches, CSV files of "
                "alternatives and dialogue starts, qrels, runs. They are read, and not kept."
            ),
            n=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        ),
        allow_empty_file=True,
    )
    stored = forms.MultipleChoiceField(
        label=gettext_lazy("Files of this collection"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    claims = forms.CharField(
        label=gettext_lazy("Published numbers (optional)"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "What a paper says of a file of judged pools, a line each, as "
            "batch.csv:mean_relevant=3.5, with its decimals as printed. Names: assessed (topics), "
            "with_relevant (topics with a relevant document), mean_relevant (relevant documents a "
            "topic), judged_per_topic, prevalence."
        ),
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        rows = collection.files.usable().defer("faults").order_by("kind", "name")
        self.stored_files = {str(row.pk): row for row in rows}
        stored = self.fields["stored"]
        assert isinstance(stored, forms.ChoiceField)
        stored.choices = [(key, row.name) for key, row in self.stored_files.items()]

    def clean_claims(self) -> dict[str, Claims]:
        """By file; every line that is no claim is refused by its number."""
        claims: dict[str, dict[str, str]] = {}
        for number, line in enumerate(self.cleaned_data["claims"].splitlines(), 1):
            try:
                for file, numbers in read_claims([line] if line.strip() else []).items():
                    claims.setdefault(file, {}).update(numbers)
            except ValueError as error:
                text = _("Line {number}: {problem}.").format(number=number, problem=error)
                self.add_error("claims", ValidationError(text, code="not_a_claim"))
        return dict(claims)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        stored = (self.stored_files[key].file_name for key in data.get("stored", []))
        names = {*stored, *(file.name for file in data.get("uploads") or [])}
        if strangers := [name for name in data.get("claims") or {} if name not in names]:
            self.add_error(
                "claims",
                ValidationError(
                    _("{name} is none of the files to audit.").format(name=strangers[0]),
                    code="unknown_file",
                ),
            )
        return data

    @property
    def chosen_files(self) -> list[CollectionFile]:
        """The collection's own files that were chosen."""
        return [self.stored_files[key] for key in self.cleaned_data["stored"]]


class MachineForm(EvaluationForm):
    """A machine's labels beside people's, as `evaluate_runs --machine` takes them."""

    machine = forms.ChoiceField(label=gettext_lazy("Qrels by a machine"))
    sharing = forms.MultipleChoiceField(
        label=gettext_lazy("Runs whose systems share its model"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    sample = forms.ChoiceField(
        label=gettext_lazy("What was drawn for people"),
        required=False,
        choices=[
            ("", gettext_lazy("find out from the files")),
            ("topics", gettext_lazy("whole topics")),
            ("labels", gettext_lazy("single documents")),
        ],
    )

    DEFAULT_MEASURES = ("nDCG@10",)
    HAS_WEIGHTS = False

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(collection, *args, **kwargs)
        del self.fields["test"]
        by_machine = CollectionFile.MadeBy.MACHINE
        machines = {key: row for key, row in self.usable.items() if row.made_by == by_machine}
        people = {key: row for key, row in self.usable.items() if row.made_by != by_machine}
        for name, files, kind in (
            ("qrels", people, CollectionFile.Kind.QRELS),
            ("machine", machines, CollectionFile.Kind.QRELS),
            ("sharing", self.usable, CollectionFile.Kind.RUN),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices_of(files, kind)
        self.order_fields(["qrels", "machine", "sample", "runs", "sharing"])

    @property
    def machine_file(self) -> CollectionFile:
        """The machine's qrels that were chosen."""
        return self.usable[int(self.cleaned_data["machine"])]

    @property
    def problem_when_empty(self) -> str:
        by_machine = CollectionFile.MadeBy.MACHINE
        kinds = {(file.kind, file.made_by == by_machine) for file in self.usable.values()}
        needed = {("run", False), ("qrels", False), ("qrels", True)}
        if needed - kinds:
            return CodedText(
                _(
                    "This needs runs, qrels by people of a sample, and qrels that say they are by "
                    "a machine: open such a file by its name on Runs and qrels, and say so at "
                    "“Judged by”."
                ),
                code="machine_needs",
            )
        return ""

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        sharing = [self.usable[int(key)].name for key in data.get("sharing", [])]
        return super().rules | {"sharing": sharing, "sample": data.get("sample") or None}
