import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import clock
from marketplace.documents.answers import FilledForm, blank
from marketplace.documents.questions import (
    Question,
    QuestionForm,
    begin_with,
    parse_question,
    parse_question_form,
    send_here,
)
from marketplace.exceptions import (
    DraftChanged,
    HitDoesNotExist,
    RequestRefused,
    WorkRefused,
    first_or_raise,
    require,
)
from marketplace.hits.assignments import PREVIEW_ID, find_assignment_of, require_accepted
from marketplace.hits.drafts import (
    LARGEST_DRAFT,
    add_time,
    draft_of,
    offered_seconds,
    report_problem,
    save_draft,
)
from marketplace.hits.wages import wages_by_type
from marketplace.models import Assignment, Hit, PaidBy, WorkerAccount
from marketplace.recruiting.sessions import due_at_of, place_of
from marketplace.web.worker.access import began_here, worker_data
from marketplace.web.worker.arrivals import accepts_next_by_itself

# What the page around the frame asks of the server while the work goes on: drafts, more time,
# reports of what is broken.

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
        require(
            request.method != "POST",
            WorkRefused(
                _("What you enter is kept in this browser alone: you began in another one."),
                code="not_your_browser",
                status=403,
            ),
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
    return JsonResponse(work_state(add_time(assignment=find_assignment_of(worker, assignment_id))))


@require_POST
@worker_data
def report(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> JsonResponse:
    """Say that something on the page is broken.

    Access: the worker whose assignment it is.
    """
    report_problem(
        assignment=find_assignment_of(worker, assignment_id),
        text=_storable(str(_body(request, "text")[0])),
    )
    return JsonResponse({"text": _("The requester was told.")})


def work_state(assignment: Assignment, *, with_draft: bool = False) -> dict[str, Any]:
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
    return due_at_of(assignment) if assignment.paid_by == PaidBy.RECRUITER else None


def _posted(request: HttpRequest) -> dict[str, Any]:
    content, progress, base = _body(request, "draft", "progress", "revision")
    is_right = isinstance(content, str) and isinstance(progress, str)
    require(
        is_right and type(base) is int and 0 <= base < 2**31 - 1,
        RequestRefused(_("This is not a draft.")),
    )
    return {"content": _storable(content), "progress": _storable(progress), "base_revision": base}


def _body(request: HttpRequest, *names: str) -> list[Any]:
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise RequestDataTooBig
        posted = json.loads(request.body)
        return [posted[name] for name in names]
    except RequestDataTooBig as error:
        raise WorkRefused(
            _("What you entered is too much to be kept here."), code="draft_too_large", status=413
        ) from error
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise RequestRefused(_("This is not a draft.")) from error


def _storable(text: str) -> str:
    # No database stores lone surrogates.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# The frame in which a requester's page runs, kept apart from ours.
#
# A requester's HTML is served with a `sandbox` policy, so that it has an origin of its own however
# it is opened: it can't read the worker's session or act in the worker's name. Such an origin has
# no storage; the page around the frame lends it some (`storage.js`), by worker and requester, so
# that drafts outlive a reload. A page at an external URL keeps its own origin, unless that is ours.

SANDBOX = "allow-scripts allow-forms allow-modals allow-popups"


@dataclass(frozen=True)
class Frame:
    source: str
    sandbox: str
    height: int  # pixels; 0 leaves it to the page
    storage: str = ""  # whose storage the page gets from ours; none where it has its own


def frame_for(
    request: HttpRequest, hit: Hit, assignment: Assignment | None, worker: WorkerAccount
) -> Frame:
    question, parameters = question_of(hit), _parameters(request, hit, assignment)
    if question.kind == "external":
        url = question.url_with(parameters)
        return Frame(url, _external_sandbox(request, url), question.frame_height)
    path = (
        reverse("marketplace:frame", args=[assignment.public_id])
        if assignment
        else reverse("marketplace:preview_frame", args=[hit.public_id])
    )
    storage = f"{worker.worker_id}:{hit.hit_type.requester.public_id}"
    # Says which messages the page around the frame understands (docs/marketplace.md).
    parameters["assayPage"] = "1"
    if assignment is not None and assignment.slot is not None:
        parameters["assaySlot"] = str(assignment.slot)
    return Frame(f"{path}?{urlencode(parameters)}", SANDBOX, question.frame_height, storage)


def _parameters(request: HttpRequest, hit: Hit, assignment: Assignment | None) -> dict[str, str]:
    """What the page is given in its address, as Mechanical Turk gives it.

    The Worker ID is among it since that is the protocol's: Mechanical Turk appends it to the
    address of a page that is worked on, of none that is previewed, and programs read who works
    from it. It is the pseudonym that the requester has of the worker in each answer anyway; what a
    recruiter calls a participant is never in it, nor anything else that says who somebody is.
    """
    return {
        "assignmentId": assignment.public_id if assignment else PREVIEW_ID,
        "hitId": hit.public_id,
        "turkSubmitTo": _origin(request),
    } | ({"workerId": assignment.worker.worker_id} if assignment else {})


@login_not_required
@require_safe
@xframe_options_sameorigin
def frame(request: HttpRequest, assignment_id: str) -> HttpResponse:
    """The requester's HTML to work on.

    Access: whoever knows the assignment's id, because a sandboxed page that
    reloads itself sends no cookie; but no other worker who is signed in.
    """
    shown = Assignment.objects.exclude(status=Assignment.Status.RETURNED)
    assignment = shown.select_related("hit", "worker").filter(public_id=assignment_id).first()
    is_hidden = assignment is None or (
        request.user.is_authenticated and request.user.pk != assignment.worker.user_id
    )
    if assignment is None or is_hidden:
        raise Http404(_("There is no such assignment."))
    return _sandboxed(request, assignment.hit)


@login_not_required
@require_safe
@xframe_options_sameorigin
def preview_frame(request: HttpRequest, hit_id: str) -> HttpResponse:
    """The requester's HTML to look at.

    Access: whoever knows the HIT's id.
    """
    return _sandboxed(
        request,
        first_or_raise(
            Hit.objects.listed().filter(public_id=hit_id), Http404(_("There is no such HIT."))
        ),
    )


def question_of(hit: Hit) -> Question:
    return parse_question(hit.question, allow_http=True)


def is_html(hit: Hit) -> bool:
    return question_of(hit).kind == "html"


def _sandboxed(request: HttpRequest, hit: Hit) -> HttpResponse:
    question = question_of(hit)
    require(question.kind == "html", Http404(_("This HIT's page is elsewhere.")))
    origin = _origin(request)
    html = send_here(
        question.content,
        external_hit=origin + static("marketplace/externalHIT_v1.js"),
        crowd_elements=origin + static("marketplace/crowd-elements.js"),
        external_submit=origin + reverse("marketplace:external_submit"),
    )
    return HttpResponse(
        begin_with(html, script=origin + static("marketplace/storage.js")),
        headers={
            "Content-Security-Policy": f"sandbox {SANDBOX}; frame-ancestors 'self'",
            "Cache-Control": "private, no-store",
            "Referrer-Policy": "no-referrer",
        },
    )


def _origin(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _external_sandbox(request: HttpRequest, url: str) -> str:
    parts = urlsplit(url)
    is_ours = f"{parts.scheme}://{parts.netloc}".lower() == _origin(request).lower()
    return SANDBOX if is_ours else f"{SANDBOX} allow-same-origin"


@dataclass(frozen=True)
class Task:
    frame: Frame | None
    filled: FilledForm | None


def task_for(
    request: HttpRequest, hit: Hit, assignment: Assignment | None, worker: WorkerAccount
) -> Task:
    if question_of(hit).kind == "form":
        return Task(None, blank(form_of(hit)))
    return Task(frame_for(request, hit, assignment, worker), None)


def work_context(
    request: HttpRequest, assignment: Assignment, task: Task, state: dict[str, Any]
) -> dict[str, Any]:
    hit_type = assignment.hit.hit_type
    return {
        "worker": assignment.worker,
        "assignment": assignment,
        "hit": assignment.hit,
        "task": task,
        "auto_accept": accepts_next_by_itself(request, hit_type),
        "state": state,
        "due": participants_due(assignment),
        "now": clock.now(),
        "place": _place(assignment),
        "wage": wages_by_type([hit_type]).get(hit_type.pk),
    }


def _place(assignment: Assignment) -> tuple[int, int] | None:
    """Which HIT of how many: those reserved for a participant, or those of the group that the
    worker has done or can still do."""
    if assignment.paid_by == PaidBy.RECRUITER:
        return place_of(assignment)
    worker, hit_type = assignment.worker, assignment.hit.hit_type
    n = 1 + Assignment.objects.by(worker).handed_in().filter(hit__hit_type=hit_type).count()
    return n, n + Hit.objects.in_group(hit_type).workable_by(worker, clock.now()).count()


def form_of(hit: Hit) -> QuestionForm:
    require(question_of(hit).kind == "form", HitDoesNotExist(hit.public_id))
    return parse_question_form(hit.question)
