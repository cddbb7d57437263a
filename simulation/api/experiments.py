from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Team
from accounts.names import require_visible
from accounts.roles import Permission
from annotation.relevance import Source, relevance_sources
from console.api.endpoint import Endpoint, Filters, Input, address_of
from console.api.operations import lists, page, reads, writes
from simulation.models import (
    StoredCatalogue,
    StoredExperiment,
    StoredRecommender,
)
from simulation.models.catalogue import NAME_LENGTH
from simulation.pages.catalogue import DRAWN, STAND_IN, STORED, chosen_catalogue
from simulation.plans import TRAINED
from simulation.stored_catalogues import MOST_DRAWN
from simulation.stored_experiments import create_experiment

MOST_SEED = 2**31 - 1


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
        if name in (DRAWN, STAND_IN):
            return name
        if not (name.isascii() and name.isdecimal()):
            raise serializers.ValidationError(
                _(
                    "{name} is neither drawn nor stand-in nor the number of a stored catalogue."
                ).format(name=name)
            )
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


class Catalogues(Endpoint):
    @lists("list_catalogues", CatalogueSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The catalogues of one's teams, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = _of_team(StoredCatalogue.objects.visible_to(self.person), self, "team")
        return page(request, rows.select_related("team").order_by("-pk"), CatalogueSerializer)


class Recommenders(Endpoint):
    @lists("list_recommenders", RecommenderSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The recommenders that one's teams trained, or are training, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = StoredRecommender.objects.visible_to(self.person).defer("checkpoint")
        some = _of_team(rows, self, "catalogue__team").select_related("catalogue__team")
        return page(request, some.order_by("-pk"), RecommenderSerializer)


class Experiments(Endpoint):
    @lists("list_experiments", ExperimentSerializer, filters=TeamFilters)
    def get(self, request: Request) -> Response:
        """The experiments of one's teams, newest first.

        Access: signed in; not of teams in which one adjudicates blind.
        """
        rows = _of_team(StoredExperiment.objects.visible_to(self.person), self, "team")
        rows = rows.select_related("team", "study").order_by("-pk")
        return page(request, rows, ExperimentSerializer)

    @writes("create_experiment", ExperimentInput, ExperimentSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request) -> Response:
        """Make an experiment of judgments, which are copied; nothing is run yet.

        Access: those who may analyse the study or the collection, and studies of its team.
        """
        asked = self.input(ExperimentInput)
        team, source = self._source(asked)
        row = create_experiment(
            team=team,
            name=asked["name"],
            catalogue=chosen_catalogue(asked["catalogue"], source, team, asked, self.person),
            judgments=source.judgments(),
            made_of=source.made_of,
            actor=self.person,
            study=source.study,
            collection=source.collection,
        )
        headers = {"Location": address_of(request, "experiment", row.slug)}
        return Response(ExperimentSerializer(row).data, status=HTTPStatus.CREATED, headers=headers)

    def _source(self, asked: dict[str, Any]) -> tuple[Team, Source]:
        """404 if the judgments are not visible, 403 if the role is not sufficient."""
        if "collection" in asked:
            collection = self.collection(asked["collection"], Permission.ANALYSE)
            return collection.team, _require_source(
                relevance_sources().find_qrels_source(collection, asked["qrels"]), "qrels"
            )
        study = self.study(asked["study"], Permission.ANALYSE)
        if study.team is None:
            raise serializers.ValidationError(
                {"study": [_("Experiments are a team's; move the study to one first.")]}
            )
        self.team(study.team.slug, Permission.ANALYSE)
        label_set, round = asked.get("label_set"), asked.get("round", 1)
        source = relevance_sources().find_study_source(study, label_set=label_set, round=round)
        return study.team, _require_source(source, "study" if label_set is None else "label_set")


def _require_source(source: Source | None, field: str) -> Source:
    if source is None:
        raise serializers.ValidationError(
            {field: [_("There are no judgments there that simulated users could go by.")]}
        )
    return source


def _of_team(rows: QuerySet[Any], endpoint: Endpoint, field: str) -> QuerySet[Any]:
    team = endpoint.filters(TeamFilters).get("team")
    return rows.filter(**{f"{field}__slug": team}) if team else rows


class OneExperiment(Endpoint):
    @reads("get_experiment", ExperimentSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """An experiment.

        Access: members of the team, but for who adjudicates blind.
        """
        return Response(ExperimentSerializer(self.experiment(slug)).data)
