from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.items import SIMULATED
from annotation.api.jobs import accepted
from annotation.disagreement import PositionRecord
from annotation.disputes import adjudication_queue
from annotation.models import Study
from annotation.pages.adjudication import QueueSelection
from annotation.pages.downloads import job_of
from annotation.result_kinds.agreement import (
    QuestionCoefficient,
    current_agreement,
    list_alphas,
    list_positions,
)
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import (
    AGREEMENT,
    REPORT,
    RESULTS,
    VALIDATION,
    has_simulated,
)
from console.api.endpoint import Endpoint, Filters, Input
from console.api.errors import ComputingFailed
from console.api.job_records import JobSerializer
from console.api.operations import being_computed, reads, writes
from results.models import Result
from validation.analysis.records import CeilingRecord, CorrelationRecord, plain
from validation.api.human_results import (
    HumanResultsFilters,
    HumanResultsSerializer,
    RecordSerializer,
    results_record,
)
from validation.pages.metric_agreement import BestMetrics, ValidationView
from validation.result_kinds.validation import ValidationKind, current_human_results
from validation.results import KINDS, correlations_of
from validation.versions import StoredResults
from work.models import Job


class AlphaSerializer(RecordSerializer):
    """Krippendorff's alpha on one question; null where undefined, and then with a reason."""

    by = serializers.CharField(help_text="The condition; empty for all of them.")
    warnings = serializers.ListField(child=serializers.CharField())
    simulated = serializers.BooleanField(help_text=SIMULATED)

    class Meta:
        record = QuestionCoefficient
        fields = [
            *("question", "by", "level", "value", "ci_low", "ci_high", "ci_method", "confidence"),
            *("observed", "expected", "n_items", "n_items_dropped", "n_annotators", "n_labels"),
            *("n_pairable", "reason", "warnings", "simulated"),
        ]


class PositionEffectSerializer(RecordSerializer):
    """What being shown first adds to an answer, compared with being shown last."""

    question = serializers.CharField()
    round = serializers.IntegerField()
    annotator = serializers.CharField(help_text="Empty for all of them together.")
    first = serializers.FloatField(help_text="Mean answer about the candidate shown first.")
    last = serializers.FloatField(help_text="Mean answer about the candidate shown last.")
    value = serializers.FloatField(
        help_text="The difference; 0 is expected if positions do not matter."
    )
    ci_low = serializers.FloatField(allow_null=True)
    ci_high = serializers.FloatField(allow_null=True)
    simulated = serializers.BooleanField(help_text=SIMULATED)

    class Meta:
        record = PositionRecord
        fields = [
            *("question", "round", "annotator", "n_pages", "n_annotators", "first", "last"),
            *("value", "ci_low", "ci_high", "simulated"),
        ]


class CorrelationSerializer(RecordSerializer):
    """One metric against one question at one level; null where undefined, with a reason."""

    by = serializers.CharField(help_text="The condition; empty for all of them.")

    class Meta:
        record = CorrelationRecord
        fields = [
            *("question", "by", "metric", "signature", "level", "coefficient", "value", "ci_low"),
            *("ci_high", "ci_method", "confidence", "n_resamples", "seed", "n_groups", "n_used"),
            *("n_too_few", "n_constant_human", "n_constant_metric", "n_rows", "n_missing"),
            "reason",
        ]


class StudyCorrelationSerializer(CorrelationSerializer):
    """One of all correlations of a study, with whether answers are simulated."""

    simulated = serializers.SerializerMethodField(help_text=SIMULATED)

    class Meta(CorrelationSerializer.Meta):
        fields = [*CorrelationSerializer.Meta.fields, "simulated"]

    def get_simulated(self, _row: object) -> bool:
        return bool(self.context["simulated"])


class OpinionSerializer(serializers.Serializer[Any]):
    """What one annotator gave, and why."""

    annotator = serializers.CharField()
    value = serializers.FloatField()
    category = serializers.CharField()
    justification = serializers.CharField()
    written = serializers.DictField(
        child=serializers.CharField(),
        help_text="Written answers of the page and about the candidate, by question.",
    )
    flag_reason = serializers.CharField()


class DecisionSerializer(serializers.Serializer[Any]):
    """What someone decided the value to be."""

    value = serializers.FloatField()
    note = serializers.CharField()
    decided_by = serializers.CharField()
    decided_at = serializers.CharField()


class DisputeSerializer(serializers.Serializer[Any]):
    """A candidate that its annotators do not agree on."""

    question = serializers.CharField()
    round = serializers.IntegerField()
    item_id = serializers.IntegerField()
    item = serializers.CharField()
    candidate_id = serializers.IntegerField()
    candidate = serializers.SerializerMethodField(
        help_text="Its key; the blind name for users who may not view systems."
    )
    blind_name = serializers.CharField(
        help_text="A product's key; of a system's response, a name that does not tell the system."
    )
    agreement = serializers.FloatField(allow_null=True)
    spread = serializers.FloatField(
        help_text="The share of the scale between the lowest and the highest value; at the "
        "nominal level, the share of judgments outside the most frequent category."
    )
    opinions = OpinionSerializer(many=True)
    decision = DecisionSerializer(allow_null=True)

    def get_candidate(self, row: dict[str, Any]) -> str:
        permissions = self.context["request"]._request.permissions
        return str(row["candidate" if Permission.VIEW_SYSTEMS in permissions else "blind_name"])


