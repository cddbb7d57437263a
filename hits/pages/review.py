from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import BooleanField, Value
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.audit import record
from accounts.roles import Permission
from annotation.models import MissingAnswer, Study, Submission
from annotation.pages.stages import study_for, study_page
from annotation.study_facts import MEASURE, REVIEW, jobs_of, request_study_job
from console.access import may, person, require_spending
from console.forms import problems_of
from hits.contacts import answer_appeal, note_worker, record_of
from hits.decisions import withdraw_refused
from hits.drafts import (
    Action,
    draft_decision,
    drafts_of,
    paid_part,
    price_usd,
    recruiter_pay,
    study_drafts,
    summary_of,
    undo_draft,
)
from hits.exceptions import AssignmentRefused, HitsError
from hits.models import Appeal, Assignment, DeliveryState, Message, Payment
from hits.pages.desk import (
    FIRST_ROWS,
    LISTS,
    WAITING,
    DeskFacts,
    QueueRow,
    desk_facts,
    desk_work,
    listed_assignments,
    queue_of,
    waiting_work,
)
from hits.pages.evidence import effort_note, rated_candidates
from hits.pages.participants import participant_note
from hits.pages.rules import DecisionTextForm, NoteForm, SendForm, reasons_of
from hits.progress import progress_of
from hits.requirements import clear_workers
from hits.sending import record_drafts, request_sending, retry_refused
from work.models import Job


def desk_address(study: Study, **query: Any) -> str:
    return reverse(
        "console:review",
        args=[study.slug],
        query={name: value for name, value in query.items() if value},
    )


@require_safe
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review. The summary of what they decided."""
    study = study_for(request, slug, Permission.REVIEW)
    summary = summary_of(drafts_of(study, person(request)))
    context = {
        "summary": summary,
        "actions": [
            (Action(action).label, n, summary.costs_usd[action])
            for action, n in summary.numbers.items()
        ],
        "form": SendForm(initial={"digest": summary.digest}, label_suffix=""),
        "section": "review",
        "has_participants": any(each.assignment.hit.batch.is_recruited for each in summary.drafts),
        "recruiter_pay": recruiter_pay(summary.drafts),
    }
    return study_page(request, study, "hits/review_send", context)


@require_POST
def send_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; what costs more than was held, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    form = SendForm(request.POST)
    if not form.is_valid():
        messages.error(
            request,
            _("Nothing was sent. {why}").format(why=problems_of(form)),
            extra_tags="not_sent",
        )
    elif _record_form(request, study, form):
        return redirect(desk_address(study))
    return redirect("console:review-send", slug)


def _record_form(request: HttpRequest, study: Study, form: SendForm) -> bool:
    values = form.cleaned_data
    try:
        result = record_drafts(
            reviewer=person(request),
            study=study,
            digest=values["digest"],
            typed_usd=values["typed_usd"],
        )
    except HitsError as refused:
        messages.error(
            request, _("Nothing was sent. {why}").format(why=refused), extra_tags="not_sent"
        )
        return False
    for problem in result.problems:
        messages.warning(request, problem)
    if result.n_recorded:
        begin_sending(request, study)
    return True


def begin_sending(request: HttpRequest, study: Study) -> None:
    request_sending(study=study, requested_by=person(request))
    messages.success(
        request, _("Sending in the background; this page follows it."), extra_tags="sending"
    )


@require_POST
def withdraw(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review. Take a refused decision back, and lead to its submission."""
    study = study_for(request, slug, Permission.REVIEW)
    one = get_object_or_404(Assignment, hit__batch__study=study, pk=assignment_id)
    withdraw_refused(assignments=Assignment.objects.filter(pk=one.pk))
    return redirect(desk_address(study, assignment=one.pk))


