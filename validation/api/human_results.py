"""What people's judgments say by themselves, as the Results page has it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import NotFound

from accounts.roles import Permission
from annotation.api.study_records import SIMULATED
from annotation.assignment_prices import AssignmentPrice, assignment_price
from annotation.models import Study
from annotation.pages.agreement_view import alphas_of
from annotation.simulated_answers import has_simulated
from console.api.endpoint import Endpoint, Filters
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.documents.rated_systems import is_told_apart
from validation.models import (
    HumanResults,
    HumanResultsBin,
    HumanResultsPair,
    HumanResultsQuestion,
    HumanResultsSystem,
    LowestRated,
)
from validation.pages.human_results import PAIR_FIELDS, SYSTEM_FIELDS, HumanResultsView

OF_A_PART = {
    "scope": "`all`; `unflagged`, without flagged work; `condition` or `protocol`, of one of them.",
    "by": "The condition, or the version of the protocol.",
}
LONG_TEXTS = ("candidate__text", "candidate__item__context")


class RatedSystemSerializer(serializers.ModelSerializer[HumanResultsSystem]):
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
    ci_low = serializers.FloatField(allow_null=True)
    ci_high = serializers.FloatField(allow_null=True)
    rank_low = serializers.IntegerField(help_text="The best rank that no test rules out.")
    rank_high = serializers.IntegerField()

    class Meta:
        model = HumanResultsSystem
        fields = [
            *("question", "scope", "by", "system", "mean", "ci_low", "ci_high", "method"),
            *("rank_low", "rank_high", "n_items", "n_annotators", "n_ratings"),
        ]


class RatedPairSerializer(serializers.ModelSerializer[HumanResultsPair]):
    """Two systems compared within items: `delta` is `a` less `b`; null where undefined."""

    scope = serializers.CharField(help_text=OF_A_PART["scope"])
    by = serializers.CharField(help_text=OF_A_PART["by"])
    p_adjusted = serializers.FloatField(allow_null=True, help_text="Holm's, within the part.")
    is_decided = serializers.SerializerMethodField(help_text="Whether a test tells them apart.")

    class Meta:
        model = HumanResultsPair
        fields = [
            *("question", "scope", "by", "a", "b", "delta", "se", "ci_low", "ci_high", "test"),
            *("freedom", "p", "p_adjusted", "is_decided", "estimand", "n_items", "n_annotators"),
            *("items_needed", "annotators_needed", "least_shown", "least_shown_of_twice"),
        ]

    def get_is_decided(self, pair: Any) -> bool:
        return is_told_apart(pair, pair.a) or is_told_apart(pair, pair.b)


class BinSerializer(serializers.ModelSerializer[HumanResultsBin]):
    """How many judgments of a system lie in a part of the scale."""

    class Meta:
        model = HumanResultsBin
        fields = ["question", "system", "position", "label", "n"]


class LowestSerializer(serializers.ModelSerializer[LowestRated]):
    """One of the candidates of a system that people rate lowest."""

    item = serializers.CharField(source="candidate.item.key")
    candidate = serializers.CharField(source="candidate.key")
    mean = serializers.FloatField()

    class Meta:
        model = LowestRated
        fields = ["question", "system", "rank", "item", "candidate", "mean", "n"]


class ResultQuestionSerializer(serializers.ModelSerializer[HumanResultsQuestion]):
    """A question: what its numbers are, and what is said of it in sentences."""

    measure = serializers.CharField(help_text="`mean`, `share`, `preferred` or `counts`.")
    comparison = serializers.CharField(help_text="`interval`, `ordinal` or `binary`.")
    n_judgments = serializers.IntegerField(
        help_text="Of a preference its answers, each one choice among an item's candidates."
    )
    scale_low = serializers.FloatField()
    scale_high = serializers.FloatField()
    answer = serializers.CharField()
    advice = serializers.ListField(
        child=serializers.CharField(),
        help_text="What speaks for chance, and what to buy next; prices for who may see money.",
    )
    agreement = serializers.CharField(help_text="Krippendorff's alpha, in words.")

    class Meta:
        model = HumanResultsQuestion
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
    endpoint: Endpoint, study: Study, version: HumanResults, question: str | None
) -> dict[str, Any]:
    """A version's rows, with what the page says of each question; 404 for an unknown question."""
    version.study = study
    price = assignment_price(study) if Permission.VIEW_MONEY in endpoint.permissions else None
    rows = _Rows(version)
    names = [question] if question else [one.question for one in rows.questions]
    if question and question not in {one.question for one in rows.questions}:
        raise NotFound(f"There is no question {question}.")
    lowest = LowestRated.objects.filter(version=version, question__in=names)
    if Permission.EXPORT not in endpoint.permissions:
        lowest = lowest.none()
    content = {
        **{name: getattr(version, name) for name in ("number", "fingerprint", "round")},
        "simulated": has_simulated(study),
        "n_flagged": version.n_flagged,
        "questions": [_described(rows.view(one, price)) for one in rows.of("questions", names)],
        "systems": rows.of("systems", names),
        "pairs": rows.of("pairs", names),
        "distributions": rows.of("bins", names),
        "lowest": lowest.select_related("candidate__item").defer(*LONG_TEXTS),
    }
    return dict(HumanResultsSerializer(content).data)


class _Rows:
    """The rows of all questions of a version, each kind read once."""

    def __init__(self, version: HumanResults) -> None:
        self.version = version
        self.questions = list(HumanResultsQuestion.objects.filter(version=version))
        self.systems = list(HumanResultsSystem.objects.filter(version=version))
        self.pairs = list(HumanResultsPair.objects.filter(version=version))
        self.bins = list(HumanResultsBin.objects.filter(version=version))
        self.study_questions = {one.name: one for one in version.study.questions.all()}
        self.alphas = list(alphas_of(version.study, version.round).select_related("question"))

    def of(self, kind: str, names: list[str]) -> list[Any]:
        return [row for row in getattr(self, kind) if row.question in names]

    def view(self, one: HumanResultsQuestion, price: AssignmentPrice | None) -> HumanResultsView:
        """What the page shows of a question, of the rows that are read already."""
        name = one.question
        view = HumanResultsView(
            self.version, self.questions, one, self.study_questions.get(name), price
        )
        systems = [(row.scope, row.by, _system(row)) for row in self.systems]
        pairs = [(row.scope, row.by, _pair(row)) for row in self.of("pairs", [name])]
        alphas = [row for row in self.alphas if row.question.name == name]
        view.use(systems, pairs, self.of("bins", [name]), alphas)
        return view


def _system(row: HumanResultsSystem) -> RatedSystemRecord:
    return RatedSystemRecord(*(getattr(row, name) for name in SYSTEM_FIELDS))


def _pair(row: HumanResultsPair) -> RatedPairRecord:
    return RatedPairRecord(*(getattr(row, name) for name in PAIR_FIELDS))


def _described(view: HumanResultsView) -> HumanResultsQuestion:
    """The question's row with the page's sentences, for its serializer."""
    row: Any = view.displayed
    row.answer, row.agreement = view.answer, view.agreement_text
    row.advice = view.verdict.sentences if view.verdict else []
    return view.displayed
