from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.items import SIMULATED
from annotation.models import Study
from annotation.study_facts import VALIDATION, has_simulated
from console.api.endpoint import Endpoint, Filters
from console.api.operations import being_computed, reads
from results.models import Result
from validation.analysis.records import CeilingRecord, plain
from validation.api.human_results import RecordSerializer
from validation.api.results import (
    CorrelationSerializer,
    is_pending,
)
from validation.pages.metric_agreement import BestMetrics, ValidationView
from validation.result_kinds.validation import ValidationKind
from validation.results import KINDS
from validation.versions import StoredResults

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