class QueueSerializer(serializers.Serializer[Any]):
    """Undecided disputes, least agreement first, and how many there are in all."""

    question = serializers.CharField()
    round = serializers.IntegerField()
    threshold = serializers.FloatField()
    n_disputed = serializers.IntegerField()
    n_decided = serializers.IntegerField()
    simulated = serializers.BooleanField(help_text=SIMULATED)
    disputes = DisputeSerializer(many=True)


class QueueFilters(Filters):
    question = serializers.CharField(required=False, help_text="The first of the study without it.")
    round = serializers.IntegerField(
        required=False, min_value=1, max_value=10_000, help_text="The first that was judged."
    )
    threshold = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=0.999_999,
        help_text="A share from 0 to below 1; without it, the one that fits the scale.",
    )
    skip = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1_000_000,
        help_text="How many to leave out at the start.",
    )


class Agreement(Endpoint):
    @reads("get_agreement", AlphaSerializer(many=True), is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """Krippendorff's alpha by question and condition.

        Access: whoever has a role in the study.
        """
        study = self.study(slug)
        version = None if is_pending(self, study, AGREEMENT) else current_agreement(study)
        if version is None:
            return being_computed()
        simulated, round = has_simulated(study), version.facts["first_round"]
        rows = [
            asdict(row) | {"simulated": simulated}
            for row in list_alphas(version)
            if row.with_flagged and row.round == round
        ]
        return Response(AlphaSerializer(rows, many=True).data)


class PositionEffects(Endpoint):
    @reads("get_position_effects", PositionEffectSerializer(many=True), is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """Position effects by question, of all annotators and of each, of pages whose candidates
        were shown in a random order.

        Access: whoever has a role in the study.
        """
        study = self.study(slug)
        version = None if is_pending(self, study, AGREEMENT) else current_agreement(study)
        if version is None:
            return being_computed()
        simulated = has_simulated(study)
        rows = [row | {"simulated": simulated} for row in list_positions(version)]
        return Response(PositionEffectSerializer(rows, many=True).data)


class Validation(Endpoint):
    @reads("get_validation", StudyCorrelationSerializer(many=True), is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """Every metric against every question, at every level; 404 while there is none.

        Access: those who may view systems.
        """
        study = self.study(slug, Permission.VIEW_SYSTEMS)
        is_missing = is_pending(self, study, VALIDATION)
        version = None if is_missing else ValidationKind().find_current(study)
        if version is None:
            return being_computed()
        if "reason" in version.facts:
            raise NotFound(version.facts["reason"])
        rows = correlations_of(StoredResults(version, with_variants=True))
        context = {"simulated": has_simulated(study)}
        return Response(StudyCorrelationSerializer(rows, many=True, context=context).data)


class Disputes(Endpoint):
    @reads("get_disputes", QueueSerializer, filters=QueueFilters, is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """The next 50 candidates whose judgments lie further apart than a threshold.

        Access: whoever has a role in the study.
        """
        study = self.study(slug)
        self.filters(QueueFilters)
        if is_pending(self, study, AGREEMENT):
            return being_computed()
        selection = QueueSelection.of(study, self.plain_request.GET)
        content = adjudication_queue(
            selection.question,
            round=selection.round,
            threshold=selection.threshold,
            skip=selection.skip,
        ).record(selection.question, selection.round)
        content |= {"simulated": has_simulated(study)}
        return Response(QueueSerializer(content, context={"request": request}).data)


def is_pending(endpoint: Endpoint, study: Study, name: str) -> bool:
    """Raises ComputingFailed if the job failed."""
    job = job_of(endpoint.plain_request, study, name)
    if job and job.state == Job.State.FAILED:
        raise ComputingFailed(job.message)
    return job is not None


class ResultInput(Input):
    result = serializers.ChoiceField(choices=[AGREEMENT, RESULTS, VALIDATION, REPORT])


class Results(Endpoint):
    @reads("get_results", HumanResultsSerializer, filters=HumanResultsFilters, is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """What people's judgments say by themselves: systems' means, what tells them apart, how
        values are spread, the lowest rated; 404 while nothing is judged.

        Access: those who may view systems; prices in its advice, those who may see money.
        """
        study, filters = (
            self.study(slug, Permission.VIEW_SYSTEMS),
            self.filters(HumanResultsFilters),
        )
        if not study.n_judgments:
            raise NotFound(_("Nothing is judged yet."))
        version = None if is_pending(self, study, RESULTS) else current_human_results(study)
        if version is None:
            return being_computed()
        return Response(results_record(self, study, version, filters.get("question")))

    @writes("compute_result", ResultInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Compute agreement, validation or the report in the background; what is computed of the
        same is not computed twice.

        Access: those who may analyse.
        """
        study = self.study(slug, Permission.ANALYSE)
        name = self.input(ResultInput)["result"]
        return accepted(request, study, find_study_kind(name).request(study, self.person))


# Without those of systems as people rate them, which are in the results without metrics.
ROWS = {name: kind for name, kind in KINDS.items() if not name.startswith("rated")}


class MetricFilters(Filters):
    """What the page chooses from; the first of each without it."""

    question = serializers.CharField(required=False)
    level = serializers.CharField(required=False, help_text="`system`, `item` or `pooled`.")
    coefficient = serializers.CharField(required=False)
    condition = serializers.CharField(required=False)


class CeilingSerializer(RecordSerializer):
    """What a perfect metric could reach against these ratings, and one more annotator does."""

    warning = serializers.CharField(
        allow_null=True,
        help_text="Why the ceiling is unreliable: `severe_annotators`, `top_heavy_scale`, "
        "`one_point_heavy_scale`, `tied_ratings` or `few_items`.",
    )

    class Meta:
        record = CeilingRecord
        fields = [
            *("attainable", "attainable_low", "attainable_high", "leave_one_out", "reason"),
            "warning",
        ]


class BestMetricsSerializer(serializers.Serializer[Any]):
    """The metrics that no test tells from the best, those behind them, and the ceiling."""

    report = serializers.IntegerField(help_text="The version of the validation.")
    simulated = serializers.BooleanField(help_text=SIMULATED)
    question = serializers.CharField()
    level = serializers.CharField()
    coefficient = serializers.CharField()
    condition = serializers.CharField(allow_blank=True)
    answer = serializers.CharField()
    explanation = serializers.CharField(allow_blank=True)
    estimate = serializers.CharField(allow_blank=True)
    ceiling_text = serializers.CharField()
    methods = serializers.CharField()
    top = CorrelationSerializer(many=True)
    behind = CorrelationSerializer(many=True)
    ceiling = CeilingSerializer(allow_null=True)


class BestMetricsEndpoint(Endpoint):
    @reads("get_best_metrics", BestMetricsSerializer, filters=MetricFilters, is_computed=True)
    def get(self, request: Request, slug: str) -> Response:
        """Which metrics agree with people best, beside the ceiling; 404 while there is none.

        Access: those who may view systems.
        """
        study, filters = self.study(slug, Permission.VIEW_SYSTEMS), self.filters(MetricFilters)
        if is_pending(self, study, VALIDATION):
            return being_computed()
        results = StoredResults(_version(study), with_variants=False)
        if not results.measures:
            raise NotFound("No metric can be set against people here.")
        try:
            view = ValidationView.from_query(results, filters)
        except KeyError as missing:
            raise NotFound(f"There is no {missing.args[0]}.") from missing
        return Response(_record(view, view.best))


def _version(study: Study) -> Result:
    result = ValidationKind().find_current(study)
    if result is None or "reason" in result.facts:
        raise NotFound(result.facts["reason"] if result else "It is not computed.")
    return result


def _record(view: ValidationView, best: BestMetrics) -> dict[str, Any]:
    names = ("answer", "explanation", "estimate", "ceiling_text", "ceiling")
    content = {
        "report": view.results.version.number,
        "simulated": has_simulated(view.results.subject),
        **{name: getattr(view, name) for name in ("question", "level", "coefficient", "condition")},
        **{name: getattr(best, name) for name in names},
        "methods": view.methods,
        "top": [row.record for row in best.top],
        "behind": [row.record for row in best.behind],
    }
    return dict(BestMetricsSerializer(content).data)


class ValidationRowsFilters(Filters):
    question = serializers.CharField(required=False, help_text="Of this one alone.")


class ValidationRowsSerializer(serializers.Serializer[Any]):
    """Every record of a kind, with the names and the precision of the report's CSV files."""

    report = serializers.IntegerField(help_text="The version of the validation.")
    fingerprint = serializers.CharField(help_text="Of what it rests on.")
    simulated = serializers.BooleanField(help_text=SIMULATED)
    kind = serializers.ChoiceField(choices=list(ROWS))
    rows = serializers.ListField(child=serializers.DictField())


class ValidationRows(Endpoint):
    @reads(
        "get_validation_rows",
        ValidationRowsSerializer,
        filters=ValidationRowsFilters,
        is_computed=True,
    )
    def get(self, request: Request, slug: str, kind: str) -> Response:
        """Comparisons of metrics, ceilings, systems, disagreements, worst candidates, sensitivity
        or plans, as they are stored; 404 while there is no validation.

        Access: those who may view systems.
        """
        study = self.study(slug, Permission.VIEW_SYSTEMS)
        filters = self.filters(ValidationRowsFilters)
        if kind not in ROWS:
            raise NotFound(f"There are no rows of {kind}; there are {', '.join(ROWS)}.")
        if is_pending(self, study, VALIDATION):
            return being_computed()
        version = _version(study)
        results = StoredResults(version, with_variants=True)
        records = results.rows(ROWS[kind], **filters)
        content = {"report": version.number, "fingerprint": results.fingerprint, "kind": kind}
        content |= {"simulated": has_simulated(study)}
        rows = [plain(record) for record in records]
        return Response(ValidationRowsSerializer(content | {"rows": rows}).data)
