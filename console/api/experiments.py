"""Experiments with simulated users: made of judgments, run by settings, read as rows."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Team
from accounts.names import require_visible
from accounts.roles import Permission
from console.api.endpoint import Endpoint, Filters, Input, address_of
from console.api.experiment_records import content_of
from console.api.operations import lists, reads, stretches, writes
from console.api.paging import page, stretch
from console.experiments.catalogues import DRAWN, STAND_IN, STORED, chosen_catalogue
from console.experiments.forms import DEFAULT_MEASURES, RunForm
from console.experiments.sources import Source, source_of_qrels, source_of_study
from console.experiments.standing import standing_of_run
from simulation.models import (
    ExperimentVersion,
    SensitivityRow,
    StoredCatalogue,
    StoredExperiment,
    StoredRecommender,
    TargetValue,
    TurnResult,
)
from simulation.models.catalogues import NAME_LENGTH
from simulation.plans import EMBEDDING, MOST_TURNS, RANDOM, TRAINED
from simulation.stored_catalogues import MOST_DRAWN
from simulation.stored_experiments import create_experiment, request_run, resume_run, stop_run
from stats.ranking import measure

MOST_SEED = 2**31 - 1
LONGEST_USER = 200


def _choices(field: str) -> list[str]:
    """What a choice of the page's form may be, in the order in which it offers them."""
    return [str(key) for key, _title in RunForm.base_fields[field].choices]  # type: ignore[attr-defined]


class TeamFilters(Filters):
    team = serializers.SlugField(required=False, help_text="A team's short name.")


class CatalogueSerializer(serializers.ModelSerializer[StoredCatalogue]):
    """A catalogue that experiments and recommenders of its team are of."""

    team = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    kind = serializers.CharField(help_text="drawn, stand-in or files.")

    class Meta:
        model = StoredCatalogue
        fields = ["id", "name", "team", "kind", "n_items", "seed", "sha256", "created_at"]


class RecommenderSerializer(serializers.ModelSerializer[StoredRecommender]):
    """A recommender that was trained here, or is being trained."""

    spec = serializers.SerializerMethodField(help_text="As a run names it.")
    team = serializers.CharField(source="catalogue.team.slug")
    catalogue = serializers.IntegerField(source="catalogue_id")
    settings = serializers.DictField(source="rules")

    class Meta:
        model = StoredRecommender
        fields = [
            *("id", "spec", "name", "kind", "team", "catalogue", "settings", "n_epochs"),
            *("sha256", "created_at", "finished_at"),
        ]

    def get_spec(self, row: StoredRecommender) -> str:
        return f"{TRAINED}:{row.pk}"


class ExperimentSerializer(serializers.ModelSerializer[StoredExperiment]):
    """Judged targets and a catalogue, of which any number of runs is made."""

    team = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    catalogue = serializers.IntegerField(source="catalogue_id")
    study = serializers.SlugRelatedField[Any](
        slug_field="slug", read_only=True, allow_null=True, help_text="Whose judgments they are."
    )

    class Meta:
        model = StoredExperiment
        fields = [
            *("slug", "name", "team", "catalogue", "made_of", "study", "collection", "sha256"),
            *("n_targets", "n_judgments", "created_at"),
        ]


class ExperimentInput(Input):
    """Which judgments, by a study or a collection, and on which catalogue."""

    name = serializers.CharField(max_length=NAME_LENGTH, validators=[require_visible])
    study = serializers.SlugField(required=False, help_text="Whose judgments users may accept.")
    label_set = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_SEED, help_text="Its version, of that study."
    )
    round = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=32_767,
        help_text="Its judgments by majority, where there is no label set: 1 without it.",
    )
    collection = serializers.SlugField(required=False, help_text="Or the collection of a file,")
    qrels = serializers.CharField(required=False, help_text="and the file's name.")
    catalogue = serializers.CharField(
        default=STAND_IN,
        max_length=20,
        help_text="`stand-in`, `drawn`, or the number of a stored one.",
    )
    n_items = serializers.IntegerField(
        default=5000, min_value=2, max_value=MOST_DRAWN, help_text="Of a drawn catalogue."
    )
    catalogue_seed = serializers.IntegerField(default=0, min_value=0, max_value=MOST_SEED)

    def validate_catalogue(self, name: str) -> str:
        """The key by which a page names it."""
        if name in (DRAWN, STAND_IN):
            return name
        if not (name.isascii() and name.isdecimal()):
            text = _("{name} is neither drawn nor stand-in nor the number of a stored catalogue.")
            raise serializers.ValidationError(text.format(name=name))
        return f"{STORED}:{int(name)}"

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("study" in attrs) == ("collection" in attrs):
            raise serializers.ValidationError(_("Name a study, or a collection with its qrels."))
        if "collection" in attrs and "qrels" not in attrs:
            raise serializers.ValidationError({"qrels": [_("Name the file of the collection.")]})
        for name in ("label_set", "round"):
            if "collection" in attrs and name in attrs:
                raise serializers.ValidationError({name: [_("This is of studies.")]})
        if "study" in attrs and "qrels" in attrs:
            raise serializers.ValidationError({"qrels": [_("This is of collections.")]})
        if "label_set" in attrs and "round" in attrs:
            raise serializers.ValidationError({"round": [_("A label set has its own round.")]})
        return attrs


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
    qrels = serializers.ChoiceField(choices=_choices("qrels"), default="target and alternatives")
    relevant_from = serializers.IntegerField(default=1, min_value=1, max_value=100)
    carry = serializers.ChoiceField(choices=_choices("carry"), default="same list")
    repeats = serializers.BooleanField(
        default=True, help_text="Whether an item may be shown twice in a dialogue."
    )

    def validate_measures(self, names: list[str]) -> list[str]:
        """Their names as results have them."""
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


