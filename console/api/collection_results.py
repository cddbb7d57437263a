"""What was computed of test collections: results of each kind, and requests for more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, cast

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.collection_records import content_of
from console.api.endpoint import Endpoint, Input, address_of
from console.api.job_records import (
    JobSerializer,
    job_record,
)
from console.api.operations import lists, reads, stretches, writes
from console.api.pagination import page, stretch
from console.collections.target_forms import MOST_TARGETS, PREDICTORS, TargetsForm
from results.computing import request_result, sign_result
from results.kinds import ResultKind, result_kinds
from results.models import Result
from results.settings import Inputs, list_settings
from retrieval.models import (
    Collection,
    CollectionFile,
    ResultType,
    SampledTarget,
    TopicValue,
)
from retrieval.result_kinds.comparison import ComparisonKind
from retrieval.result_kinds.evaluation import WEIGHTS, EvaluationKind
from retrieval.result_kinds.machine import MachineKind
from retrieval.result_kinds.reuse import ReuseKind
from retrieval.result_kinds.targets import SOURCES, request_sample
from work.models import Job

Kind = ResultType
KINDS = {
    "evaluations": Kind.EVALUATION,
    "comparisons": Kind.COMPARISON,
    "reuse": Kind.REUSE,
    "machines": Kind.MACHINE,
    "audits": Kind.AUDIT,
    "pools": Kind.POOL,
    "reports": Kind.REPORT,
    "targets": Kind.TARGETS,
}
"""What an address calls the results of a kind."""


class ResultRowSerializer(serializers.ModelSerializer[Result]):
    """A computed result, which never changes."""

    kind = serializers.CharField()
    n_topics = serializers.IntegerField(source="facts.n_topics", default=0)
    settings = serializers.DictField()
    signature = serializers.SerializerMethodField(help_text="Settings and files, on one line.")

    class Meta:
        model = Result
        fields = [
            *("number", "kind", "created_at", "n_topics", "seed", "settings", "fingerprint"),
            "signature",
        ]

    def get_signature(self, version: Result) -> str:
        return sign_result(version)


class UsedFileSerializer(serializers.Serializer[Any]):
    """A file that a result was computed of, as it was then."""

    kind = serializers.CharField()
    name = serializers.CharField()
    family = serializers.CharField()
    made_by = serializers.CharField()
    sha256 = serializers.CharField()


class CollectionResultSerializer(ResultRowSerializer):
    """A result with what the page says of it, and its tables."""

    answer = serializers.CharField(help_text="The first sentence of its page.")
    details = serializers.ListField(child=serializers.CharField())
    files = UsedFileSerializer(many=True)
    tables = serializers.DictField(
        child=serializers.ListField(child=serializers.DictField()),
        help_text="Rows by the table's name; each kind of result has its own.",
    )
    notes = serializers.ListField(child=serializers.CharField())

    class Meta(ResultRowSerializer.Meta):
        fields = [
            *ResultRowSerializer.Meta.fields,
            *("answer", "details", "files", "tables", "notes"),
        ]


def versions_of(collection: Collection, kind: str) -> Any:
    """The results that an address names, newest first; 404 for what is no kind."""
    name = KINDS.get(kind, kind)
    if kind not in KINDS and name not in result_kinds():
        raise NotFound(f"There are no results called {kind}; there are {', '.join(KINDS)}.")
    return Result.objects.of(collection, name)


class ResultsEndpoint(Endpoint):
    """What addresses of results have in common."""

    def page_of(self, request: Request, slug: str, kind: str) -> Response:
        """A page of the results of a kind, newest first."""
        return page(request, versions_of(self.collection(slug), kind), ResultRowSerializer)

    def version(
        self, slug: str, kind: str, number: int, permission: Permission = Permission.VIEW
    ) -> Result:
        """The result of that number; 404 where there is none."""
        versions = versions_of(self.collection(slug, permission), kind)
        return cast(Result, get_object_or_404(versions, number=number))

    def requested(
        self,
        request: Request,
        collection: Collection,
        kind: ResultKind[Collection],
        values: dict[str, Any],
    ) -> Response:
        """The job of a result of these inputs, by name, and settings."""
        offered = kind.offer_inputs(collection)
        chosen = {
            name: _choose(offered[name], values.pop(name, None), name, one)
            for name, one in kind.inputs.items()
        }
        job = request_result(
            kind=kind, subject=collection, chosen=chosen, settings=values, actor=self.person
        )
        return _accepted(request, collection.slug, job)


@cache
def input_of_kind(declared: type[ResultKind[Any]]) -> type[Input]:
    """What a request for a result may hold: inputs by name, and settings."""
    kind = declared()
    fields: dict[str, Any] = {name: one.api_field() for name, one in kind.inputs.items()}
    for name, (described, default) in list_settings(kind.settings).items():
        fields[name] = described.api_field(default)
    doc = f"What the page “{kind.title}” asks for; what is left out is as its form begins with."
    return type(f"{kind.name.title()}Input", (Input,), {**fields, "__doc__": doc})


EvaluationInput = input_of_kind(EvaluationKind)
REQUESTED = (ComparisonKind(), ReuseKind(), MachineKind())
"""The kinds whose requests the schema describes, besides evaluations."""


class CollectionResults(ResultsEndpoint):
    @lists("list_collection_results", ResultRowSerializer)
    def get(self, request: Request, slug: str, kind: str) -> Response:
        """The results of a kind: evaluations, comparisons, reuse, machines, audits, pools, reports,
        targets; newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        return self.page_of(request, slug, kind)

    @writes(
        "request_collection_result",
        PolymorphicProxySerializer(
            component_name="ResultRequest",
            serializers=[input_of_kind(type(kind)) for kind in REQUESTED],
            resource_type_field_name=None,
        ),
        JobSerializer,
        status=HTTPStatus.ACCEPTED,
    )
    def post(self, request: Request, slug: str, kind: str) -> Response:
        """Have a result computed in the background, of the kinds comparisons, reuse and machines;
        the same files and settings are not twice.

        Access: those who may analyse.
        """
        collection = self.collection(slug, Permission.ANALYSE)
        declared = result_kinds().get(KINDS.get(kind, kind))
        if declared is None or not declared.inputs:
            raise MethodNotAllowed("POST")
        values = self.input(input_of_kind(type(declared)))
        return self.requested(request, collection, declared, values)


