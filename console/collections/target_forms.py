"""What the Targets page asks for: by what targets are stratified, and how many are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.uploads import plain_file_name
from retrieval.exceptions import RetrievalError, SampleUnfit
from retrieval.models import CollectionFile
from retrieval.pools.target_samples import Allocation, require_possible
from retrieval.pools.targets import read_target_values
from stats.arguments import Floats
from stats.ranking.query_difficulty import Predictor

MOST_BYTES, MOST_TARGETS = 5 * 1024 * 1024, 50_000
USUAL_TARGETS = 200
COLUMN = "column"
PREDICTORS = {
    "max": gettext_lazy("the highest score"),
    "mean": gettext_lazy("the mean of the first scores"),
    "sigma_k": gettext_lazy("the spread of the first scores (sigma k)"),
    "sigma_max": gettext_lazy("the greatest spread at any depth (sigma max)"),
    "n_sigma": gettext_lazy("the spread of the scores near the first (n(sigma x%))"),
    "nqc": gettext_lazy("NQC: the spread, over the catalogue's score"),
    "wig": gettext_lazy("WIG: how far the first scores exceed the catalogue's"),
    "smv": gettext_lazy("SMV: magnitude and spread, over the catalogue's score"),
}


class TargetsForm(forms.Form):
    """Targets to draw."""

    n = forms.IntegerField(
        label=gettext_lazy("Targets to draw"), min_value=1, max_value=MOST_TARGETS
    )
    by = forms.ChoiceField(
        label=gettext_lazy("How hard a target is, by"),
        help_text=gettext_lazy(
            "Targets are sorted by it into groups, so that easy and hard ones are both drawn. The "
            "scores of a system's list predict it; a column of yours may say it."
        ),
    )
    source = forms.ChoiceField(
        label=gettext_lazy("Scores of"),
        required=False,
    )
    file = forms.FileField(
        label=gettext_lazy("File with the column"),
        required=False,
        help_text=gettext_lazy(
            "CSV with a column target, which names each target's document, and the one to use; "
            "with a column topic too, where topics have other names."
        ),
    )
    column = forms.CharField(
        label=gettext_lazy("Name of the column"), required=False, max_length=100
    )
    strata = forms.IntegerField(
        label=gettext_lazy("Groups (strata)"),
        min_value=1,
        max_value=100,
        initial=4,
        help_text=gettext_lazy("Each has as many targets, from the lowest value to the highest."),
    )
    allocation = forms.ChoiceField(
        label=gettext_lazy("Drawn of each group"),
        choices=[
            ("equal", gettext_lazy("the same number")),
            ("proportional", gettext_lazy("in proportion to its size")),
        ],
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        max_value=2**31 - 1,
        initial=7,
        help_text=gettext_lazy("Another number draws other targets; the same, the same."),
    )

    def __init__(self, sources: Sequence[CollectionFile], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.sources = {str(file.pk): file for file in sources}
        by, source = self.fields["by"], self.fields["source"]
        assert isinstance(by, forms.ChoiceField)
        assert isinstance(source, forms.ChoiceField)
        predictors = [(name, PREDICTORS[name]) for name in get_args(Predictor)]
        by.choices = [*predictors, (COLUMN, _("a column of a file"))]
        source.choices = [(key, file.name) for key, file in self.sources.items()]
        self._begin(sources)

    def _begin(self, sources: Sequence[CollectionFile]) -> None:
        """Defaults that fit what there is: no more targets than topics, and a usable predictor."""
        by, n = self.fields["by"], self.fields["n"]
        if not sources:
            by.initial = COLUMN
            return
        # NQC divides by the score of the whole catalogue, which a run does not have.
        first = sources[0]
        is_run = first.kind == CollectionFile.Kind.RUN
        by.initial = "sigma_k" if is_run else "nqc"
        n_targets = first.n_topics if is_run else first.n_documents
        n.initial = max(1, min(USUAL_TARGETS, n_targets))
        n.help_text = _("{name} has {n}.").format(name=first.name, n=f"{n_targets:,}")

    def begin_with(self, arguments: Mapping[str, Any]) -> None:
        """Offer the choices of a job that failed; a file must be chosen again."""
        rules, files = arguments.get("settings", {}), arguments.get("inputs", ())
        names = ("n", "strata", "allocation", "seed", "column")
        values = {name: rules[name] for name in names if name in rules}
        values["by"] = rules.get("predictor", COLUMN)
        if source := next((str(key) for key in files if str(key) in self.sources), ""):
            values["source"] = source
        self.initial = values

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("by") == COLUMN:
            self._read_column(data)
        elif data.get("by") and not data.get("source") and "source" not in self.errors:
            self.add_error(
                "source",
                ValidationError(
                    _("A predictor looks at the scores of a run or of vectors."), code="no_scores"
                ),
            )
        elif data.get("by") and data.get("source"):
            self._require_enough(data)
        return data

    def _require_enough(self, data: dict[str, Any]) -> None:
        """Of a run or vectors it is known how many targets there are, not yet their values."""
        file, n, strata = self.sources[data["source"]], data.get("n"), data.get("strata")
        there = file.n_topics if file.kind == CollectionFile.Kind.RUN else file.n_documents
        if n and n > there:
            text = ngettext("{name} has {there} target.", "{name} has {there} targets.", there)
            problem = text.format(name=file.name, there=f"{there:,}")
            self.add_error("n", ValidationError(problem, code="too_few_targets"))
        elif n and strata and strata > n:
            self.add_error(
                "strata",
                ValidationError(
                    _("There are more strata than targets to draw."), code="too_many_strata"
                ),
            )

    def _require_possible(self, values: Floats, column: str) -> None:
        data = self.cleaned_data
        if data.get("n") and data.get("strata"):
            try:
                allocation: Allocation = data.get("allocation", "equal")
                require_possible(
                    data["n"], data["strata"], values, allocation=allocation, column=column
                )
            except SampleUnfit as refused:
                self.add_error(refused.field, ValidationError(str(refused), code=refused.code))

    def _read_column(self, data: dict[str, Any]) -> None:
        file, column = data.get("file"), data.get("column", "").strip()
        if not file:
            self.add_error(
                "file",
                ValidationError(_("Choose a file that has the column."), code="file_missing"),
            )
        elif not column:
            self.add_error("column", ValidationError(_("Name the column."), code="column_missing"))
        elif file.size > MOST_BYTES:
            self.add_error("file", _("It has more than {n} MiB.").format(n=MOST_BYTES // 1024**2))
        else:
            try:
                data["values"] = _values_of(file, column)
                numbers = [value for _topic, _docno, value in data["values"] if value is not None]
                self._require_possible(np.array(numbers), column)
            except RetrievalError as refused:
                self.add_error("file", ValidationError(str(refused), code=refused.code))

    @property
    def chosen_files(self) -> list[CollectionFile]:
        data = self.cleaned_data
        return [] if data["by"] == COLUMN else [self.sources[data["source"]]]

    @property
    def rules(self) -> dict[str, Any]:
        """How targets are drawn, as plain values."""
        data = self.cleaned_data
        rules = {name: data[name] for name in ("n", "strata", "allocation", "seed")}
        if data["by"] != COLUMN:
            return rules | {"predictor": data["by"]}
        signature = f"file:{data['file'].name}"
        return rules | {
            "column": data["column"].strip(),
            "values": data["values"],
            "signature": signature,
        }


def _values_of(file: Any, column: str) -> list[tuple[str, str, float | None]]:
    """Topic, document and number of each target of a file; None where it has no number."""
    with TemporaryDirectory(prefix="assay-targets-") as folder:
        path = Path(folder) / plain_file_name(file.name)
        path.write_bytes(file.read())
        targets, values = read_target_values(path, column)
    numbers = (None if np.isnan(value) else float(value) for value in values)
    return [(one.topic, one.docno, value) for one, value in zip(targets, numbers, strict=True)]
