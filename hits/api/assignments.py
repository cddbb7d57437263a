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
from console.api.operations import lists, page, reads, writes
from hits.api.batches import usd, valid_data
from hits.contacts import LONGEST_SUBJECT, LONGEST_TEXT, answer_appeal, note_worker
from hits.drafts import (
    Action,
    draft_all,
    drafts_of,
    price_usd,
    study_drafts,
    summary_of,
    undo_draft,
)
from hits.models import Appeal, Assignment, DraftDecision
from hits.pages.desk import LISTS, WAITING, QueueRow, desk_facts, listed_assignments, queue_of
from hits.pages.rules import RULES, draft_by, rule_preview
from hits.requirements import clear_workers
from hits.sending import DraftsResult, record_drafts, request_sending, retry_refused

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
        answer = self.input(AppealAnswerInput)["answer"]
        answer_appeal(
            appeal=get_object_or_404(Appeal.objects.of(study), assignment=assignment_id),
            answer=answer,
            actor=self.person,
            study=study,
        )
        return accepted(request, study, request_sending(study=study, requested_by=self.person))


MOST_ASSIGNMENTS = 1000
# What needs more than the right to review.
SPENDING = (Action.PART_PAY, Action.BONUS, Action.OVERRIDE)


class DraftSerializer(serializers.ModelSerializer[DraftDecision]):
    assignment = serializers.IntegerField(source="assignment_id")

    class Meta:
        model = DraftDecision
        fields = ["id", "assignment", "action", "text", "subject", "amount_usd", "created_at"]


class SummarySerializer(serializers.Serializer[Any]):
    """What you decided and did not send, and what sending it comes to; amounts are null for who
    may not see money."""

    drafts = DraftSerializer(many=True)
    numbers = serializers.DictField(child=serializers.IntegerField(), help_text="By action.")
    digest = serializers.CharField(help_text="Names exactly these decisions; sent to send them.")
    total_usd = usd(allow_null=True)
    elsewhere_usd = usd(
        allow_null=True,
        help_text="Of it, what is spent elsewhere than on this site: typed to confirm it.",
    )


def _summary(endpoint: Endpoint, study: Study, *, status: HTTPStatus = HTTPStatus.OK) -> Response:
    summary = summary_of(drafts_of(study, endpoint.person))
    may_see_money = Permission.VIEW_MONEY in endpoint.permissions
    content = {
        "drafts": summary.drafts,
        "numbers": summary.numbers,
        "digest": summary.digest,
        "total_usd": summary.total_usd if may_see_money else None,
        "elsewhere_usd": summary.elsewhere_usd if may_see_money else None,
    }
    return Response(SummarySerializer(content).data, status=status)


class DecisionInput(Input):
    """One decision on some assignments."""

    assignments = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        min_length=1,
        max_length=MOST_ASSIGNMENTS,
        help_text="Their keys (`id`).",
    )
    action = serializers.ChoiceField(choices=Action.choices)
    text = serializers.CharField(
        max_length=LONGEST_TEXT,
        required=False,
        allow_blank=True,
        default="",
        help_text="Reason, feedback or message, for the worker; of a block, for the team.",
    )
    subject = serializers.CharField(
        max_length=LONGEST_SUBJECT, required=False, allow_blank=True, default=""
    )
    amount_usd = usd(
        max_digits=8,
        required=False,
        allow_null=True,
        default=None,
        help_text="Of a bonus or a part of the reward; what an override comes to with a part.",
    )


class Drafts(Endpoint):
    @reads("get_drafts", SummarySerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What you decided and did not send yet.

        Access: those who may review.
        """
        return _summary(self, self.study(slug, Permission.REVIEW))

    @writes("draft_decisions", DecisionInput, SummarySerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Decide so on all of these, or on none; nothing leaves before it is sent.

        Access: those who may review; what costs money, those who may spend.
        """
        study, body = self.study(slug, Permission.REVIEW), self.input(DecisionInput)
        action = Action(body.pop("action"))
        _require_spending(self, [action])
        assignments = _assignments(study, body.pop("assignments"))
        draft_all(reviewer=self.person, assignments=assignments, action=action, **body)
        return _summary(self, study, status=HTTPStatus.CREATED)


def _require_spending(endpoint: Endpoint, actions: list[Action]) -> None:
    if any(action in SPENDING for action in actions):
        endpoint.require(Permission.SPEND)


def _assignments(study: Study, keys: list[int]) -> list[Assignment]:
    rows = (
        Assignment.objects.filter(hit__batch__study=study)
        .select_related("hit__batch__connection", "worker")
        .in_bulk(keys)
    )
    if missing := [key for key in keys if key not in rows]:
        raise serializers.ValidationError(
            {"assignments": [_("The study has no assignment {key}.").format(key=missing[0])]}
        )
    return [rows[key] for key in sorted(rows)]


class UndoInput(Input):
    assignment = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The last about this one; without it, the last of all.",
    )