class Catalogues(Endpoint):
    @lists("list_catalogues", CatalogueSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The catalogues of one's teams, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = _filtered(StoredCatalogue.objects.visible_to(self.person), self, "team")
        return page(request, rows.select_related("team").order_by("-pk"), CatalogueSerializer)


class Recommenders(Endpoint):
    @lists("list_recommenders", RecommenderSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The recommenders that one's teams trained, or are training, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = StoredRecommender.objects.visible_to(self.person).defer("checkpoint")
        some = _filtered(rows, self, "catalogue__team").select_related("catalogue__team")
        return page(request, some.order_by("-pk"), RecommenderSerializer)


class Experiments(Endpoint):
    @lists("list_experiments", ExperimentSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The experiments of one's teams, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = _filtered(StoredExperiment.objects.visible_to(self.person), self, "team")
        rows = rows.select_related("team", "study").order_by("-pk")
        return page(request, rows, ExperimentSerializer)

    @writes("create_experiment", ExperimentInput, ExperimentSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request) -> Response:
        """Make an experiment of judgments, which are copied; nothing is run yet.

        Access: those who may analyse the study or the collection, and studies of its team.
        """
        asked = self.input(ExperimentInput)
        team, source = self._source(asked)
        catalogue = chosen_catalogue(asked["catalogue"], source, team, asked, self.person)
        row = create_experiment(
            team=team,
            name=asked["name"],
            catalogue=catalogue,
            judgments=source.judgments(),
            made_of=source.made_of,
            actor=self.person,
            study=source.study,
            collection=source.collection,
        )
        headers = {"Location": address_of(request, "experiment", row.slug)}
        content = ExperimentSerializer(row).data
        return Response(content, status=HTTPStatus.CREATED, headers=headers)

    def _source(self, asked: dict[str, Any]) -> tuple[Team, Source]:
        """The judgments and whose they are; 404 for those that are not visible, 403 where a role is
        too small."""
        if "collection" in asked:
            collection = self.collection(asked["collection"], Permission.ANALYSE)
            return collection.team, _found(source_of_qrels(collection, asked["qrels"]), "qrels")
        study = self.study(asked["study"], Permission.ANALYSE)
        if study.team is None:
            text = _("Experiments are a team's; move the study to one first.")
            raise serializers.ValidationError({"study": [text]})
        self.team(study.team.slug, Permission.ANALYSE)
        label_set, round = asked.get("label_set"), asked.get("round", 1)
        source = source_of_study(study, label_set=label_set, round=round)
        return study.team, _found(source, "study" if label_set is None else "label_set")


def _found(source: Source | None, field: str) -> Source:
    if source is None:
        text = _("There are no judgments there that simulated users could go by.")
        raise serializers.ValidationError({field: [text]})
    return source


def _filtered(rows: QuerySet[Any], endpoint: Endpoint, field: str) -> QuerySet[Any]:
    team = endpoint.filters(TeamFilters).get("team")
    return rows.filter(**{f"{field}__slug": team}) if team else rows


class OneExperiment(Endpoint):
    @reads("get_experiment", ExperimentSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """An experiment.

        Access: members of the team, but for who adjudicates blind.
        """
        return Response(ExperimentSerializer(self.experiment(slug)).data)


class Runs(Endpoint):
    @lists("list_runs", ExperimentRunRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The runs of an experiment, newest first.

        Access: members of the team, but for who adjudicates blind.
        """
        rows = self.experiment(slug).versions.order_by("-number")
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
    version = get_object_or_404(experiment.versions, number=number)
    version.experiment = experiment
    return version


def _record(version: ExperimentVersion) -> dict[str, Any]:
    standing = standing_of_run(version)
    names = ("n_done", "n_total", "is_finished", "is_under_way", "problems")
    record = dict(ExperimentRunRowSerializer(version).data)
    return record | {name: getattr(standing, name) for name in names} | content_of(version)


def _accepted(request: Request, slug: str, version: ExperimentVersion) -> Response:
    version.refresh_from_db(fields=["n_pieces", "finished_at"])
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
