from http import HTTPStatus
from typing import Any

from django.forms.models import model_to_dict
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import Endpoint, Input, address_of
from console.api.operations import lists, page, reads, stretch, stretches, writes
from simulation.api.experiments import MOST_SEED
from simulation.models import ExperimentVersion, SensitivityRow, TargetValue, TurnResult
from simulation.pages.forms import DEFAULT_MEASURES, RunForm
from simulation.pages.tables import StoredRun
from simulation.pages.view import ExperimentView, standing_of_run
from simulation.plans import EMBEDDING, MOST_TURNS, RANDOM
from simulation.stored_experiments import request_run, resume_run, stop_run
from stats.ranking import measure

LONGEST_USER = 200


def _choices(field: str) -> list[str]:
    return [str(key) for key, _title in RunForm.base_fields[field].choices]  # type: ignore[attr-defined]


class ExperimentRunInput(Input):
    """Users, recommenders, and how dialogues are run; what is left out is as the page begins."""

    users = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_USER),
        default=["base", "tol:3", "prob:3:0.75"],
        max_length=100,
        help_text="As `simulate --user` names them; the first is `base`.",
    )
    recommenders = serializers.ListField(
        child=serializers.CharField(max_length=40),
        default=[RANDOM, EMBEDDING],
        max_length=100,
        help_text="`random`, `embedding`, or the `spec` of one that was trained on the catalogue.",
    )
    measures = serializers.ListField(
        child=serializers.CharField(max_length=100), default=list(DEFAULT_MEASURES), max_length=100
    )
    n_turns = serializers.IntegerField(default=10, min_value=1, max_value=MOST_TURNS)
    seeds = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=MOST_SEED),
        default=[0],
        max_length=100,
    )
    mode = serializers.ChoiceField(choices=_choices("mode"), default="paper")
    qrels = serializers.ChoiceField(choices=_choices("qrels"), default="accepted")
    relevant_from = serializers.IntegerField(default=1, min_value=1, max_value=100)
    carry = serializers.ChoiceField(choices=_choices("carry"), default="one")
    repeats = serializers.BooleanField(
        default=True, help_text="Whether an item may be shown twice in a dialogue."
    )

    def validate_measures(self, names: list[str]) -> list[str]:
        try:
            return list(dict.fromkeys(measure(name).name for name in names))
        except ValueError as error:
            raise serializers.ValidationError(f"{error}.") from None


class ExperimentRunRowSerializer(serializers.ModelSerializer[ExperimentVersion]):
    """A run by some settings, which never change."""

    settings = serializers.DictField(source="rules")

    class Meta:
        model = ExperimentVersion
        fields = ["number", "settings", "fingerprint", "created_at", "finished_at"]


class ExperimentRunSerializer(ExperimentRunRowSerializer):
    """A run, how far it is, and once it is finished what its page says, with its tables."""

    n_done = serializers.IntegerField(help_text="Parts that are done.")
    n_total = serializers.IntegerField(help_text="Of so many; 0 where that is not known yet.")
    is_finished = serializers.BooleanField()
    is_under_way = serializers.BooleanField(
        help_text="False too where it was stopped or failed; `resume/` goes on."
    )
    problems = serializers.ListField(child=serializers.CharField())
    answer = serializers.CharField(help_text="The first sentence of its page; empty before.")
    details = serializers.ListField(child=serializers.CharField())
    tables = serializers.DictField(
        child=serializers.ListField(child=serializers.DictField()),
        help_text="`results` of the last turn, `comparisons`, `causes`, `switches`, `improvements`",
    )
    notes = serializers.ListField(child=serializers.CharField())
    faults = serializers.ListField(
        child=serializers.CharField(), help_text="Cells of the design that cannot be."
    )

    class Meta(ExperimentRunRowSerializer.Meta):
        fields = [
            *ExperimentRunRowSerializer.Meta.fields,
            *("n_done", "n_total", "is_finished", "is_under_way", "problems"),
            *("answer", "details", "tables", "notes", "faults"),
        ]


