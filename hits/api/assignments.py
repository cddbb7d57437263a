from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.core.cache import cache
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import record
from accounts.models import User
from accounts.roles import Permission
from annotation.api.jobs import accepted
from annotation.models import Study
from console.api.endpoint import Endpoint, Filters, Input
from console.api.errors import Conflict
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, writes
from hits.contacts import LONGEST_TEXT, answer_appeal, note_worker
from hits.drafts import price_usd, study_drafts
from hits.models import Appeal, Assignment
from hits.pages.desk import LISTS, WAITING, QueueRow, desk_facts, listed_assignments, queue_of
from hits.requirements import clear_workers
from hits.sending import request_sending

# Who reads lists of workers is named in the audit log once in so long.
OPENING = timedelta(minutes=30)


class FlagSerializer(serializers.Serializer[Any]):
    """What speaks against an assignment: in a word, in a sentence, and what others did."""

    short = serializers.CharField()
    title = serializers.CharField()
    text = serializers.CharField()


class AssignmentSerializer(serializers.Serializer[Any]):
    """What a worker handed in. What names the worker, and the comment, is null for who may not see
    workers; the price for who may not see money."""

    id = serializers.IntegerField(source="assignment.pk")
    assignment_id = serializers.SerializerMethodField()
    batch = serializers.IntegerField(source="assignment.hit.batch_id")
    item = serializers.CharField(source="assignment.hit.item.key")
    status = serializers.CharField(source="assignment.status")
    worker_id = serializers.SerializerMethodField()
    annotator = serializers.SerializerMethodField(help_text="The pseudonym in judgments.")
    submitted_at = serializers.DateTimeField(source="assignment.submitted_at")
    approves_at = serializers.DateTimeField(help_text="By itself, if nobody decides.")
    price_usd = serializers.SerializerMethodField(help_text="Of approving it, fee included.")
    justification = serializers.SerializerMethodField()
    comment = serializers.SerializerMethodField()
    flags = FlagSerializer(many=True)
    drafts = serializers.SerializerMethodField(help_text="What you decided, and did not send.")
    decision_problem = serializers.SerializerMethodField(
        help_text="Why the marketplace refused a decision."
    )

    def _may(self, permission: Permission) -> bool:
        return permission in self.context["request"]._request.permissions

    def get_assignment_id(self, row: QueueRow) -> str | None:
        return row.assignment.assignment_id if self._may(Permission.VIEW_WORKERS) else None

    def get_worker_id(self, row: QueueRow) -> str | None:
        return row.assignment.worker.worker_id if self._may(Permission.VIEW_WORKERS) else None

    def get_annotator(self, row: QueueRow) -> str | None:
        submission = row.assignment.submission
        return submission.annotator.pseudonym if submission else None

    def get_price_usd(self, row: QueueRow) -> str | None:
        return f"{price_usd(row.assignment):.2f}" if self._may(Permission.VIEW_MONEY) else None

    def get_justification(self, row: QueueRow) -> str:
        return row.assignment.submission.justification if row.assignment.submission else ""

    def get_comment(self, row: QueueRow) -> str | None:
        submission = row.assignment.submission
        return submission.comment if submission and self._may(Permission.VIEW_WORKERS) else None

    def get_drafts(self, row: QueueRow) -> list[str]:
        return [draft.action for draft in row.drafts]

    def get_decision_problem(self, row: QueueRow) -> str:
        return _problem(
            row.assignment.decision_problem, may_see_workers=self._may(Permission.VIEW_WORKERS)
        )


def _problem(text: str, *, may_see_workers: bool) -> str:
    return text if may_see_workers or not text else _("The marketplace refused it.")


class DeskFilters(Filters):
    show = serializers.ChoiceField(choices=list(LISTS), required=False, default=WAITING)


class _Queue:
    def __init__(self, study: Study, user: User, list_name: str) -> None:
        self.study, self.user, self.list_name = study, user, list_name

    def count(self) -> int:
        return listed_assignments(self.study, self.list_name).count()

    def __getitem__(self, rows: slice) -> Sequence[QueueRow]:
        return queue_of(
            self.study,
            self.user,
            self.list_name,
            facts=desk_facts(self.study, self.user),
            drafts=study_drafts(self.study),
            rows=rows,
        )


