from http import HTTPStatus
from typing import Any, cast

from django.forms.models import model_to_dict
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed, NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import Input
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, reads, stretch, stretches, writes
from results.api import (
    ResultRowSerializer,
    ResultsEndpoint,
    ShownResultSerializer,
    choose_inputs,
    input_class,
)
from results.kinds import result_kinds
from results.models import Result
from results.settings import Inputs
from results.shown import ShownResult
from retrieval.answers.evaluation import EvaluationView
from retrieval.answers.pools import PoolView, list_strata, sentence_of
from retrieval.models import (
    Collection,
    PoolFinding,
    ResultType,
    SampledTarget,
    TopicValue,
)
from retrieval.pages.targets import MOST_TARGETS, PREDICTORS, TargetsForm
from retrieval.result_kinds.evaluation import WEIGHTS, EvaluationKind, StoredEvaluation
from retrieval.result_kinds.pools import SOURCES, request_sample

Kind = ResultType
Record = dict[str, Any]
# The kinds of results, by their name in an address.
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


class UsedFileSerializer(serializers.Serializer[Any]):
    """A file that a result was computed of, as it was then."""

    kind = serializers.CharField()
    name = serializers.CharField()
    family = serializers.CharField()
    made_by = serializers.CharField()
    sha256 = serializers.CharField()


class CollectionResultSerializer(ShownResultSerializer):
    """A result with what the page says of it, and its tables."""

    files = UsedFileSerializer(many=True)

    class Meta(ShownResultSerializer.Meta):
        fields = [
            *ResultRowSerializer.Meta.fields,
            *("answer", "details", "files", "tables", "notes"),
        ]


def find_results(collection: Collection, kind: str) -> Any:
    name = KINDS.get(kind, kind)
    if kind not in KINDS and name not in result_kinds("collection"):
        raise NotFound(f"There are no results called {kind}; there are {', '.join(KINDS)}.")
    return Result.objects.of(collection, name)


class CollectionEndpoint(ResultsEndpoint):
    job_address = "collection-job"

    def page_of(self, request: Request, slug: str, kind: str) -> Response:
        return page(request, find_results(self.collection(slug), kind), ResultRowSerializer)

    def version(
        self, slug: str, kind: str, number: int, permission: Permission = Permission.VIEW
    ) -> Result:
        versions = find_results(self.collection(slug, permission), kind)
        return cast(Result, get_object_or_404(versions, number=number))


EvaluationInput = input_class(EvaluationKind)


class CollectionResults(CollectionEndpoint):
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
            serializers=[
                input_class(type(one))
                for one in result_kinds("collection").values()
                if one.inputs and one.name != Kind.EVALUATION
            ],
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
        declared = result_kinds("collection").get(KINDS.get(kind, kind))
        if declared is None or not declared.inputs:
            raise MethodNotAllowed("POST")
        return self.request_by_names(
            request, slug, collection, declared, self.input(input_class(type(declared)))
        )


class OneCollectionResult(CollectionEndpoint):
    @reads("get_collection_result", CollectionResultSerializer)
    def get(self, request: Request, slug: str, kind: str, number: int) -> Response:
        """A result with its first sentence, tables and notes.

        Access: members of the team, but for who adjudicates blind.
        """
        version = self.version(slug, kind, number)
        record = ResultRowSerializer(version).data | summarize_result(version)
        record["files"] = UsedFileSerializer(version.files.all(), many=True).data
        return Response(record)


class TopicValueSerializer(serializers.ModelSerializer[TopicValue]):
    """A run's value of a measure in a topic."""

    run = serializers.CharField(source="result.run.name")
    measure = serializers.CharField(source="result.measure.name")

    class Meta:
        model = TopicValue
        fields = ["id", "topic", "run", "measure", "value"]


