"""What was computed of test collections: results of each kind, and requests for more."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.collection_records import content_of
from console.api.endpoint import Endpoint, Input, address_of
from console.api.jobs import JobSerializer, job_record
from console.api.operations import lists, reads, stretches, writes
from console.api.pagination import page, stretch
from console.collections.evaluation_form import CONFIDENCE
from console.collections.target_forms import MOST_TARGETS, PREDICTORS, TargetsForm
from results.computing import sign_result
from results.models import Result
from retrieval.models import (
    Collection,
    CollectionFile,
    ResultType,
    SampledTarget,
    TopicValue,
)
from retrieval.result_kinds.evaluation import WEIGHTS, request_evaluation
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
    if kind not in KINDS:
        raise NotFound(f"There are no results called {kind}; there are {', '.join(KINDS)}.")
    return Result.objects.of(collection, KINDS[kind])


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


class CollectionResults(ResultsEndpoint):
    @lists("list_collection_results", ResultRowSerializer)
    def get(self, request: Request, slug: str, kind: str) -> Response:
        """The results of a kind: evaluations, comparisons, reuse, machines, audits, pools, reports,
        targets; newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        return self.page_of(request, slug, kind)


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


class EvaluationInput(Input):
    """What the Evaluation page asks for; what is left out is as its form begins with."""

    qrels = serializers.CharField(help_text="The name of a file.")
    runs = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Names of files; all without it."
    )
    measures = serializers.ListField(
        child=serializers.CharField(max_length=200),
        default=["nDCG@10", "RR@10", "Judged@10"],
        max_length=100,
    )
    primary = serializers.ListField(
        child=serializers.CharField(max_length=200), default=list, max_length=100
    )
    missing = serializers.ChoiceField(choices=["common", "zero"], default="common")
    weights = serializers.IntegerField(
        required=False,
        min_value=1,
        help_text="The number of a sample of targets: means for all its targets too, each topic "
        "weighed by 1 / probability.",
    )
    ties = serializers.ChoiceField(choices=["falling", "rising"], default="falling")
    leave_out_without_relevant = serializers.BooleanField(default=False)
    single_precision = serializers.BooleanField(default=True)
    test = serializers.ChoiceField(
        choices=["randomisation", "t", "mcnemar"], allow_null=True, default=None
    )
    confidence = serializers.FloatField(default=CONFIDENCE, min_value=0.5, max_value=0.999)
    seed = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)


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
        rules = self.input(EvaluationInput)
        files = collection.files.usable().defer("faults")
        [qrels] = _named(files.qrels(), [rules.pop("qrels")], "qrels")
        runs = _named(files.runs(), rules.pop("runs", None), "runs")
        if number := rules.pop(WEIGHTS, None):
            rules[WEIGHTS] = _sample(collection, number).pk
        job = request_evaluation(
            collection=collection, qrels=qrels, runs=runs, rules=rules, actor=self.person
        )
        return _accepted(request, slug, job)


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
        [source] = _named(files, [rules["source"]], "source")
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


def _named(files: Any, names: list[str] | None, field: str) -> list[CollectionFile]:
    """The files of these names, or all; a 400 of the field for a name that none has."""
    rows = {file.name: file for file in files.order_by("name")}
    if names is None:
        return list(rows.values())
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