class Runs(Endpoint):
    @lists("list_runs", ExperimentRunRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The runs of an experiment, newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        rows = self.experiment(slug).versions.order_by("-number").defer("packed_record")
        return page(request, rows, ExperimentRunRowSerializer)

    @writes("request_run", ExperimentRunInput, ExperimentRunSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Have an experiment run in the background; by the same settings it is the run there is.

        Access: those who may analyse.
        """
        experiment = self.experiment(slug, Permission.ANALYSE)
        rules = self.input(ExperimentRunInput)
        version = request_run(experiment=experiment, rules=rules, actor=self.person)
        return _accepted(request, slug, version)


class OneRun(Endpoint):
    @reads("get_run", ExperimentRunSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """A run: how far it is; once finished, its first sentence, tables and notes.

        Access: members of the team, but for who adjudicates blind.
        """
        return Response(_record(_run(self, slug, number)))


class StopRun(Endpoint):
    @writes("stop_run", None, ExperimentRunSerializer)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """End what waits and what runs; what is done stays.

        Access: those who may analyse.
        """
        version = _run(self, slug, number, Permission.ANALYSE)
        stop_run(version=version)
        return Response(_record(version))


class ResumeRun(Endpoint):
    @writes("resume_run", None, ExperimentRunSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have done what of a run is not done; nothing where all of it is.

        Access: those who may analyse.
        """
        version = _run(self, slug, number, Permission.ANALYSE)
        resume_run(version=version, actor=self.person)
        return _accepted(request, slug, version)


def _run(
    endpoint: Endpoint, slug: str, number: int, permission: Permission = Permission.VIEW
) -> ExperimentVersion:
    experiment = endpoint.experiment(slug, permission)
    version: ExperimentVersion = get_object_or_404(experiment.versions, number=number)
    return version


def _record(version: ExperimentVersion) -> dict[str, Any]:
    standing = standing_of_run(version)
    names = ("n_done", "n_total", "is_finished", "is_under_way", "problems")
    record = dict(ExperimentRunRowSerializer(version).data)
    return record | {name: getattr(standing, name) for name in names} | content_of(version)


def _accepted(request: Request, slug: str, version: ExperimentVersion) -> Response:
    version.refresh_from_db(fields=["n_pieces", "packed_record", "finished_at"])
    headers = {"Location": address_of(request, "run", slug, version.number), "Retry-After": "2"}
    return Response(_record(version), status=HTTPStatus.ACCEPTED, headers=headers)


class OfRunSerializer(serializers.ModelSerializer[Any]):
    """What every row of a run names."""

    recommender = serializers.CharField(source="recommender.name")
    user = serializers.CharField(source="user.name")


class TurnResultSerializer(OfRunSerializer):
    """A mean over targets at a turn, with its interval; `reason` where there is none."""

    class Meta:
        model = TurnResult
        fields = [
            *("id", "recommender", "user", "measure", "turn", "mean", "ci_low", "ci_high"),
            *("ci_method", "reason", "n_targets", "judged"),
        ]


class TargetValueSerializer(OfRunSerializer):
    """A target's value at the last turn, the mean over seeds."""

    class Meta:
        model = TargetValue
        fields = ["id", "recommender", "user", "measure", "target", "value"]


class SensitivitySerializer(OfRunSerializer):
    """A mean under another choice, and Kendall's tau-b of the order of recommenders there."""

    class Meta:
        model = SensitivityRow
        fields = [
            *("id", "recommender", "user", "measure", "choice", "value", "mean"),
            *("tau", "tau_low", "tau_high", "reason"),
        ]


class Turns(Endpoint):
    @stretches("list_turns", TurnResultSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every mean at every turn of a run.

        Access: those who may export.
        """
        rows = _run(self, slug, number, Permission.EXPORT).results
        return stretch(request, rows.select_related("recommender", "user"), TurnResultSerializer)


class TargetValues(Endpoint):
    @stretches("list_target_values", TargetValueSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every target's value of every measure at the last turn of a run.

        Access: those who may export.
        """
        rows = _run(self, slug, number, Permission.EXPORT).target_values
        return stretch(request, rows.select_related("recommender", "user"), TargetValueSerializer)


class Sensitivity(Endpoint):
    @stretches("list_sensitivity", SensitivitySerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every mean of a run under other choices of qrels, carrying, turn, share judged and user.

        Access: those who may export.
        """
        rows = _run(self, slug, number, Permission.EXPORT).sensitivity
        return stretch(request, rows.select_related("recommender", "user"), SensitivitySerializer)


Record = dict[str, Any]
OF_THE_DATABASE = ("id", "version")


def content_of(version: ExperimentVersion) -> Record:
    """`answer`, `details`, `tables`, `notes` and `faults`; all empty before the run is finished."""
    if version.finished_at is None:
        return {"answer": "", "details": [], "tables": {}, "notes": [], "faults": []}
    run = StoredRun(version)
    view = ExperimentView(run, {})
    names = ("comparisons", "causes", "switches", "improvements")
    return {
        "answer": view.answer.first_sentence,
        "details": list(view.answer.details),
        "tables": {"results": list(map(_row_record, run.last.values()))}
        | {name: version.record[name] for name in names},
        "notes": version.record["notes"],
        "faults": version.record["faults"],
    }


def _row_record(row: Any) -> Record:
    """With the names of recommender and user in place of keys."""
    values = {
        name: value for name, value in model_to_dict(row).items() if name not in OF_THE_DATABASE
    }
    return values | {
        name: getattr(row, name).name for name in ("recommender", "user") if name in values
    }
