from decimal import Decimal
from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.models.studies import CountedStudy
from console.api.endpoint import Endpoint, Input
from console.api.errors import Conflict
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, reads, writes
from error_codes import require
from hits.api.batches import (
    LONGEST_PRICE,
    BatchSerializer,
    CostSerializer,
    batches_of,
    usd,
)
from hits.connections import close_connection
from hits.costs import set_budget
from hits.models import Batch, Budget, Connection
from hits.pages.launch import launch_batch
from hits.pages.pricing import LaunchView
from hits.pages.terms import LINKS, LISTED, MARKETPLACE, RECRUITER, SAMPLE, THE_REST
from hits.preflight import Level
from presentation.numbers import group_values

MOST_KEYS = 100_000
# Of these a form has one text: an entry a line, or with commas.
LINES = ("keys", "excluded_workers")


def _list(child: serializers.Field[Any, Any, Any, Any], help_text: str = "") -> Any:
    return serializers.ListField(
        child=child, max_length=MOST_KEYS, required=False, help_text=help_text
    )


def _integer(help_text: str = "", *, allow_null: bool = False) -> Any:
    return serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, allow_null=allow_null, help_text=help_text
    )


class LaunchTermsInput(Input):
    """How much is launched, for how much, to whom; what is left out is as the page begins with."""

    how = serializers.ChoiceField(
        choices=[SAMPLE, THE_REST, LISTED],
        required=False,
        help_text="A sample drawn at random, all that has no HIT yet, or the items in `keys`. Left "
        "out, a sample first and then all.",
    )
    n_items = _integer("Of a sample.")
    keys = _list(serializers.CharField(max_length=500), "Items, where `how` is `listed`.")
    reward_usd = serializers.DecimalField(max_digits=8, decimal_places=2, required=False)
    is_recruited = serializers.BooleanField(
        required=False,
        help_text="For participants whom a recruiter finds and pays, or for invited people.",
    )
    is_invited = serializers.BooleanField(
        required=False, help_text="For people who come by invitation links, unpaid."
    )
    hits_per_person = _integer("The most that one invited person can do: 1 to 100.")
    max_assignments = _integer("Workers for each item.")
    connection = _integer("The key of one of the team's marketplaces.")
    title = serializers.CharField(max_length=128, required=False)
    description = serializers.CharField(max_length=2000, required=False)
    keywords = serializers.CharField(max_length=1000, required=False, allow_blank=True)
    minutes = _integer("To finish a HIT.")
    days = _integer("On offer.")
    approval_days = _integer("Until work is approved by itself.")
    round = _integer("A second one asks again.")
    of_round = _integer("Only items that were asked about in this round.", allow_null=True)
    seed = _integer("By which items are drawn.")
    wave_size = _integer("9, or null for all at once.", allow_null=True)
    needs_masters = serializers.BooleanField(required=False)
    countries = _list(serializers.CharField(max_length=10))
    languages = _list(serializers.CharField(max_length=10))
    min_approval = _integer("Percent.", allow_null=True)
    min_approved = _integer("HITs.", allow_null=True)
    max_per_worker = _integer("HITs of the batch.", allow_null=True)
    excluded_rounds = _list(serializers.IntegerField(min_value=1, max_value=32_767))
    excluded_workers = serializers.ListField(
        child=serializers.CharField(max_length=64),
        max_length=MOST_KEYS,
        required=False,
        allow_null=True,
        help_text="Worker ids; null for those that the page begins with.",
    )
    budget_usd = serializers.DecimalField(
        max_digits=10, decimal_places=2, required=False, allow_null=True
    )


class LaunchPreviewInput(LaunchTermsInput):
    again = _integer("A batch whose items are asked about once more, on its terms.")


class LaunchInput(LaunchTermsInput):
    """The terms of a preview, and what was read in it."""

    part = serializers.IntegerField(
        min_value=1,
        max_value=32_767,
        help_text="Which batch of its round it is meant to be: the same again is the same batch.",
    )
    total_usd = serializers.DecimalField(
        max_digits=12, decimal_places=2, help_text="The price that was previewed."
    )
    confirm_usd = serializers.DecimalField(
        max_digits=12,
        decimal_places=2,
        required=False,
        help_text="The same, typed by somebody, where it is spent elsewhere than on this site.",
    )


