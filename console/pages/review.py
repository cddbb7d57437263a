"""The review desk: deciding on submitted work, one by one, then sending all of it together."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.audit import record
from accounts.roles import Permission
from annotation.models import Study
from annotation.study_jobs import REVIEW, jobs_of, request_study_job
from console.forms import problems_of
from console.models import PagePreferences
from console.pages.study import person, study_for, study_page
from console.review_desk import (
    SHOWN,
    WAITING,
    QueueRow,
    history_of,
    listed_assignments,
    queue_of,
    rated_candidates,
    waiting_usd,
)
from console.review_forms import DecisionTextForm, NoteForm, SendForm, reasons_of
from hits.appeals import answer_appeal
from hits.contacts import note_worker
from hits.drafts import (
    Action,
    draft_decision,
    drafts_of,
    price_usd,
    record_drafts,
    summary_of,
    undo_draft,
)
from hits.exceptions import HitsError
from hits.models import Appeal, Assignment, Message, Payment, Sending
from hits.progress import first_auto_approval
from hits.sending import retry_refused

MOST_LISTED = 60
# A desk that was opened is the same opening for so long.
OPENING = timedelta(minutes=30)
SPENDING = (Action.PART_PAY, Action.BONUS, Action.OVERRIDE)
OF_STATUS = {
    Assignment.Status.SUBMITTED: (Action.REJECT, Action.PART_PAY),
    Assignment.Status.REJECTED: (Action.OVERRIDE,),
    Assignment.Status.APPROVED: (),
}


@require_safe
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review."""
    study = study_for(request, slug, Permission.REVIEW)
    show = request.GET.get("show", WAITING)
    show = show if show in SHOWN else WAITING
    may_view_workers = _may(request, Permission.VIEW_WORKERS)
    if may_view_workers:
        _record_opening(request, study)
    queue = queue_of(study, person(request), show, may_view_workers=may_view_workers)
    context = {
        "show": show,
        "queue": queue[:MOST_LISTED],
        "n_more": max(len(queue) - MOST_LISTED, 0),
        "n_queue": len(queue),
        "queue_usd": waiting_usd(queue) if show == WAITING else None,
        "due": first_auto_approval(study),
        "summary": summary_of(drafts_of(study, person(request))),
        "job": jobs_of(study).of_kind(REVIEW).first(),
        "refused": _refusals(study),
        "n_appeals": Appeal.objects.of(study).unanswered().count(),
        "has_letter_keys": has_letter_keys(request),
        "may_view_workers": may_view_workers,
    }
    if queue:
        context |= _submission(request, study, queue)
    return study_page(request, study, "review", context)


def _may(request: HttpRequest, permission: Permission) -> bool:
    return permission in request.permissions  # type: ignore[attr-defined]


def has_letter_keys(request: HttpRequest) -> bool:
    """Whether single letters decide; until somebody switches them off, they do."""
    preferences = PagePreferences.objects.filter(user=person(request)).first()
    return preferences is None or preferences.has_letter_keys


def _record_opening(request: HttpRequest, study: Study) -> None:
    """Whoever opens the desk sees who the workers are: once in the log for each opening."""
    key, now = f"desk:{study.pk}", timezone.now()
    last = request.session.get(key, 0)
    if now.timestamp() - last > OPENING.total_seconds():
        record(team=study.team, actor=person(request), action="workers.view", subject=study.slug)
    request.session[key] = now.timestamp()


def _refusals(study: Study) -> list[dict[str, Any]]:
    """What the marketplace refused, and why."""
    of_study = {"assignment__hit__batch__study": study}
    rows = [
        {"what": assignment.get_decision_display(), "about": assignment, "why": problem}
        for assignment in Assignment.objects.filter(hit__batch__study=study).refused()[:20]
        if (problem := assignment.decision_problem)
    ]
    payments = Payment.objects.filter(**of_study, state=Sending.REFUSED)
    texts = Message.objects.filter(**of_study, state=Sending.REFUSED)
    for payment in payments.select_related("assignment")[:20]:
        what = _("Payment of ${amount}").format(amount=payment.amount_usd)
        rows.append({"what": what, "about": payment.assignment, "why": payment.problem})
    for text in texts.select_related("assignment")[:20]:
        what = _("Message “{subject}”").format(subject=text.subject)
        rows.append({"what": what, "about": text.assignment, "why": text.problem})
    return rows