class TopicValues(CollectionEndpoint):
    @stretches("list_topic_values", TopicValueSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every run's value of every measure in every topic of an evaluation.

        Access: those who may export.
        """
        related = TopicValue.objects.filter(
            result__version=self.version(slug, "evaluations", number, Permission.EXPORT)
        ).select_related("result__run", "result__measure")
        return stretch(request, related, TopicValueSerializer)


class Evaluations(CollectionEndpoint):
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
        return self.request_by_names(request, slug, collection, EvaluationKind(), values)


class SampledTargetSerializer(serializers.ModelSerializer[SampledTarget]):
    """A target that was drawn, with the value it was drawn by and how probable that was."""

    probability = serializers.FloatField(source="inclusion", help_text="Of being drawn.")

    class Meta:
        model = SampledTarget
        fields = ["id", "topic", "docno", "stratum", "value", "probability"]


class SampledTargets(CollectionEndpoint):
    @stretches("list_sampled_targets", SampledTargetSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """The targets of a sample, with the probability that estimates weigh them by.

        Access: those who may export.
        """
        version = self.version(slug, "targets", number, Permission.EXPORT)
        return stretch(
            request, SampledTarget.objects.filter(version=version), SampledTargetSerializer
        )


class SampleInput(Input):
    """What the Targets page asks for, by a predictor; a column of a file is for the page."""

    n = serializers.IntegerField(min_value=1, max_value=MOST_TARGETS)
    predictor = serializers.ChoiceField(choices=list(PREDICTORS))
    source = serializers.CharField(help_text="The name of a run, or of embeddings.")  # type: ignore[assignment]
    strata = serializers.IntegerField(default=4, min_value=1, max_value=100)
    allocation = serializers.ChoiceField(choices=["equal", "proportional"], default="equal")
    seed = serializers.IntegerField(default=7, min_value=0, max_value=2**31 - 1)


class TargetSamples(CollectionEndpoint):
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
        [source] = choose_inputs(Inputs(label=""), files, rules["source"], "source")
        form = TargetsForm([source], rules | {"by": rules["predictor"], "source": source.pk})
        if not form.is_valid():
            faults = form.errors.get_json_data()
            raise serializers.ValidationError(
                {name: [str(one["message"]) for one in rows] for name, rows in faults.items()}
            )
        job = request_sample(
            collection=collection, files=form.chosen_files, rules=form.rules, actor=self.person
        )
        return self.accept(request, slug, job)


def _sample(collection: Collection, number: int) -> Result:
    if (sample := find_results(collection, "targets").filter(number=number).first()) is None:
        text = _("There is no sample of targets {number}.").format(number=number)
        raise serializers.ValidationError({WEIGHTS: [text]})
    return cast(Result, sample)


def summarize_result(version: Result) -> Record:
    summarize = {
        Kind.EVALUATION.value: _summarize_evaluation,
        Kind.POOL.value: _summarize_pool,
        Kind.TARGETS.value: _summarize_sample,
    }.get(version.kind, lambda one: ShownResult(one).summarize())
    return summarize(version)


def _content(answer: str, details: list[str], tables: Record, notes: list[str]) -> Record:
    return {"answer": answer, "details": details, "tables": tables, "notes": notes}


def _summarize_evaluation(version: Result) -> Record:
    """The rows of `evaluate_runs --json`, without each topic's values."""
    rows = StoredEvaluation(version)
    answer = EvaluationView(rows, {}).answer
    record = rows.record(per_topic=False)
    tables = {name: record[name] for name in ("results", "comparisons", "groups", "runs")}
    if weighted := record.get("weighted"):
        tables |= {f"weighted_{name}": weighted[name] for name in ("means", "differences")}
    return _content(answer.first_sentence, answer.details, tables, record["notes"])


def _summarize_pool(version: Result) -> Record:
    view = PoolView(version)
    counts = {name: value for name, value in version.facts.items() if name != "n_topics"}
    tables = {
        "summary": [counts],
        "sources": version.record["sources"],
        "passed_over": [{"reason": reason, "n": n} for reason, n in view.replacements],
        "findings": [_read_row(one) for one in PoolFinding.objects.filter(version=version)],
    }
    return _content(view.answer, [view.soundness, view.hubs], tables, [])


def _summarize_sample(version: Result) -> Record:
    notes = [note["text"] for note in version.notes]
    return _content(sentence_of(version), [], {"strata": list_strata(version)}, notes)


def _read_row(row: Any) -> Record:
    return {
        name: value for name, value in model_to_dict(row).items() if name not in ("id", "version")
    }