class OneCollectionResult(ResultsEndpoint):
    @reads("get_collection_result", CollectionResultSerializer)
    def get(self, request: Request, slug: str, kind: str, number: int) -> Response:
        """A result with its first sentence, tables and notes.

        Access: members of the team, but for who adjudicates blind.
        """
        version = self.version(slug, kind, number)
        record = ResultRowSerializer(version).data | content_of(version)
        record["files"] = UsedFileSerializer(version.files.all(), many=True).data
        return Response(record)


class TopicValueSerializer(serializers.ModelSerializer[TopicValue]):
    """A run's value of a measure in a topic."""

    run = serializers.CharField(source="result.run.name")
    measure = serializers.CharField(source="result.measure.name")

    class Meta:
        model = TopicValue
        fields = ["id", "topic", "run", "measure", "value"]


class TopicValues(ResultsEndpoint):
    @stretches("list_topic_values", TopicValueSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every run's value of every measure in every topic of an evaluation.

        Access: those who may export.
        """
        version = self.version(slug, "evaluations", number, Permission.EXPORT)
        rows = TopicValue.objects.filter(result__version=version)
        related = rows.select_related("result__run", "result__measure")
        return stretch(request, related, TopicValueSerializer)


class Evaluations(ResultsEndpoint):
    """The results of the kind `evaluations`, and what asks for one."""

    @lists("list_evaluations", ResultRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Evaluations of runs against qrels, newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        return self.page_of(request, slug, "evaluations")

    @writes("request_evaluation", EvaluationInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Have runs evaluated in the background; the same files and settings are not twice.

        Access: those who may analyse.
        """
        collection = self.collection(slug, Permission.ANALYSE)
        values = self.input(EvaluationInput)
        if number := values.pop(WEIGHTS, None):
            values[WEIGHTS] = _sample(collection, number).pk
        return self.requested(request, collection, EvaluationKind(), values)


class SampledTargetSerializer(serializers.ModelSerializer[SampledTarget]):
    """A target that was drawn, with the value it was drawn by and how probable that was."""

    probability = serializers.FloatField(source="inclusion", help_text="Of being drawn.")

    class Meta:
        model = SampledTarget
        fields = ["id", "topic", "docno", "stratum", "value", "probability"]


class SampledTargets(ResultsEndpoint):
    @stretches("list_sampled_targets", SampledTargetSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """The targets of a sample, with the probability that estimates weigh them by.

        Access: those who may export.
        """
        version = self.version(slug, "targets", number, Permission.EXPORT)
        rows = SampledTarget.objects.filter(version=version)
        return stretch(request, rows, SampledTargetSerializer)


class SampleInput(Input):
    """What the Targets page asks for, by a predictor; a column of a file is for the page."""

    n = serializers.IntegerField(min_value=1, max_value=MOST_TARGETS)
    predictor = serializers.ChoiceField(choices=list(PREDICTORS))
    source = serializers.CharField(help_text="The name of a run, or of embeddings.")  # type: ignore[assignment]
    strata = serializers.IntegerField(default=4, min_value=1, max_value=100)
    allocation = serializers.ChoiceField(choices=["equal", "proportional"], default="equal")
    seed = serializers.IntegerField(default=7, min_value=0, max_value=2**31 - 1)


class TargetSamples(ResultsEndpoint):
    """The results of the kind `targets`, and what asks for one."""

    @lists("list_target_samples", ResultRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Samples of targets, newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        return self.page_of(request, slug, "targets")

    @writes("request_targets", SampleInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Have targets drawn in the background; the same source and settings are not twice.

        Access: those who may edit.
        """
        collection = self.collection(slug, Permission.EDIT)
        rules = self.input(SampleInput)
        files = collection.files.usable().filter(kind__in=SOURCES).defer("faults")
        [source] = _choose(list(files), rules["source"], "source", Inputs(label=""))
        form = TargetsForm([source], rules | {"by": rules["predictor"], "source": source.pk})
        if not form.is_valid():
            faults = form.errors.get_json_data()
            raise serializers.ValidationError(
                {name: [str(one["message"]) for one in rows] for name, rows in faults.items()}
            )
        job = request_sample(
            collection=collection, files=form.chosen_files, rules=form.rules, actor=self.person
        )
        return _accepted(request, slug, job)


def _accepted(request: Request, slug: str, job: Job) -> Response:
    """The answer of a request for a result: 202, the job, and its address."""
    where = address_of(request, "collection-job", slug, job.pk)
    headers = {"Location": where, "Retry-After": "2"}
    return Response(job_record(request, job), status=HTTPStatus.ACCEPTED, headers=headers)


def _choose(
    offered: Sequence[CollectionFile], named: str | list[str] | None, field: str, one: Inputs
) -> list[CollectionFile]:
    """The files of these names, or those that a form begins with; a 400 for an unknown name."""
    if named is None:
        return list(offered) if one.begins_with_all else []
    names = [named] if isinstance(named, str) else named
    rows = {file.name: file for file in offered}
    if unknown := [name for name in names if name not in rows]:
        text = _("{name} is none of the usable files: {names}.").format(
            name=unknown[0], names=", ".join(rows) or _("there are none")
        )
        raise serializers.ValidationError({field: [text]})
    return [rows[name] for name in dict.fromkeys(names)]


def _sample(collection: Collection, number: int) -> Result:
    """The sample of targets of that number; a 400 of the field where there is none."""
    samples = versions_of(collection, "targets")
    if (sample := samples.filter(number=number).first()) is None:
        text = _("There is no sample of targets {number}.").format(number=number)
        raise serializers.ValidationError({WEIGHTS: [text]})
    return cast(Result, sample)