def _submission(request: HttpRequest, study: Study, queue: list[QueueRow]) -> dict[str, Any]:
    """The submission to decide now, with what the page says of it."""
    place = _place(request, queue)
    row = queue[place]
    assignment = row.assignment
    action = request.GET.get("do", "")
    if not _is_possible(request, row, action):
        action = ""
    submission = assignment.submission
    return {
        "row": row,
        "assignment": assignment,
        "item": assignment.hit.item,
        "price_usd": price_usd(assignment),
        "appeal": Appeal.objects.filter(assignment=assignment).first(),
        "candidates": rated_candidates(submission) if submission else [],
        "history": history_of(assignment, study),
        "n_place": place + 1,
        "before": queue[place - 1] if place else None,
        "after": queue[place + 1] if place + 1 < len(queue) else None,
        "is_waiting": assignment.status == Assignment.Status.SUBMITTED,
        "is_rejected": assignment.status == Assignment.Status.REJECTED,
        "action": action,
        "action_name": Action(action).label if action else "",
        "form": DecisionTextForm(action, initial=_initial(request, study, action))
        if action
        else None,
        "reasons": reasons_of(study) if action in (Action.REJECT, Action.PART_PAY) else [],
        "note_form": NoteForm(auto_id="note_%s", label_suffix=""),
    }


def _place(request: HttpRequest, queue: list[QueueRow]) -> int:
    """Where in the queue the named assignment is; else the first that nothing is drafted of."""
    named = request.GET.get("assignment", "")
    for place, row in enumerate(queue):
        if str(row.assignment.pk) == named:
            return place
    return next((place for place, row in enumerate(queue) if not row.drafts), 0)


def _is_possible(request: HttpRequest, row: QueueRow, action: str) -> bool:
    of_all = (Action.BONUS, Action.MESSAGE, Action.BLOCK, Action.UNBLOCK)
    possible = (*OF_STATUS[Assignment.Status(row.assignment.status)], *of_all)
    return action in possible and (action not in SPENDING or _may(request, Permission.SPEND))


def _initial(request: HttpRequest, study: Study, action: str) -> dict[str, Any]:
    """A template of reasons that the address names, as a text to start from."""
    title = request.GET.get("reason", "")
    text = next((text for name, text in reasons_of(study) if name == title), "")
    return {"text": text} if action in (Action.REJECT, Action.PART_PAY) else {}


def _assignment(study: Study, assignment_id: int) -> Assignment:
    rows = Assignment.objects.filter(hit__batch__study=study).select_related(
        "hit__batch__connection", "worker", "submission"
    )
    return get_object_or_404(rows, pk=assignment_id)


def _desk(study: Study, **query: Any) -> str:
    named = {name: value for name, value in query.items() if value}
    return reverse("console:review", args=[study.slug], query=named)