class Undo(Endpoint):
    @writes("undo_draft", UndoInput, DraftSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Take back what you decided last.

        Access: those who may review; each their own decisions.
        """
        study = self.study(slug, Permission.REVIEW)
        key = self.input(UndoInput).get("assignment")
        draft = undo_draft(
            reviewer=self.person, study=study, assignment=assignment_of(study, key) if key else None
        )
        if draft is None:
            raise Conflict(_("There is nothing to take back."))
        return Response(DraftSerializer(draft).data)


class RuleInput(Input):
    """A rule with its numbers: `hours`; `divisor` and `text`; or `least_approved`, `amount_usd`
    and `text`."""

    rule = serializers.ChoiceField(choices=list(RULES))
    hours = serializers.FloatField(required=False, min_value=0, max_value=366 * 24)
    divisor = serializers.FloatField(required=False, min_value=1, max_value=1_000_000)
    least_approved = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    amount_usd = usd(max_digits=8, required=False)
    text = serializers.CharField(required=False, max_length=LONGEST_TEXT)


class RuleDecisionInput(RuleInput):
    assignments = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        max_length=100_000,
        help_text="Those that the preview listed.",
    )


class RulePreviewSerializer(serializers.Serializer[Any]):
    """The assignments that a rule takes, and what deciding so on them comes to."""

    assignments = serializers.ListField(child=serializers.IntegerField())
    total_usd = usd(allow_null=True)


class RulePreviewEndpoint(Endpoint):
    @writes("preview_rule", RuleInput, RulePreviewSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Which assignments a rule takes. It decides nothing.

        Access: those who may review.
        """
        study, body = self.study(slug, Permission.REVIEW), self.input(RuleInput)
        name = body.pop("rule")
        preview = rule_preview(study, name, valid_data(RULES[name].form(body)))
        return Response(
            RulePreviewSerializer(
                {
                    "assignments": [one.pk for one in preview.assignments],
                    "total_usd": preview.summary.total_usd
                    if Permission.VIEW_MONEY in self.permissions
                    else None,
                }
            ).data
        )


class RuleDrafts(Endpoint):
    @writes("draft_by_rule", RuleDecisionInput, SummarySerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Decide by rule on what its preview listed, except what the rule does not take any more.

        Access: those who may review; a bonus, those who may spend.
        """
        study, body = self.study(slug, Permission.REVIEW), self.input(RuleDecisionInput)
        name, keys = body.pop("rule"), body.pop("assignments")
        rule = RULES[name]
        _require_spending(self, [rule.action])
        draft_by(
            name, reviewer=self.person, study=study, keys=keys, values=valid_data(rule.form(body))
        )
        return _summary(self, study, status=HTTPStatus.CREATED)


class SendInput(Input):
    digest = serializers.CharField(max_length=64, help_text="Of the summary that was read.")
    confirm_usd = usd(
        required=False,
        allow_null=True,
        default=None,
        help_text="The amount that is spent elsewhere, typed by somebody.",
    )


class SentSerializer(serializers.Serializer[Any]):
    """What was written down to be sent; what came too late, and why; the job that sends."""

    n_recorded = serializers.IntegerField()
    problems = serializers.ListField(child=serializers.CharField())
    job = JobSerializer(allow_null=True)


class Send(Endpoint):
    @writes("send_decisions", SendInput, SentSerializer, spends=True)
    def post(self, request: Request, slug: str) -> Response:
        """Send what you decided, exactly as the summary said, once.

        Access: those who may review; what costs more than was held, those who may spend.
        """
        study, body = self.study(slug, Permission.REVIEW), self.input(SendInput)
        _require_spending(self, [Action(draft.action) for draft in drafts_of(study, self.person)])
        result: DraftsResult = record_drafts(
            reviewer=self.person,
            study=study,
            digest=body["digest"],
            typed_usd=body["confirm_usd"],
            names_ids=Permission.VIEW_WORKERS in self.permissions,
        )
        is_any = bool(result.n_recorded)
        job = request_sending(study=study, requested_by=self.person) if is_any else None
        return Response(
            SentSerializer(
                {"n_recorded": result.n_recorded, "problems": result.problems, "job": job},
                context={"request": request},
            ).data
        )


class Retry(Endpoint):
    @writes("retry_refused", None, DoneSerializer, spends=True)
    def post(self, request: Request, slug: str) -> Response:
        """Send once more what the marketplace refused.

        Access: those who may review and spend.
        """
        self.study(slug, Permission.REVIEW)
        study = self.study(slug, Permission.SPEND)
        n = retry_refused(study=study)
        if n:
            request_sending(study=study, requested_by=self.person)
        return Response({"detail": _("{n} sent again.").format(n=n)})