@require_POST
def retry(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review and spend."""
    study = study_for(request, slug, Permission.REVIEW)
    study_for(request, slug, Permission.SPEND)
    try:
        if retry_refused(study=study):
            begin_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect(desk_address(study))


MOST_LISTED = 60
# A desk that was opened is the same opening for so long.
OPENING = timedelta(minutes=30)
SPENDING = (Action.PART_PAY, Action.BONUS, Action.OVERRIDE)
# In the browser's session: a decision that was refused, with what was typed for it.
REFUSED, LONGEST_KEPT = "refused_decision", 5000
OF_STATUS = {
    Assignment.Status.SUBMITTED: (Action.REJECT, Action.PART_PAY),
    Assignment.Status.REJECTED: (Action.OVERRIDE,),
    Assignment.Status.APPROVED: (),
}


@require_safe
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review."""
    study = study_for(request, slug, Permission.REVIEW)
    reviewer, list_name = person(request), request.GET.get("show")
    list_name = list_name if list_name in LISTS else WAITING
    is_named = may(request, Permission.VIEW_WORKERS)
    facts, drafts = desk_facts(study, reviewer), study_drafts(study)
    jobs = {
        job.kind: job
        for job in jobs_of(study).filter(kind__in=(REVIEW, MEASURE)).latest_of_each_kind()
    }
    queue = queue_of(
        study,
        reviewer,
        list_name,
        facts=facts,
        drafts=drafts,
        opened=request.GET.get("assignment", ""),
    )
    context = {
        "facts": facts,
        "refused": _refusals(study) if facts.n_refused else [],
        "summary": summary_of([draft for draft in drafts if draft.reviewer_id == reviewer.pk]),
        "may_view_workers": is_named,
        "job": jobs.get(REVIEW),
        "measuring": _measuring(request, study, facts, jobs.get(MEASURE)),
        "n_unmeasured": facts.n_unmeasured(study),
        **_listing(study, list_name, queue),
        **_submission(request, study, queue),
    }
    page = study_page(request, study, "hits/review", context)
    return _recorded(request, page, study) if is_named else page


def _listing(study: Study, list_name: str, queue: list[QueueRow]) -> dict[str, Any]:
    progress = progress_of(study)
    n_queue = progress.n_undecided if list_name == WAITING else len(queue)
    if n_queue >= FIRST_ROWS.stop and list_name != WAITING:
        n_queue = listed_assignments(study, list_name).count()
    context = {
        "show": list_name,
        "queue": queue[:MOST_LISTED],
        "progress": progress,
        "n_queue": n_queue,
        "n_more": max(n_queue - MOST_LISTED, 0),
    }
    if list_name == WAITING:
        context["waiting"] = waiting_work(study, queue, n_queue)
    return context


def _measuring(
    request: HttpRequest, study: Study, facts: DeskFacts, last: Job | None
) -> Job | None:
    if facts.is_measured(study):
        return None
    basis = str(study.judgments_version)
    stays = (*Job.UNFINISHED, Job.State.FAILED)
    if last is not None and last.basis == basis and last.state in stays:
        return last
    return request_study_job(study=study, kind=MEASURE, requested_by=person(request), basis=basis)


def _recorded(request: HttpRequest, page: HttpResponse, study: Study) -> HttpResponse:
    # A signed cookie remembers that the desk was opened; storing it in the session would cost three
    # more statements.
    name, salt = f"desk-{study.pk}", f"desk of {request.session.session_key}"
    if request.get_signed_cookie(name, default=None, salt=salt, max_age=OPENING) is not None:
        return page
    record(team=study.team, actor=person(request), action="workers.view", subject=study.slug)
    page.set_signed_cookie(
        name,
        "open",
        salt=salt,
        max_age=OPENING,
        path=reverse("console:review", args=[study.slug]),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return page


def _refusals(study: Study) -> list[dict[str, Any]]:
    of_study: dict[str, Any] = {"assignment__hit__batch__study": study}
    rows = [
        {
            "what": assignment.get_decision_display(),
            "about": assignment,
            "why": problem,
            "is_undecided": assignment.status == Assignment.Status.SUBMITTED,
        }
        for assignment in Assignment.objects.filter(hit__batch__study=study).refused()[:20]
        if (problem := assignment.decision_problem)
    ]
    of_study |= {"state": DeliveryState.REFUSED}
    rows += [
        {
            "what": _("Payment of ${amount}").format(amount=payment.amount_usd),
            "about": payment.assignment,
            "why": payment.problem,
        }
        for payment in Payment.objects.filter(**of_study).select_related("assignment")[:20]
    ]
    rows += [
        {
            "what": _("Message “{subject}”").format(subject=text.subject),
            "about": text.assignment,
            "why": text.problem,
        }
        for text in Message.objects.filter(**of_study).select_related("assignment")[:20]
    ]
    return rows + [
        {"what": _("Answer to the appeal"), "about": answer.assignment, "why": answer.problem}
        for answer in Appeal.objects.filter(**of_study).select_related("assignment")[:20]
    ]


def _submission(request: HttpRequest, study: Study, queue: list[QueueRow]) -> dict[str, Any]:
    if not queue:
        return {}
    position = _position(request, queue)
    row = queue[position]
    assignment, submission = row.assignment, row.assignment.submission
    return {
        "row": row,
        "flagged_with": desk_work(study, names) if (names := row.other_annotators) else {},
        "assignment": assignment,
        "item": assignment.hit.item,
        "price_usd": price_usd(assignment),
        "participant": participant_note(assignment),
        "appeal": getattr(assignment, "appeal", None),
        "candidates": rated_candidates(submission, assignment.hit.item) if submission else [],
        "written": _answers_in_words(submission) if submission else [],
        "effort": effort_note(study, submission) if submission else None,
        "record": record_of(assignment, study, person(request)),
        "n_place": position + 1,
        "before": queue[position - 1] if position else None,
        "after": queue[position + 1] if position + 1 < len(queue) else None,
        "following": next((one for one in queue[position + 1 :] if not one.drafts), None),
        "is_waiting": assignment.status == Assignment.Status.SUBMITTED,
        "is_rejected": assignment.status == Assignment.Status.REJECTED,
        "note_form": NoteForm(auto_id="note_%s", label_suffix=""),
    } | _decision_form(request, study, row, request.GET.get("do", ""))


def _answers_in_words(submission: Submission) -> list[dict[str, Any]]:
    """Written answers, then those that are missing for a reason; one query for both."""
    names = ["question", "candidate__key"]
    written = submission.written_answers.values_list(*names, "text", "pasted", Value(""), "pk")
    missing = submission.missing_answers.values_list(
        *names, Value(""), Value(None, BooleanField()), "reason", "pk"
    )
    rows = written.order_by().union(missing.order_by(), all=True)
    return [
        {
            "question": question,
            "candidate": candidate,
            "text": MissingAnswer.Reason(reason).label if reason else text,
            "pasted": pasted,
        }
        for question, candidate, text, pasted, reason, _pk in sorted(
            rows, key=lambda row: (bool(row[4]), row[5])
        )
    ]


def _decision_form(
    request: HttpRequest, study: Study, row: QueueRow, action: str
) -> dict[str, Any]:
    if not _is_possible(request, row, action):
        return {"action": "", "action_name": "", "form": None, "reasons": []}
    batch, reasons = row.assignment.hit.batch, list[tuple[str, str]]()
    is_participant = batch.is_recruited and not batch.is_invited
    if action in (Action.REJECT, Action.PART_PAY):
        reasons = reasons_of(study, is_participant=is_participant)
    title = request.GET.get("reason", "")
    # A template of reasons that the address names, as a text to start from; or what was typed.
    initial = {"text": dict(reasons).get(title, "")} if reasons else {}
    initial |= _typed(request, row.assignment, action)
    form = DecisionTextForm(
        action, initial=initial, part=paid_part(row.assignment), is_participant=is_participant
    )
    return {"action": action, "action_name": Action(action).label, "form": form, "reasons": reasons}


def _typed(request: HttpRequest, assignment: Assignment, action: str) -> dict[str, str]:
    kept = request.session.pop(REFUSED, None)
    if not kept or (kept["assignment"], kept["action"]) != (assignment.pk, action):
        return {}
    typed: dict[str, str] = kept["typed"]
    return typed


def _position(request: HttpRequest, queue: list[QueueRow]) -> int:
    keys = [str(row.assignment.pk) for row in queue]
    if (key := request.GET.get("assignment", "")) in keys:
        return keys.index(key)
    return next((position for position, row in enumerate(queue) if not row.drafts), 0)


def _is_possible(request: HttpRequest, row: QueueRow, action: str) -> bool:
    of_all = (Action.BONUS, Action.MESSAGE, Action.BLOCK, Action.UNBLOCK)
    possible = (*OF_STATUS[Assignment.Status(row.assignment.status)], *of_all)
    return action in possible and (action not in SPENDING or may(request, Permission.SPEND))


def _assignment(study: Study, assignment_id: int) -> Assignment:
    return get_object_or_404(
        Assignment.objects.filter(hit__batch__study=study).select_related(
            "hit__batch__connection", "worker", "submission"
        ),
        pk=assignment_id,
    )


@require_POST
def draft(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review; what costs money, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    assignment = _assignment(study, assignment_id)
    action = request.POST.get("action", "")
    if action not in Action.values:
        messages.error(request, _("Nothing was decided: choose what to do."))
        return redirect(desk_address(study, assignment=assignment_id))
    if action in SPENDING:
        require_spending(request)
    list_name = request.POST.get("show", "")
    problem = _draft_problem(request, assignment, action)
    if problem:
        typed = {name: request.POST.get(name, "") for name in ("text", "subject", "amount_usd")}
        kept = {name: value[:LONGEST_KEPT] for name, value in typed.items() if value}
        request.session[REFUSED] = {"assignment": assignment.pk, "action": action, "typed": kept}
        messages.error(request, _("Nothing was decided. {problem}").format(problem=problem))
        return redirect(desk_address(study, show=list_name, assignment=assignment_id, do=action))
    label, name = Action(action).label, assignment.hit.item.key
    messages.success(
        request,
        _("{label}: {name}, not sent yet.").format(label=label, name=name),
        extra_tags=f"drafted_{action}",
    )
    # The next in the queue; the first may be the work of another annotator.
    after = _next(study, assignment, list_name, request.POST.get("following", ""))
    return redirect(desk_address(study, show=list_name, assignment=after))


def _draft_problem(request: HttpRequest, assignment: Assignment, action: str) -> str:
    form = DecisionTextForm(action, request.POST, part=paid_part(assignment))
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
    except AssignmentRefused as refused:
        return f"{assignment.hit.item.key}: {refused.message}"
    except HitsError as refused:
        return str(refused)
    return ""


def _next(study: Study, assignment: Assignment, list_name: str, following: str) -> str:
    if assignment.status != Assignment.Status.SUBMITTED:
        return str(assignment.pk)
    rows = listed_assignments(study, list_name or WAITING).filter(drafts=None)
    return following if rows.exists() else str(assignment.pk)


@require_POST
def undo(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; each their own decisions."""
    study = study_for(request, slug, Permission.REVIEW)
    key = request.POST.get("assignment", "")
    draft = undo_draft(
        reviewer=person(request),
        study=study,
        assignment=_assignment(study, int(key)) if key.isdecimal() and len(key) < 19 else None,
    )
    if draft is None:
        messages.warning(request, _("There is nothing to take back."))
        return redirect(desk_address(study))
    messages.success(
        request,
        _("Taken back: {label}.").format(label=draft.get_action_display()),
        extra_tags="taken_back",
    )
    return redirect(desk_address(study, assignment=draft.assignment_id))


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
        messages.success(request, _("The note is stored."), extra_tags="note_stored")
    else:
        messages.error(request, problems_of(form))
    return redirect(
        desk_address(study, show=request.POST.get("show", ""), assignment=assignment.pk)
    )


@require_POST
def clear(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review. The marketplace is told with the next collection."""
    study = study_for(request, slug, Permission.REVIEW)
    assignment = _assignment(study, assignment_id)
    clear_workers(study=study, workers=[assignment.worker], cleared_by=person(request))
    messages.success(request, _("The annotator may go on as soon as answers are collected again."))
    return redirect(
        desk_address(study, show=request.POST.get("show", ""), assignment=assignment.pk)
    )


@require_POST
def appeal(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review. To grant an appeal, the rejection is overridden as well."""
    study = study_for(request, slug, Permission.REVIEW)
    row = Appeal.objects.of(study).filter(assignment=assignment_id).first()
    if row is None:
        messages.error(request, _("Nobody has appealed this rejection."))
        return redirect(desk_address(study, show="rejected"))
    try:
        answer_appeal(
            appeal=row,
            answer=request.POST.get("answer", ""),
            actor=person(request),
            study=study,
        )
        begin_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect(desk_address(study, show="rejected", assignment=assignment_id))