@require_POST
def draft(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review; what costs money, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    assignment = _assignment(study, assignment_id)
    action = request.POST.get("action", "")
    if action not in Action.values:
        messages.error(request, _("Nothing was decided: choose what to do."))
        return redirect(_desk(study, assignment=assignment_id))
    if action in SPENDING and not _may(request, Permission.SPEND):
        raise PermissionDenied(_("Your role does not allow spending; a manager can change it."))
    show = request.POST.get("show", "")
    problem = _drafted(request, assignment, action)
    if problem:
        messages.error(request, _("Nothing was decided. {problem}").format(problem=problem))
        return redirect(_desk(study, show=show, assignment=assignment_id, do=action))
    label = Action(action).label
    name = assignment.hit.item.key
    messages.success(request, _("{label}: {name}, not sent yet.").format(label=label, name=name))
    return redirect(_desk(study, show=show, assignment=_next(study, assignment, show)))


def _drafted(request: HttpRequest, assignment: Assignment, action: str) -> str:
    """Why a decision could not be drafted; empty where it is."""
    form = DecisionTextForm(action, request.POST)
    if not form.is_valid():
        return problems_of(form)
    try:
        draft_decision(
            reviewer=person(request),
            assignment=assignment,
            action=action,
            text=form.cleaned_data["text"],
            subject=form.cleaned_data.get("subject", ""),
            amount_usd=form.cleaned_data.get("amount_usd"),
        )
    except HitsError as refused:
        return str(refused)
    return ""


def _next(study: Study, assignment: Assignment, show: str) -> str:
    """The next assignment of the list that has no draft; none where it is the first again."""
    if assignment.status != Assignment.Status.SUBMITTED:
        return str(assignment.pk)
    undrafted = listed_assignments(study, show or WAITING).filter(drafts=None)
    return "" if undrafted.exists() else str(assignment.pk)


@require_POST
def undo(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; each their own decisions."""
    study = study_for(request, slug, Permission.REVIEW)
    named = request.POST.get("assignment", "")
    about = _assignment(study, int(named)) if named.isdecimal() and len(named) < 19 else None
    taken_back = undo_draft(reviewer=person(request), study=study, assignment=about)
    if taken_back is None:
        messages.warning(request, _("There is nothing to take back."))
        return redirect(_desk(study))
    label = taken_back.get_action_display()
    messages.success(request, _("Taken back: {label}.").format(label=label))
    return redirect(_desk(study, assignment=taken_back.assignment_id))


@require_safe
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review. The summary of what they decided."""
    study = study_for(request, slug, Permission.REVIEW)
    summary = summary_of(drafts_of(study, person(request)))
    actions = [
        (Action(action).label, n, summary.costs_usd[action])
        for action, n in summary.numbers.items()
    ]
    form = SendForm(initial={"digest": summary.digest}, label_suffix="")
    context = {"summary": summary, "actions": actions, "form": form, "section": "review"}
    return study_page(request, study, "review_send", context)


@require_POST
def sending(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; what costs more than was held, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    form = SendForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was sent. {why}").format(why=problems_of(form)))
    elif _sent(request, study, form):
        return redirect(_desk(study))
    return redirect("console:review-send", slug)


def _sent(request: HttpRequest, study: Study, form: SendForm) -> bool:
    """Write down what is to be sent and request the job that sends it; say what was refused."""
    values = form.cleaned_data
    try:
        recorded = record_drafts(
            reviewer=person(request),
            study=study,
            digest=values["digest"],
            typed_usd=values["typed_usd"],
        )
    except HitsError as refused:
        messages.error(request, _("Nothing was sent. {why}").format(why=refused))
        return False
    for problem in recorded.problems:
        messages.warning(request, problem)
    if recorded.n_recorded:
        request_sending(request, study)
    return True


def request_sending(request: HttpRequest, study: Study) -> None:
    """A job of its own for each press: one that runs may have read before what it is to send."""
    request_study_job(
        study=study,
        kind=REVIEW,
        arguments={"requested_at": timezone.now().isoformat()},
        requested_by=person(request),
    )
    messages.success(request, _("Sending in the background; this page follows it."))


@require_POST
def retry(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review and spend."""
    study = study_for(request, slug, Permission.REVIEW)
    study_for(request, slug, Permission.SPEND)
    try:
        if retry_refused(study=study):
            request_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect(_desk(study))


@require_POST
def note(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review, in a study of a team."""
    study = study_for(request, slug, Permission.REVIEW)
    assignment = _assignment(study, assignment_id)
    form = NoteForm(request.POST)
    if study.team is None:
        messages.error(request, _("Notes are a team's; this study has none."))
    elif form.is_valid():
        note_worker(
            team=study.team,
            worker=assignment.worker,
            text=form.cleaned_data["note"],
            author=person(request),
        )
        messages.success(request, _("The note is stored."))
    else:
        messages.error(request, problems_of(form))
    show = request.POST.get("show", "")
    return redirect(_desk(study, show=show, assignment=assignment.pk))


@require_POST
def appeal(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review. To grant an appeal, the rejection is overridden as well."""
    study = study_for(request, slug, Permission.REVIEW)
    appealed = Appeal.objects.of(study).filter(assignment=assignment_id).first()
    if appealed is None:
        messages.error(request, _("Nobody has appealed this rejection."))
        return redirect(_desk(study, show="rejected"))
    try:
        answer_appeal(
            appeal=appealed,
            answer=request.POST.get("answer", ""),
            actor=person(request),
            study=study,
        )
        request_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect(_desk(study, show="rejected", assignment=assignment_id))
