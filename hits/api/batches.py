from http import HTTPStatus
from typing import Any

from django import forms
from django.db.models import Sum
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.jobs import accepted
from annotation.models import Study
from annotation.study_facts import COLLECT, request_study_job
from console.api.endpoint import Endpoint, Input
from console.api.job_records import JobSerializer
from console.api.operations import reads, writes
from hits.models import SIZE, Batch, BatchQuerySet, Hit
from hits.pages.changes import (
    CHANGES,
    Change,
    ConfirmationForm,
    Preview,
    displayed,
    make_change,
    needs_amount,
)
from hits.progress import BatchReport, batch_report


def usd(**options: Any) -> Any:
    return serializers.DecimalField(**{"max_digits": 12, "decimal_places": 2} | options)


# Of a report, what is null for who may not see money.
MONEY = ("hourly_usd", "spend", "statement", "difference_usd")
# Of a price that somebody asks for, however absurd the terms.
LONGEST_PRICE = 30


class CostSerializer(serializers.Serializer[Any]):
    """What something comes to if every assignment is approved."""

    n_hits = serializers.IntegerField()
    n_assignments = serializers.IntegerField()
    rewards_usd = usd(max_digits=LONGEST_PRICE)
    fees_usd = usd(max_digits=LONGEST_PRICE)
    total_usd = usd(max_digits=LONGEST_PRICE)


class BatchSerializer(serializers.ModelSerializer[Batch]):
    connection = serializers.CharField(source="connection.name")
    protocol = serializers.IntegerField(
        source="protocol.number", allow_null=True, help_text="The version that its workers see."
    )
    expires_at = serializers.SerializerMethodField()
    reward_usd = serializers.SerializerMethodField(
        help_text="Null for who may not see money, as every amount."
    )
    n_hits = serializers.IntegerField()
    n_published = serializers.IntegerField(help_text="Of its HITs.")
    n_collected = serializers.IntegerField(help_text="Assignments that came in.")

    class Meta:
        model = Batch
        fields = [
            *("id", "round", "part", "connection", "protocol", "title", "selection"),
            *("max_assignments", "n_added", "wave_size", "reward_usd"),
            *("is_recruited", "is_invited"),
            *("created_at", "expires_at"),
            *("closed_at", "collected_at", "n_hits", "n_published", "n_collected"),
        ]

    def get_expires_at(self, batch: Batch) -> str:
        return batch.offered_until.isoformat()

    def get_reward_usd(self, batch: Batch) -> str | None:
        return f"{batch.reward_usd:.2f}" if _may_see_money(self) else None


def _may_see_money(serializer: serializers.BaseSerializer[Any]) -> bool:
    return Permission.VIEW_MONEY in serializer.context["request"]._request.permissions


class QuartilesSerializer(serializers.Serializer[Any]):
    """The middle half of what was measured."""

    first = serializers.FloatField()
    median = serializers.FloatField()
    third = serializers.FloatField()
    n = serializers.IntegerField()


class SpendSerializer(serializers.Serializer[Any]):
    rewards_usd = usd()
    fees_usd = usd()
    bonuses_usd = usd()
    bonus_fees_usd = usd()
    total_usd = usd()


class StatementSerializer(SpendSerializer):
    """What the marketplace says of the batch's HITs."""

    held_usd = usd()
    fetched_at = serializers.DateTimeField()


class BatchReportSerializer(serializers.Serializer[Any]):
    batch = BatchSerializer()
    n_assignments = serializers.SerializerMethodField(help_text="Of its HITs, as intended.")
    n_approved = serializers.IntegerField()
    n_rejected = serializers.IntegerField()
    n_undecided = serializers.IntegerField()
    n_unreadable = serializers.IntegerField()
    n_workers = serializers.IntegerField()
    seconds = QuartilesSerializer(allow_null=True, help_text="That an assignment took.")
    hourly_usd = QuartilesSerializer(allow_null=True)
    dropout_share = serializers.FloatField(allow_null=True)
    spend = SpendSerializer(allow_null=True, help_text="By our record.")
    statement = StatementSerializer(
        allow_null=True, help_text="By the marketplace's, where it has one."
    )
    difference_usd = usd(allow_null=True, help_text="Zero where the ledgers agree.")

    def get_n_assignments(self, report: BatchReport) -> int:
        n: int = Hit.objects.of(report.batch).aggregate(n=Sum(SIZE, default=0))["n"]
        return n

    def to_representation(self, instance: BatchReport) -> dict[str, Any]:
        content: dict[str, Any] = super().to_representation(instance)
        return content if _may_see_money(self) else content | dict.fromkeys(MONEY)