class Assignments(Endpoint):
    @lists("list_assignments", AssignmentSerializer, filters=DeskFilters)
    def get(self, request: Request, slug: str) -> Response:
        """One of the review desk's lists, flagged work first, then what waits the longest.

        Access: those who may review.
        """
        study = self.study(slug, Permission.REVIEW)
        list_name = self.filters(DeskFilters)["show"]
        is_named = Permission.VIEW_WORKERS in self.permissions
        if is_named and cache.add(
            f"desk:{study.pk}:{self.person.pk}", True, OPENING.total_seconds()
        ):
            record(team=study.team, actor=self.person, action="workers.view", subject=study.slug)
        return page(request, _Queue(study, self.person, list_name), AssignmentSerializer)


def assignment_of(study: Study, assignment_id: int) -> Assignment:
    return get_object_or_404(
        Assignment.objects.filter(hit__batch__study=study).select_related("hit__batch", "worker"),
        pk=assignment_id,
    )


class NoteInput(Input):
    note = serializers.CharField(max_length=LONGEST_TEXT, help_text="For the team alone.")


class Note(Endpoint):
    @writes("note_worker", NoteInput, NoteInput, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str, assignment_id: int) -> Response:
        """Remember something of the worker, for the team.

        Access: those who may review, in a study of a team.
        """
        study = self.study(slug, Permission.REVIEW)
        assignment, body = assignment_of(study, assignment_id), self.input(NoteInput)
        if study.team is None:
            raise Conflict(_("Notes are a team's; this study has none."))
        note_worker(
            team=study.team, worker=assignment.worker, text=body["note"], author=self.person
        )
        return Response(body, status=HTTPStatus.CREATED)


class DoneSerializer(serializers.Serializer[Any]):
    detail = serializers.CharField()


class Clearance(Endpoint):
    @writes("clear_worker", None, DoneSerializer)
    def post(self, request: Request, slug: str, assignment_id: int) -> Response:
        """Let a worker who waits for a look go on.

        Access: those who may review. The marketplace is told with the next collection.
        """
        study = self.study(slug, Permission.REVIEW)
        worker = assignment_of(study, assignment_id).worker
        clear_workers(study=study, workers=[worker], cleared_by=self.person)
        return Response(
            {"detail": _("The worker may go on as soon as answers are collected again.")}
        )


class AppealSerializer(serializers.ModelSerializer[Appeal]):
    assignment = serializers.IntegerField(source="assignment_id")
    item = serializers.CharField(source="assignment.hit.item.key")
    problem = serializers.SerializerMethodField(help_text="Why the answer could not be sent.")

    def get_problem(self, appeal: Appeal) -> str:
        return _problem(
            appeal.problem,
            may_see_workers=Permission.VIEW_WORKERS in self.context["request"]._request.permissions,
        )

    class Meta:
        model = Appeal
        fields = [
            *("assignment", "item", "reason", "appealed_at", "answer", "answered_at"),
            *("is_granted", "state", "problem"),
        ]


class Appeals(Endpoint):
    @lists("list_appeals", AppealSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What workers said to rejections, unanswered ones first.

        Access: those who may review.
        """
        return page(
            request,
            Appeal.objects.of(self.study(slug, Permission.REVIEW))
            .select_related("assignment__hit__item")
            .order_by("answered_at", "appealed_at", "pk"),
            AppealSerializer,
        )


class AppealAnswerInput(Input):
    answer = serializers.CharField(max_length=LONGEST_TEXT)


class AppealAnswer(Endpoint):
    @writes("answer_appeal", AppealAnswerInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str, assignment_id: int) -> Response:
        """Answer the appeal against a rejection; to grant it, the rejection is overridden as well.

        Access: those who may review.
        """
        study = self.study(slug, Permission.REVIEW)
        answer_appeal(
            appeal=get_object_or_404(Appeal.objects.of(study), assignment=assignment_id),
            answer=self.input(AppealAnswerInput)["answer"],
            actor=self.person,
            study=study,
        )
        return accepted(request, study, request_sending(study=study, requested_by=self.person))
