from dataclasses import asdict, fields
from typing import Any, get_args, get_type_hints

from rest_framework import serializers
from rest_framework.exceptions import NotFound

from accounts.roles import Permission
from annotation.api.items import SIMULATED
from annotation.assignment_facts import assignment_price
from annotation.models import Study
from annotation.study_facts import has_simulated
from console.api.endpoint import Endpoint, Filters
from results.models import Result
from validation.analysis.human_results import Bin, LowestCandidate, QuestionRecord
from validation.analysis.records import RatedPairRecord, RatedSystemRecord
from validation.documents.rated_systems import is_told_apart
from validation.pages.human_results import view_questions

FIELDS: dict[type, type[serializers.Field[Any, Any, Any, Any]]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
}


class RecordSerializer(serializers.Serializer[Any]):
    """The fields of `Meta.record` that `Meta.fields` names; those that need a help text, or are no
    fields of the record, are declared."""

    class Meta:
        record: type
        fields: list[str]

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        declared = super().get_fields()
        types = get_type_hints(self.Meta.record)
        return {
            name: declared[name] if name in declared else _make_field(types[name])
            for name in self.Meta.fields
        }


def _make_field(annotation: Any) -> serializers.Field[Any, Any, Any, Any]:
    kind, *rest = get_args(annotation) or (annotation,)
    return FIELDS[kind](allow_null=bool(rest))


OF_A_PART = {
    "scope": "`all`; `unflagged`, without flagged work; `condition` or `protocol`, of one of them.",
    "by": "The condition, or the version of the protocol.",
}


class RatedSystemSerializer(RecordSerializer):
    """A system's mean over items, the best first; null where undefined. Without a name it is all
    candidates together."""

    scope = serializers.CharField(help_text=OF_A_PART["scope"])
    by = serializers.CharField(help_text=OF_A_PART["by"])
    mean = serializers.FloatField(
        allow_null=True,
        help_text="Of comparisons the chance to be preferred, as `method` says: "
        "`bradley-terry-pair`, of two systems each to the other; `bradley-terry`, to one of "
        "middling strength; `wins`, the share of comparisons won.",
    )
    rank_low = serializers.IntegerField(help_text="The best rank that no test rules out.")

    class Meta:
        record = RatedSystemRecord
        fields = [
            *("question", "scope", "by", "system", "mean", "ci_low", "ci_high", "method"),
            *("rank_low", "rank_high", "n_items", "n_annotators", "n_ratings"),
        ]


class RatedPairSerializer(RecordSerializer):
    """Two systems compared within items: `delta` is `a` less `b`; null where undefined."""

    scope = serializers.CharField(help_text=OF_A_PART["scope"])
    by = serializers.CharField(help_text=OF_A_PART["by"])
    p_adjusted = serializers.FloatField(allow_null=True, help_text="Holm's, within the part.")
    is_decided = serializers.SerializerMethodField(help_text="Whether a test tells them apart.")

    class Meta:
        record = RatedPairRecord
        fields = [
            *("question", "scope", "by", "a", "b", "delta", "se", "ci_low", "ci_high", "test"),
            *("freedom", "p", "p_adjusted", "is_decided", "estimand", "n_items", "n_annotators"),
            *("items_needed", "annotators_needed", "least_shown", "least_shown_of_twice"),
        ]

    def get_is_decided(self, row: dict[str, Any]) -> bool:
        pair = RatedPairRecord(**{one.name: row[one.name] for one in fields(RatedPairRecord)})
        return is_told_apart(pair, pair.a) or is_told_apart(pair, pair.b)


class BinSerializer(RecordSerializer):
    """How many judgments of a system lie in a part of the scale."""

    class Meta:
        record = Bin
        fields = ["question", "system", "position", "label", "n"]


class LowestSerializer(RecordSerializer):
    """One of the candidates of a system that people rate lowest."""

    class Meta:
        record = LowestCandidate
        fields = ["question", "system", "rank", "item", "candidate", "mean", "n"]


class ResultQuestionSerializer(RecordSerializer):
    """A question: what its numbers are, and what is said of it in sentences."""

    measure = serializers.CharField(help_text="`mean`, `share`, `preferred` or `counts`.")
    comparison = serializers.CharField(help_text="`interval`, `ordinal` or `binary`.")
    n_judgments = serializers.IntegerField(
        help_text="Of a preference its answers, each one choice among an item's candidates."
    )
    answer = serializers.CharField()
    advice = serializers.ListField(
        child=serializers.CharField(),
        help_text="What speaks for chance, and what to buy next; prices for who may see money.",
    )
    agreement = serializers.CharField(help_text="Krippendorff's alpha, in words.")

    class Meta:
        record = QuestionRecord
        fields = [
            *("question", "measure", "comparison", "scale_low", "scale_high", "n_judgments"),
            *("n_items", "n_annotators", "n_items_with", "answer", "advice", "agreement"),
        ]


class HumanResultsSerializer(serializers.Serializer[Any]):
    """The results of the first round that was judged, as they are stored."""

    number = serializers.IntegerField(help_text="Counts up whenever they are computed anew.")
    simulated = serializers.BooleanField(help_text=SIMULATED)
    fingerprint = serializers.CharField(help_text="Of what they rest on.")
    round = serializers.IntegerField()
    n_flagged = serializers.IntegerField(help_text="Flagged submissions.")
    questions = ResultQuestionSerializer(many=True)
    systems = RatedSystemSerializer(many=True)
    pairs = RatedPairSerializer(many=True)
    distributions = BinSerializer(many=True)
    lowest = LowestSerializer(
        many=True, help_text="Empty for who may not export: whose responses they are is not said."
    )


class HumanResultsFilters(Filters):
    question = serializers.CharField(required=False, help_text="Of this one alone.")


def results_record(
    endpoint: Endpoint, study: Study, version: Result, question: str | None
) -> dict[str, Any]:
    price = assignment_price(study) if Permission.VIEW_MONEY in endpoint.permissions else None
    views, record = view_questions(study, version, price), version.record
    if question and question not in views:
        raise NotFound(f"There is no question {question}.")
    names = [question] if question else list(views)
    of_names = {
        name: [row for row in record[name] if row["question"] in names]
        for name in ("systems", "pairs", "bins", "lowest")
    }
    content = {
        **{name: getattr(version, name) for name in ("number", "fingerprint")},
        **{name: record[name] for name in ("round", "n_flagged")},
        "simulated": has_simulated(study),
        "questions": [
            {
                **asdict(view.displayed),
                "answer": view.answer,
                "advice": view.verdict.sentences if view.verdict else [],
                "agreement": view.agreement_text,
            }
            for view in (views[name] for name in names)
        ],
        "systems": of_names["systems"],
        "pairs": of_names["pairs"],
        "distributions": of_names["bins"],
        "lowest": of_names["lowest"] if Permission.EXPORT in endpoint.permissions else [],
    }
    return dict(HumanResultsSerializer(content).data)