class FindingSerializer(serializers.Serializer[Any]):
    level = serializers.ChoiceField(choices=[level.value for level in Level])
    message = serializers.CharField()
    field = serializers.CharField(help_text="The term that mends it; empty for none.")
    item_id = serializers.IntegerField(allow_null=True)
    protocol_field = serializers.CharField()
    reward_usd = serializers.DecimalField(
        max_digits=12, decimal_places=2, allow_null=True, help_text="A reward that mends it."
    )


class LaunchTermsSerializer(LaunchTermsInput):
    """All terms, to be sent back as they are."""

    connection = serializers.IntegerField(source="connection.pk")
    part = serializers.IntegerField()
    excluded_workers = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="Null, which means the same when sent back, where one named none and may not "
        "see workers."
    )

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.required = True
        return fields

    def get_excluded_workers(self, terms: dict[str, Any]) -> list[str] | None:
        named: list[str] = terms["excluded_workers"]
        return named if self.context["may_name_workers"] else None


class WageSerializer(serializers.Serializer[Any]):
    """What the reward comes to in an hour."""

    typical_usd = usd(max_digits=LONGEST_PRICE)
    least_usd = usd(max_digits=LONGEST_PRICE)
    most_usd = usd(max_digits=LONGEST_PRICE)


class LaunchPreviewSerializer(serializers.Serializer[Any]):
    """What launching on these terms would do."""

    terms = LaunchTermsSerializer(source="form.cleaned_data")
    n_items = serializers.IntegerField(source="choice.n_items")
    n_left = serializers.IntegerField(help_text="Items without a HIT, these among them.")
    cost = CostSerializer(allow_null=True, help_text="If every assignment is approved.")
    wage = WageSerializer(allow_null=True, help_text="Null of participants of a recruiter.")
    needs_amount = serializers.BooleanField(
        help_text="Whether `confirm_usd` must be sent: it is spent elsewhere than on this site."
    )
    is_pending = serializers.SerializerMethodField(
        help_text="Whether something is still being looked at; ask again in a moment."
    )
    is_ready = serializers.SerializerMethodField(help_text="Whether nothing holds the launch.")
    findings = FindingSerializer(many=True)
    job = JobSerializer(
        source="check_job", allow_null=True, help_text="What looks up what is pending."
    )

    def get_is_pending(self, view: LaunchView) -> bool:
        return bool(view.pending_findings)

    def get_is_ready(self, view: LaunchView) -> bool:
        return not view.is_held