class OneBatch(Endpoint):
    @reads("get_batch", BatchReportSerializer)
    def get(self, request: Request, slug: str, batch_id: int) -> Response:
        """A batch in numbers, with what it came to by both ledgers for those who may see money.

        Access: whoever has a role in the study.
        """
        report = batch_report(_batch(self.study(slug), batch_id))
        return Response(BatchReportSerializer(report, context={"request": request}).data)


def batches_of(study: Study) -> BatchQuerySet:
    return (
        Batch.objects.of(study)
        .select_related("study__team", "connection", "protocol")
        .progressing()
    )


def _batch(study: Study, batch_id: int) -> Batch:
    return get_object_or_404(batches_of(study), pk=batch_id)


class ChangeInput(Input):
    """The numbers of a change: `more` needs `n_more`; `extend` and `repost` need `expires_at`."""

    n_more = serializers.IntegerField(
        required=False, min_value=1, max_value=1000, help_text="More assignments of each HIT."
    )
    expires_at = serializers.DateTimeField(required=False, help_text="Open until then.")


class ChangeConfirmationInput(ChangeInput):
    """The same, and what was read in its preview."""

    n_added = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    expected_assignments = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    expected_usd = usd(min_value=0)
    confirm_usd = usd(
        required=False, help_text="Typed by somebody, where it is spent elsewhere than here."
    )


class ChangePreviewSerializer(serializers.Serializer[Any]):
    """What a change would do; `n_added` and the expected numbers are sent back to make it."""

    sentences = serializers.ListField(child=serializers.CharField())
    cost = CostSerializer()
    needs_amount = serializers.BooleanField()
    n_added = serializers.IntegerField()
    expected_assignments = serializers.IntegerField()
    expected_usd = usd()


class ChangePreview(Endpoint):
    @writes("preview_batch_change", ChangeInput, ChangePreviewSerializer)
    def post(self, request: Request, slug: str, batch_id: int, change: str) -> Response:
        """What `more`, `repost`, `extend`, `expire` or `close` would do and cost.

        Access: those who may spend.
        """
        batch = _batch(self.study(slug, Permission.SPEND), batch_id)
        kind, values = _change(change), self.input(ChangeInput)
        preview = kind.preview(batch, valid_data(kind.form(values)))
        content: dict[str, Any] = {"sentences": preview.sentences, "cost": preview.cost}
        content |= {"needs_amount": needs_amount(batch, preview)} | displayed(batch, preview)
        return Response(ChangePreviewSerializer(content).data)


class BatchChange(Endpoint):
    @writes(
        "change_batch",
        ChangeConfirmationInput,
        JobSerializer,
        status=HTTPStatus.ACCEPTED,
        spends=True,
    )
    def post(self, request: Request, slug: str, batch_id: int, change: str) -> Response:
        """Make a change as it was previewed; the marketplace hears of it from the job.

        Access: those who may spend.
        """
        study = self.study(slug, Permission.SPEND)
        batch, kind = _batch(study, batch_id), _change(change)
        body = self.input(ChangeConfirmationInput)
        values = valid_data(kind.form(body))
        return accepted(
            request,
            study,
            make_change(
                batch=batch,
                change=kind,
                values=values,
                confirmation=_confirmation(batch, kind.preview(batch, values), body),
                actor=self.person,
            ),
        )


def _change(name: str) -> Change:
    if name not in CHANGES:
        raise Http404(_("A batch has no such change."))
    return CHANGES[name]


def valid_data(form: forms.Form) -> dict[str, Any]:
    if not form.is_valid():
        errors: dict[str, Any] = dict(form.errors)
        raise serializers.ValidationError(errors)
    return form.cleaned_data


def _confirmation(batch: Batch, preview: Preview, body: dict[str, Any]) -> ConfirmationForm:
    typed = body.get("confirm_usd")
    data = {name: str(body[name]) for name in ("n_added", "expected_assignments", "expected_usd")}
    data["typed_usd"] = "" if typed is None else f"{typed:.2f}"
    form = ConfirmationForm(data, is_typed=needs_amount(batch, preview))
    if not form.is_valid():
        errors: dict[str, Any] = dict(form.errors)
        if "typed_usd" in errors:
            errors["confirm_usd"] = errors.pop("typed_usd")
        raise serializers.ValidationError(errors)
    return form


class Collection(Endpoint):
    @writes("collect", None, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Fetch what came in, in the background; the same that is under way is not doubled.

        Access: those who may edit.
        """
        study = self.study(slug, Permission.EDIT)
        return accepted(
            request, study, request_study_job(study=study, kind=COLLECT, requested_by=self.person)
        )
