"""Answering a QuestionForm on the marketplace's own page."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from marketplace.hits import assignments as writes
from marketplace.models import WorkerAccount
from marketplace.recruiting.sessions import hand_in_form
from marketplace.web.content_policy import with_requesters_content
from marketplace.web.worker.access import for_participants, worker_required
from marketplace.web.worker.continuation import go_on
from marketplace.web.worker.device import note_device_of
from marketplace.web.worker.drafts import work_state
from marketplace.web.worker.tasks import Task, filled_in, form_of, work_context


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
