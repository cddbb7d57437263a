from http import HTTPStatus
from itertools import islice
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import Endpoint, Input, address_of
from console.api.operations import (
    answer_stretch,
    lists,
    page,
    reads,
    stretch_bounds,
    stretches,
    writes,
)
from results.kinds import read_rows
from results.models import Result
from simulation.api.experiments import MOST_SEED
from simulation.pages.forms import DEFAULT_MEASURES, RunForm
from simulation.pages.tables import StoredRun
from simulation.pages.view import ExperimentView, standing_of_run
from simulation.plans import EMBEDDING, MOST_TURNS, RANDOM
from simulation.stored_experiments import KIND, request_run, resume_run, stop_run
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


class ExperimentRunRowSerializer(serializers.ModelSerializer[Result]):
    """A run by some settings, which never change."""

    settings = serializers.DictField()

    class Meta:
        model = Result
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
        rows = Result.objects.of(self.experiment(slug), KIND)
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
) -> Result:
    experiment = endpoint.experiment(slug, permission)
    version: Result = get_object_or_404(experiment.versions, number=number)
    return version


def _record(version: Result) -> dict[str, Any]:
    standing = standing_of_run(version)
    names = ("n_done", "n_total", "is_finished", "is_under_way", "problems")
    record = dict(ExperimentRunRowSerializer(version).data)
    return record | {name: getattr(standing, name) for name in names} | content_of(version)


def _accepted(request: Request, slug: str, version: Result) -> Response:
    version.refresh_from_db(fields=["packed_record", "finished_at"])
    headers = {"Location": address_of(request, "run", slug, version.number), "Retry-After": "2"}
    return Response(_record(version), status=HTTPStatus.ACCEPTED, headers=headers)


class RunRowSerializer(serializers.Serializer[Any]):
    """What every row of a run names; `id` counts from one in its table."""

    id = serializers.IntegerField()
    recommender = serializers.CharField()
    user = serializers.CharField()
    measure = serializers.CharField()


class TurnResultSerializer(RunRowSerializer):
    """A mean over targets at a turn, with its interval; `reason` where there is none."""

    turn = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True)
    ci_low = serializers.FloatField(allow_null=True)
    ci_high = serializers.FloatField(allow_null=True)
    ci_method = serializers.CharField()
    reason = serializers.CharField()
    n_targets = serializers.IntegerField()
    judged = serializers.FloatField(
        allow_null=True, help_text="Share judged of the first ten items."
    )


class TargetValueSerializer(RunRowSerializer):
    """A target's value at the last turn, the mean over seeds."""

    target = serializers.CharField()
    value = serializers.FloatField()


class SensitivitySerializer(RunRowSerializer):
    """A mean under another choice, and Kendall's tau-b of the order of recommenders there."""

    choice = serializers.CharField(help_text="qrels, carry, turn, share judged or user.")
    value = serializers.CharField()
    mean = serializers.FloatField()
    tau = serializers.FloatField(allow_null=True)
    tau_low = serializers.FloatField(allow_null=True)
    tau_high = serializers.FloatField(allow_null=True)
    reason = serializers.CharField()


class Turns(Endpoint):
    @stretches("list_turns", TurnResultSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every mean at every turn of a run.

        Access: those who may export.
        """
        return _stretch(self, slug, number, "turns", TurnResultSerializer)


class TargetValues(Endpoint):
    @stretches("list_target_values", TargetValueSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every target's value of every measure at the last turn of a run.

        Access: those who may export.
        """
        return _stretch(self, slug, number, "targets", TargetValueSerializer)


class Sensitivity(Endpoint):
    @stretches("list_sensitivity", SensitivitySerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Every mean of a run under other choices of qrels, carrying, turn, share judged and user.

        Access: those who may export.
        """
        return _stretch(self, slug, number, "sensitivity", SensitivitySerializer)


def _stretch(
    endpoint: Endpoint, slug: str, number: int, table: str, serializer: type[RunRowSerializer]
) -> Response:
    version = _run(endpoint, slug, number, Permission.EXPORT)
    after, limit = stretch_bounds(endpoint.request)
    some = list(islice(read_rows(version, table, after=after), limit + 1))
    rows = [{"id": key, **row} for key, row in enumerate(some[:limit], after + 1)]
    last = after + limit if len(some) > limit else None
    return answer_stretch(endpoint.request, serializer(rows, many=True).data, limit, last)


Record = dict[str, Any]


def content_of(version: Result) -> Record:
    """`answer`, `details`, `tables`, `notes` and `faults`; all empty before the run is finished."""
    if version.finished_at is None:
        return {"answer": "", "details": [], "tables": {}, "notes": [], "faults": []}
    run = StoredRun(version)
    view = ExperimentView(run, {})
    names = ("comparisons", "causes", "switches", "improvements")
    columns = [name for name in TurnResultSerializer().get_fields() if name != "id"]
    results = [{name: getattr(row, name) for name in columns} for row in run.last.values()]
    return {
        "answer": view.answer.first_sentence,
        "details": list(view.answer.details),
        "tables": {"results": results} | {name: version.record[name] for name in names},
        "notes": version.record["notes"],
        "faults": version.record["faults"],
    }
