from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from marketplace.exceptions import Missing, SubmissionTooLarge, WorkRefused
from marketplace.hits import assignments as writes
from marketplace.hits.drafts import draft_of
from marketplace.hits.wages import observed_wages
from marketplace.models import Assignment, SessionItem, WorkerAccount
from marketplace.recruiting.sessions import hand_in, hand_in_form
from marketplace.web.worker.access import (
    began_here,
    explain,
    for_participants,
    in_any_frame,
    note_device_of,
    with_requesters_content,
    worker_of,
    worker_required,
)
from marketplace.web.worker.arrivals import go_on, remember_choice
from marketplace.web.worker.tasks import (
    Task,
    filled_in,
    form_of,
    task_for,
    work_context,
    work_state,
)


@require_POST
@worker_required
def accept_hit(request: HttpRequest, worker: WorkerAccount, hit_id: str) -> HttpResponse:
    """Accept this HIT.

    Access: workers.
    """
    remember_choice(request)
    hit, worker_assignment = writes.find_hit_for(worker, hit_id)
    assignment = worker_assignment or writes.accept_hit(worker=worker, hit=hit)
    return redirect("marketplace:assignment", assignment.public_id)


@require_POST
@worker_required
def accept_next(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """Accept the next HIT of this group that the worker hasn't done.

    Access: workers.
    """
    remember_choice(request)
    assignment = writes.accept_next(worker=worker, hit_type=writes.find_group(hit_type_id))
    return redirect("marketplace:assignment", assignment.public_id)


@require_safe
@with_requesters_content
@worker_required
@for_participants
def assignment(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """The page to work on.

    Access: the worker whose assignment it is.
    """
    worker_assignment = writes.find_assignment_of(worker, assignment_id)
    if worker_assignment.status in Assignment.HANDED_IN_STATUSES:
        return redirect("marketplace:submitted", assignment_id)
    writes.require_accepted(worker_assignment)
    hit = worker_assignment.hit
    task = task_for(request, hit, worker_assignment, worker)
    state = work_state(worker_assignment, with_draft=True)
    state["is_last"] = _is_last(worker_assignment)
    if not began_here(request, assignment_id=assignment_id):
        state["draft"] = ""
    context = work_context(request, worker_assignment, task, state)
    context["is_working"] = task.frame is not None
    context["wage"] = observed_wages([hit.hit_type]).get(hit.hit_type_id)
    return render(request, "marketplace/assignment.html", context)


def _is_last(assignment: Assignment) -> bool:
    item = SessionItem.objects.filter(assignment=assignment).first()
    if item is None:
        return writes.find_next(worker=assignment.worker, hit_type=assignment.hit.hit_type) is None
    others = SessionItem.objects.filter(session=item.session_id).exclude(pk=item.pk)
    return not others.filter(assignment__status=Assignment.Status.ACCEPTED).exists()


@require_POST
@worker_required
def return_assignment(
    request: HttpRequest, worker: WorkerAccount, assignment_id: str
) -> HttpResponse:
    """Give the assignment back; where something was entered, after asking.

    Access: the worker whose assignment it is.
    """
    worker_assignment = writes.find_assignment_of(worker, assignment_id)
    draft = draft_of(worker_assignment)
    if draft and request.POST.get("confirmed") != "yes":
        writes.require_accepted(worker_assignment)
        context = {"worker": worker, "assignment": worker_assignment, "draft": draft}
        return render(request, "marketplace/return.html", context)
    writes.return_assignment(assignment=worker_assignment)
    title = worker_assignment.hit.hit_type.title
    messages.info(request, _("You returned “%(title)s”.") % {"title": title}, extra_tags="returned")
    return redirect("marketplace:groups")


@csrf_exempt
@login_not_required
@xframe_options_exempt
@in_any_frame
@require_POST
def external_submit(request: HttpRequest) -> HttpResponse:
    """Take in the answers of an assignment.

    Access: whoever knows the assignment's id. The form comes from a page with an
    origin of its own, so neither a session nor a CSRF cookie can come with it.
    """
    try:
        form = _form(request)
        fields = list(form.lists())
        submitted = hand_in(public_id=form.get("assignmentId", ""), fields=fields)
        note_device_of(request, submitted)
    except (Missing, WorkRefused) as error:
        if _wants_data(request):
            status = error.status if isinstance(error, WorkRefused) else 404
            return JsonResponse({"error": str(error), "code": error.code}, status=status)
        return explain(request, error, template="marketplace/submission_refused.html")
    if _wants_data(request):
        return JsonResponse(_receipt(request, submitted, writes.answer_document(fields)))
    return render(request, "marketplace/receipt.html", {"assignment": submitted})


def _wants_data(request: HttpRequest) -> bool:
    # The page around the frame sends the form itself.
    return request.headers.get("Accept") == "application/json"


def _receipt(request: HttpRequest, submitted: Assignment, answer: str | None) -> dict[str, object]:
    return {
        "receipt": submitted.receipt,
        "submitted_at": submitted.submitted_at,
        "is_as_sent": submitted.answer == answer,
        "is_signed_in": worker_of(request) == submitted.worker,
    }


def _form(request: HttpRequest) -> QueryDict:
    largest = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if largest and int(request.META.get("CONTENT_LENGTH") or 0) > largest:
        raise SubmissionTooLarge
    try:
        return request.POST
    except (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent) as error:
        raise SubmissionTooLarge from error


# Answering a QuestionForm on the marketplace's own page.


@require_POST
@with_requesters_content
@worker_required
@for_participants
def submit_form(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Take in the answers, or show what to mend beside each question.

    Access: the worker whose assignment it is.
    """
    assignment = writes.find_assignment_of(worker, assignment_id)
    filled = filled_in(request, form_of(assignment.hit))
    if not filled.is_valid:
        writes.require_accepted(assignment)
        context = work_context(request, assignment, Task(None, filled), work_state(assignment))
        return render(request, "marketplace/assignment.html", context, status=422)
    answer = filled.to_xml()
    submitted = hand_in_form(public_id=assignment.public_id, answer=answer)
    note_device_of(request, submitted)
    title = {"title": assignment.hit.hit_type.title}
    if submitted.answer == answer:
        text = _("Your work on “%(title)s” was received.") % title
        messages.success(request, text, extra_tags="received")
    else:
        text = _("Your work on “%(title)s” was received before, with other answers. Those stand.")
        messages.warning(request, text % title, extra_tags="received_before")
    return go_on(request, worker, assignment.hit.hit_type)
