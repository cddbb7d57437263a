"""What the page around the frame asks of the server while the work goes on: drafts, more time,
reports of what is broken."""

import json
from datetime import datetime
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from marketplace import clock
from marketplace.exceptions import DraftChanged, DraftTooLarge, NotYourBrowser, RequestRefused
from marketplace.hits.assignments import find_assignment_of, require_accepted
from marketplace.hits.drafts import (
    LARGEST_DRAFT,
    add_time,
    draft_of,
    offered_seconds,
    report_problem,
    save_draft,
)
from marketplace.models import Assignment, PaidBy, WorkerAccount
from marketplace.recruiting.sessions import due_at_of
from marketplace.web.worker.access import began_here, worker_data

# A text of JSON may have six characters for one of the draft's.
LARGEST_BODY = 6 * LARGEST_DRAFT + 1_000


@require_http_methods(["GET", "HEAD", "POST"])
@worker_data
def draft(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> JsonResponse:
    """The draft of an assignment, or what to save in its place.

    Access: the worker whose assignment it is.
    """
    assignment = find_assignment_of(worker, assignment_id)
    require_accepted(assignment)
    status = 200
    if not began_here(request, assignment_id=assignment_id):
        if request.method == "POST":
            raise NotYourBrowser(
                _("What you enter is kept in this browser alone: you began in another one.")
            )
        return JsonResponse(work_state(assignment) | {"draft": ""})
    if request.method == "POST":
        try:
            save_draft(assignment=assignment, **_posted(request))
            return JsonResponse(work_state(assignment))
        except DraftChanged:
            status = 409
    return JsonResponse(work_state(assignment, with_draft=True), status=status)


@require_POST
@worker_data
def more_time(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> JsonResponse:
    """Put the deadline off, once.

    Access: the worker whose assignment it is.
    """
    assignment = find_assignment_of(worker, assignment_id)
    return JsonResponse(work_state(add_time(assignment=assignment)))


@require_POST
@worker_data
def report(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> JsonResponse:
    """Say that something on the page is broken.

    Access: the worker whose assignment it is.
    """
    assignment = find_assignment_of(worker, assignment_id)
    report_problem(assignment=assignment, text=_storable(str(_body(request, "text")[0])))
    return JsonResponse({"text": _("The requester was told.")})


def work_state(assignment: Assignment, *, with_draft: bool = False) -> dict[str, Any]:
    """How things stand, by the server's clock; with the draft, what was entered so far."""
    saved, due = draft_of(assignment), participants_due(assignment)
    state: dict[str, Any] = {
        "revision": saved.revision if saved else 0,
        "now": clock.now().isoformat(),
        "deadline": assignment.deadline.isoformat(),
        "more_seconds": offered_seconds(assignment),
    }
    if due:
        state["due"] = due.isoformat()
    return state | ({"draft": saved.content if saved else ""} if with_draft else {})


def participants_due(assignment: Assignment) -> datetime | None:
    """When a participant's time is over, a little before nothing is taken any more."""
    return due_at_of(assignment) if assignment.paid_by == PaidBy.RECRUITER else None


def _posted(request: HttpRequest) -> dict[str, Any]:
    content, progress, base = _body(request, "draft", "progress", "revision")
    is_right = isinstance(content, str) and isinstance(progress, str)
    if not is_right or type(base) is not int or not 0 <= base < 2**31 - 1:
        raise RequestRefused(_("This is not a draft."))
    return {"content": _storable(content), "progress": _storable(progress), "base_revision": base}


def _body(request: HttpRequest, *names: str) -> list[Any]:
    """The values of these names in the JSON that was posted."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise RequestDataTooBig
        posted = json.loads(request.body)
        return [posted[name] for name in names]
    except RequestDataTooBig as error:
        raise DraftTooLarge(_("What you entered is too much to be kept here.")) from error
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise RequestRefused(_("This is not a draft.")) from error


def _storable(text: str) -> str:
    """The text without lone surrogates, which no database keeps."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