class LaunchPreview(Endpoint):
    @writes("preview_launch", LaunchPreviewInput, LaunchPreviewSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """What a launch would cost to the cent, and everything that speaks against it.

        It changes nothing; what it needs to look up first is looked up in the background.

        Access: those who may spend.
        """
        study, terms = self.study(slug, Permission.SPEND), self.input(LaunchPreviewInput)
        again = terms.pop("again", None)
        view = _view(
            self,
            study,
            terms,
            again=Batch.objects.of(study).filter(pk=again).first() if again else None,
        )
        if view.draft is None:
            raise _refusal(view)
        may_name = Permission.VIEW_WORKERS in self.permissions or "excluded_workers" in terms
        return Response(
            LaunchPreviewSerializer(
                view, context={"may_name_workers": may_name, "request": request}
            ).data
        )


class Batches(Endpoint):
    @lists("list_batches", BatchSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What was launched, the first first; amounts for those who may see money.

        Access: whoever has a role in the study.
        """
        return page(request, batches_of(self.study(slug)).order_by("pk"), BatchSerializer)

    @writes("launch", LaunchInput, BatchSerializer, status=HTTPStatus.CREATED, spends=True)
    def post(self, request: Request, slug: str) -> Response:
        """Launch what was previewed: the batch is planned now, once, and published in the
        background.

        Access: those who may spend.
        """
        study, terms = self.study(slug, Permission.SPEND), self.input(LaunchInput)
        total, confirmed = terms.pop("total_usd"), terms.pop("confirm_usd", None)
        view = _view(self, study, terms, is_final=True)
        launched = launch_batch(
            view, total=f"{total:.2f}", amount="" if confirmed is None else f"{confirmed:.2f}"
        )
        if launched is None:
            raise _refusal(view)
        stored = batches_of(study).get(pk=launched[0].pk)
        return Response(
            BatchSerializer(stored, context={"request": request}).data, status=HTTPStatus.CREATED
        )


def _view(
    endpoint: Endpoint,
    study: CountedStudy,
    terms: dict[str, Any],
    *,
    again: Batch | None = None,
    is_final: bool = False,
) -> LaunchView:
    start = LaunchView(study, endpoint.person, again=again)
    require(
        start.connections, Conflict(_("The study's team has no open connection to a marketplace."))
    )
    require(
        study.archived_at is None,
        Conflict(_("The study is in the archive. Take it out to launch.")),
    )
    if terms.get("excluded_workers", ()) is None:
        del terms["excluded_workers"]
    if {"is_recruited", "is_invited"} & terms.keys():
        is_invited, is_recruited = (terms.pop(n, False) for n in ("is_invited", "is_recruited"))
        terms["source"] = LINKS if is_invited else RECRUITER if is_recruited else MARKETPLACE
    # A program confirms a part and a price, so that the rest can be what it means without a word.
    begun = {**start.form.data, "how": start.form.data["how"] or THE_REST}
    return LaunchView(
        study,
        endpoint.person,
        {**begun, **{name: _text(name, terms[name]) for name in terms}},
        is_final=is_final,
    )


def _text(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return ("\n" if name in LINES else ", ").join(map(str, value))
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return "" if value is None else value


def _refusal(view: LaunchView) -> Exception:
    if not view.faults:
        return Conflict(
            _("The pages and the account are being looked at. Preview again in a moment."),
            code="pending",
        )
    names = {"amount": "confirm_usd", "": "non_field_errors"}
    return serializers.ValidationError(
        group_values((names.get(each.field, each.field), each.message) for each in view.faults)
    )


class ConnectionSerializer(serializers.ModelSerializer[Connection]):
    """A marketplace the team is a requester at; its key is never answered."""

    is_on_this_site = serializers.BooleanField()

    class Meta:
        model = Connection
        fields = [
            *("id", "name", "marketplace", "endpoint_url", "fees", "is_on_this_site"),
            *("created_at", "closed_at", "problem"),
        ]


class Connections(Endpoint):
    @lists("list_connections", ConnectionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Where the team publishes.

        Access: members of the team who may see money.
        """
        team, _permissions = self.team(slug, Permission.VIEW_MONEY)
        return page(request, Connection.objects.of(team).order_by("pk"), ConnectionSerializer)


class OneConnection(Endpoint):
    @writes("close_connection", None, ConnectionSerializer)
    def delete(self, request: Request, slug: str, connection_id: int) -> Response:
        """Publish nothing more over a connection; what is out is still collected.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        row = get_object_or_404(Connection.objects.of(team), pk=connection_id)
        close_connection(connection=row, actor=self.person)
        row.refresh_from_db()
        return Response(ConnectionSerializer(row).data)


class BudgetInput(Input):
    cap_usd = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=0, allow_null=True, help_text="Null: no cap."
    )


class BudgetSerializer(BudgetInput):
    """What may be spent; the same that is sent to change it."""


class TeamBudget(Endpoint):
    @reads("get_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What the team may spend in all.

        Access: members of the team who may see money.
        """
        return self.answer(team=self.team(slug, Permission.VIEW_MONEY)[0])

    @writes("set_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that the team may spend in all; null for no cap.

        Access: those who may manage the team.
        """
        return self.set(team=self.team(slug, Permission.MANAGE)[0])

    def set(self, **subject: Any) -> Response:
        set_budget(**subject, **self.input(BudgetInput), actor=self.person)
        return self.answer(**subject)

    def answer(self, **subject: Any) -> Response:
        budget = Budget.objects.filter(**subject).first()
        return Response(BudgetSerializer({"cap_usd": budget.cap_usd if budget else None}).data)


class StudyBudget(TeamBudget):
    @reads("get_study_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What may be spent on the study in all.

        Access: those who may see money.
        """
        return self.answer(study=self.study(slug, Permission.VIEW_MONEY))

    @writes("set_study_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that may be spent on the study in all; null for no cap.

        Access: those who may manage the study.
        """
        return self.set(study=self.study(slug, Permission.MANAGE))
