import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext as _, gettext_lazy

from console.forms import offer_choices
from results.models import Result
from retrieval.models import CollectionFile
from retrieval.pools.records import PoolPlan
from retrieval.result_kinds.pools import FUSION, source_name

QUOTAS, DEPTH, TAKE = "quotas", "depth", "take"
# A comma between names of targets; names have no white space.
LISTED = re.compile(r",(?=\s|$)")
METHODS = [
    (QUOTAS, gettext_lazy("Quotas: a number of each, in turns")),
    (DEPTH, gettext_lazy("Depth: the first of every source")),
    (TAKE, gettext_lazy("Take: the first of all, fused by rank")),
]
SIMILARITIES = [
    ("cosine", gettext_lazy("cosine: the angle alone")),
    ("inner", gettext_lazy("inner product (dot): length counts")),
    ("l2", gettext_lazy("Euclidean distance")),
]
OF_RUNS, NAMED = "runs", "named"
MOST_A_TOPIC, MOST_NAMED = 200, 20_000
KIND = CollectionFile.Kind


def _whole(label: Any, initial: int | None = None, **options: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, initial=initial, **{"min_value": 0} | options)


class PoolForm(forms.Form):
    targets = forms.ChoiceField(label=gettext_lazy("Targets"))
    named = forms.CharField(
        label=gettext_lazy("Names of the targets"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Of documents or topics, a line each or with commas between."),
    )
    method = forms.ChoiceField(label=gettext_lazy("Candidates by"), choices=METHODS)
    n = _whole(
        gettext_lazy("Depth, or how many to take"),
        10,
        min_value=1,
        max_value=1000,
        required=False,
        help_text=gettext_lazy("Not of quotas, which have a number for each source."),
    )
    uniform = _whole(
        gettext_lazy("Drawn at random from the rest"),
        0,
        max_value=MOST_A_TOPIC,
        help_text=gettext_lazy(
            "Of each topic: a sample from which prevalence and infAP can be estimated."
        ),
    )
    cap = _whole(
        gettext_lazy("A document is in so many pools at most"),
        0,
        help_text=gettext_lazy("0 for no limit. Keeps hubs from filling every pool."),
    )
    excluded = forms.CharField(
        label=gettext_lazy("Never to be pooled"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Names of documents, a line each."),
    )
    catalogue = forms.ChoiceField(label=gettext_lazy("Catalogue"), required=False)
    fusion_constant = _whole(
        gettext_lazy("k of reciprocal rank fusion"),
        PoolPlan.fusion_constant,
        min_value=1,
        max_value=10_000,
        required=False,
        help_text=gettext_lazy(
            "Of “Take”: a document at rank r of a list counts 1 / (k + r). A smaller k weighs the "
            "first ranks more."
        ),
    )
    fusion_depth = _whole(
        gettext_lazy("Lists are fused down to rank"),
        PoolPlan.fusion_depth,
        min_value=1,
        max_value=100_000,
        required=False,
        help_text=gettext_lazy("Of “Take”."),
    )
    seed = _whole(gettext_lazy("Seed"), 7, max_value=2**31 - 1)

    def __init__(
        self,
        files: Sequence[CollectionFile],
        samples: Sequence[Result],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.sources = [file for file in files if file.kind in (KIND.RUN, KIND.EMBEDDINGS)]
        self.catalogues = [file for file in files if file.kind == KIND.CATALOGUE]
        self.samples = samples
        offer_choices(
            self,
            targets=[
                *((str(one.pk), _sample_title(one)) for one in samples),
                (OF_RUNS, _("the topics of the runs")),
                (NAMED, _("those that I name")),
            ],
            catalogue=[
                *((str(file.pk), file.name) for file in self.catalogues),
                ("", _("none: names alone")),
            ],
        )
        for file in self.sources:
            self.fields[f"use_{file.pk}"] = forms.BooleanField(
                label=file.name, required=False, initial=True
            )
            self.fields[f"quota_{file.pk}"] = _whole(
                _("Quota of {name}").format(name=file.name),
                3,
                max_value=MOST_A_TOPIC,
                required=False,
            )
        self.embeddings = [file for file in self.sources if file.kind == KIND.EMBEDDINGS]
        for file in self.embeddings:
            self._add_vector_fields(file)

    def _add_vector_fields(self, file: CollectionFile) -> None:
        others = [
            (str(one.pk), one.name)
            for one in self.embeddings
            if one.pk != file.pk and one.n_dimensions == file.n_dimensions
        ]
        self.fields[f"similarity_{file.pk}"] = forms.ChoiceField(
            label=_("{name}: nearest by").format(name=file.name),
            required=False,
            choices=SIMILARITIES,
        )
        self.fields[f"queries_{file.pk}"] = forms.ChoiceField(
            label=_("{name}: vectors of the targets").format(name=file.name),
            required=False,
            choices=[("", _("their own, as documents")), *others],
            help_text=_(
                "Where targets are no documents, embeddings of their own, by topic, of as many "
                "numbers; no candidates are taken from those."
            ),
        )

    def begin_with(self, arguments: Mapping[str, Any], since: datetime | None = None) -> None:
        """Offer the choices of a pool, to be changed and not made anew.

        Sources and samples that came after it, `since`, begin as they would without it.
        """
        rules, file_keys = arguments.get("settings", {}), set(arguments.get("inputs", ()))
        earlier = [file for file in self.sources if since is None or file.created_at <= since]
        keys = {source_name(file): str(file.pk) for file in self.sources}
        names = ("uniform", "cap", "seed", *FUSION)
        values = {name: rules[name] for name in names if name in rules}
        method = next((name for name, _title in METHODS if name in rules), DEPTH)
        values["method"] = method
        if method != QUOTAS and method in rules:
            values["n"] = rules[method]
        if since is None or not any(one.created_at > since for one in self.samples):
            values |= self._targets_of(rules)
        values["excluded"] = "\n".join(rules.get("excluded", ()))
        if since is None or not any(one.created_at > since for one in self.catalogues):
            pks = (str(one.pk) for one in self.catalogues if one.pk in file_keys)
            values["catalogue"] = next(pks, "")
        quotas = rules.get(QUOTAS, {})
        for file in earlier:
            values[f"use_{file.pk}"] = file.pk in file_keys
            if method == QUOTAS:
                values[f"quota_{file.pk}"] = quotas.get(source_name(file), 0)
        for file in (file for file in earlier if file.kind == KIND.EMBEDDINGS):
            name = source_name(file)
            values[f"similarity_{file.pk}"] = rules.get("similarity", {}).get(name, "cosine")
            values[f"queries_{file.pk}"] = keys.get(rules.get("queries", {}).get(name, ""), "")
        self.initial = {**self.initial, **values}

    def _targets_of(self, rules: Mapping[str, Any]) -> dict[str, str]:
        if "targets" in rules:
            return {"targets": NAMED, "named": "\n".join(rules["targets"])}
        key = str(rules.get("sample", OF_RUNS))
        is_offered = key == OF_RUNS or any(str(one.pk) == key for one in self.samples)
        return {"targets": key} if is_offered else {}

    def vector_fields(self) -> list[BoundField]:
        return [
            self[f"{name}_{file.pk}"]
            for file in self.embeddings
            for name in ("similarity", "queries")
        ]

    @property
    def has_folded_errors(self) -> bool:
        folded = ("uniform", "cap", "excluded", *FUSION, "seed")
        fields = [*(self[name] for name in folded), *self.vector_fields()]
        return any(field.errors for field in fields)

    def source_rows(self) -> list[tuple[CollectionFile, BoundField, BoundField]]:
        return [(file, self[f"use_{file.pk}"], self[f"quota_{file.pk}"]) for file in self.sources]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self._ticked_sources(data):
            raise forms.ValidationError(_("Choose at least one source of candidates."))
        method = data.get("method")
        if method == QUOTAS and not self._quotas(data):
            raise forms.ValidationError(_("Give at least one source a quota."))
        if method in (DEPTH, TAKE) and not data.get("n") and "n" not in self.errors:
            self.add_error("n", _("Say how many."))
        if data.get("targets") == NAMED and not LISTED.sub(" ", data.get("named", "")).split():
            self.add_error("named", _("Name at least one target."))
        if len(data.get("named", "").split()) > MOST_NAMED:
            self.add_error("named", _("Name {n} at most.").format(n=f"{MOST_NAMED:,}"))
        return data

    def _ticked_sources(self, data: dict[str, Any]) -> list[CollectionFile]:
        """The sources that are ticked, but for vectors that are searched with."""
        ticked = [file for file in self.sources if data.get(f"use_{file.pk}")]
        of_targets = {data.get(f"queries_{file.pk}") for file in ticked}
        return [file for file in ticked if str(file.pk) not in of_targets]

    def _quotas(self, data: dict[str, Any]) -> dict[str, int]:
        return {
            source_name(file): data[f"quota_{file.pk}"]
            for file in self._ticked_sources(data)
            if data.get(f"quota_{file.pk}")
        }

    @property
    def _sources(self) -> list[CollectionFile]:
        data = self.cleaned_data
        sources = self._ticked_sources(data)
        if data["method"] == QUOTAS:
            sources = [file for file in sources if data.get(f"quota_{file.pk}")]
        return sources

    @property
    def chosen_files(self) -> list[CollectionFile]:
        data = self.cleaned_data
        sources = self._sources
        keys = {data.get(f"queries_{file.pk}") for file in sources}
        catalogues = [one for one in self.catalogues if str(one.pk) == data["catalogue"]]
        return [*sources, *[file for file in self.embeddings if str(file.pk) in keys], *catalogues]

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        method, where = data["method"], data["targets"]
        rules: dict[str, Any] = {name: data[name] for name in ("uniform", "cap", "seed")}
        rules |= {method: self._quotas(data) if method == QUOTAS else data["n"]}
        if method == TAKE:
            rules |= {name: data.get(name) or getattr(PoolPlan, name) for name in FUSION}
        rules |= self._vector_rules()
        if where == NAMED:
            rules["targets"] = list(dict.fromkeys(LISTED.sub(" ", data["named"]).split()))
        elif where != OF_RUNS:
            rules["sample"] = int(where)
        if excluded := data["excluded"].split():
            rules["excluded"] = sorted(set(excluded))
        return rules

    def _vector_rules(self) -> dict[str, dict[str, str]]:
        data, names = self.cleaned_data, {str(file.pk): source_name(file) for file in self.sources}
        rules: dict[str, dict[str, str]] = {"similarity": {}, "queries": {}}
        for file in self._sources:
            if (similarity := data.get(f"similarity_{file.pk}")) not in (None, "", "cosine"):
                rules["similarity"][source_name(file)] = similarity
            if key := data.get(f"queries_{file.pk}"):
                rules["queries"][source_name(file)] = names[key]
        return {name: values for name, values in rules.items() if values}


def _sample_title(sample: Result) -> str:
    return _("sample {number}, of {n} targets").format(
        number=sample.number, n=format(sample.facts["n_topics"], ",")
    )
