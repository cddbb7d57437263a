from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from marketplace import clock
from marketplace.documents.answers import fill_in
from marketplace.documents.questions import task_language
from marketplace.exceptions import InvalidAmount, Missing, WorkRefused
from marketplace.hits import assignments as writes, lifecycle
from marketplace.hits.drafts import draft_of
from marketplace.hits.wages import requester_record, wages_by_type
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    QualificationRequirement,
    SessionItem,
    WorkerAccount,
    WorkerBlock,
)
from marketplace.money.amounts import parse_amount
from marketplace.qualifications.eligibility import (
    qualifies,
    require_preview,
    unmet_by_hit_type,
    visible_groups,
)
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
from marketplace.web.worker.arrivals import accepts_next_by_itself, go_on, remember_choice
from marketplace.web.worker.tasks import (
    Task,
    form_of,
    is_html,
    task_for,
    work_context,
    work_state,
)

# Which groups of HITs a worker asks to see, in which order: all of it is in the address; and what
# the worker is at already.

SORTS = {
    "newest": (gettext_lazy("Newest first"), "-pk"),
    "reward": (gettext_lazy("Highest reward"), "-reward_usd"),
    "hits": (gettext_lazy("Most HITs"), "-available_count"),
    "shortest": (gettext_lazy("Least time allotted"), "assignment_duration_seconds"),
    "expires": (gettext_lazy("Expires soonest"), "last_expiration"),
}


def assignments_at_hand(worker: WorkerAccount, now: datetime) -> list[tuple[Assignment, int]]:
    return [
        (one, int((one.deadline - now).total_seconds()))
        for one in Assignment.objects.by(worker)
        .filter(status=Assignment.Status.ACCEPTED, deadline__gt=now)
        .select_related("hit__hit_type", "draft")
        .order_by("deadline")
    ]


@dataclass(frozen=True)
class Wish:
    """The filters in the address. Invalid ones are ignored; an invalid amount is reported."""

    text: str
    minimum_text: str
    minimum_usd: Decimal | None
    minimum_error: str
    requester: str
    is_qualified: bool
    sort: str

    @property
    def is_narrow(self) -> bool:
        return bool(self.text or self.minimum_usd or self.requester or self.is_qualified)


def read_wish(query: QueryDict) -> Wish:
    sort = query.get("sort", "")
    minimum_text = query.get("min_reward", "").strip()
    minimum_usd, minimum_error = _dollars(minimum_text) if minimum_text else (None, "")
    return Wish(
        text=query.get("q", "").replace("\0", "").strip(),
        minimum_text=minimum_text,
        minimum_usd=minimum_usd,
        minimum_error=minimum_error,
        requester=query.get("requester", "").replace("\0", "").strip(),
        is_qualified=query.get("qualified") == "on",
        sort=sort if sort in SORTS else "newest",
    )


def grant(wish: Wish, groups: QuerySet[HitType], worker: WorkerAccount) -> QuerySet[HitType]:
    if wish.text:
        groups = groups & HitType.objects.mentioning(wish.text)
    if wish.minimum_usd is not None:
        groups = groups.filter(reward_usd__gte=wish.minimum_usd)
    if wish.requester:
        groups = groups.filter(requester__public_id=wish.requester)
    if wish.is_qualified:
        groups = groups.exclude(pk__in=_beyond(worker, groups))
    return groups.order_by(SORTS[wish.sort][1], "-pk")


def _beyond(worker: WorkerAccount, groups: QuerySet[HitType]) -> list[int]:
    required = QualificationRequirement.objects.filter(hit_type=OuterRef("pk"))
    blocked = WorkerBlock.objects.filter(worker=worker).values("requester")
    guarded = groups.filter(Exists(required) | Q(requester__in=blocked))
    return [key for key, reasons in unmet_by_hit_type(worker, guarded).items() if reasons]


def _dollars(text: str) -> tuple[Decimal | None, str]:
    try:
        return parse_amount(text) or None, ""
    except InvalidAmount as error:
        return None, str(error)


GROUPS_PER_PAGE = 25
# As much of what time has done as a list page writes down; `sweep_marketplace` does the rest.
SETTLED_PER_LIST = 100


@require_safe
@worker_required
def groups(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The groups of HITs there is work in.

    Access: workers.
    """
    now = clock.now()
    lifecycle.settle_due(Hit.objects.all(), now=now, limit=SETTLED_PER_LIST)
    wish = read_wish(request.GET)
    page = Paginator(
        grant(wish, visible_groups(worker, now), worker).select_related("requester"),
        GROUPS_PER_PAGE,
    ).get_page(request.GET.get("page"))
    unmet = unmet_by_hit_type(worker, page.object_list)
    wages = wages_by_type(page.object_list)
    context = {
        "worker": worker,
        "page": page,
        "rows": [(group, unmet[group.pk], wages.get(group.pk)) for group in page],
        "wish": wish,
        "sorts": [(name, label) for name, (label, _) in SORTS.items()],
        "held": assignments_at_hand(worker, now),
    }
    return render(request, "marketplace/groups.html", context)


@require_safe
@with_requesters_content
@worker_required
def group(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """The next HIT of a group, to look at.

    Access: workers.
    """
    hit_type = writes.find_group(hit_type_id)
    require_preview(worker, hit_type)
    hit = writes.find_next(worker=worker, hit_type=hit_type)
    if hit is None:
        text = _("No HITs of “%(title)s” are left for you.") % {"title": hit_type.title}
        messages.info(request, text, extra_tags="none_left")
        return redirect("marketplace:groups")
    return _preview(
        request, worker, hit, reverse("marketplace:accept_next", args=[hit_type.public_id])
    )


@require_safe
@with_requesters_content
@worker_required
def hit(request: HttpRequest, worker: WorkerAccount, hit_id: str) -> HttpResponse:
    """A HIT, to look at; the one who is working on it is taken to the work.

    Access: workers.
    """
    row, assignment = writes.find_hit_for(worker, hit_id)
    if assignment is not None:
        return redirect("marketplace:assignment", assignment.public_id)
    return _preview(request, worker, row, reverse("marketplace:accept_hit", args=[row.public_id]))


def _preview(
    request: HttpRequest, worker: WorkerAccount, hit: Hit, accept_url: str
) -> HttpResponse:
    context = {
        "worker": worker,
        "hit": hit,
        "wage": wages_by_type([hit.hit_type]).get(hit.hit_type_id),
        "record": requester_record(hit.requester),
        "n_hits": Hit.objects.in_group(hit.hit_type).workable_by(worker, clock.now()).count(),
        "accept_url": accept_url,
        "unmet": qualifies(worker, hit.hit_type),
        "task": task_for(request, hit, None, worker),
        "auto_accept": accepts_next_by_itself(request, hit.hit_type),
    }
    return render(request, "marketplace/preview.html", context)


# Doing work: accept, work, return, submit.


@require_POST
@worker_required
def accept_hit(request: HttpRequest, worker: WorkerAccount, hit_id: str) -> HttpResponse:
    """Accept this HIT.

    Access: workers.
    """
    hit, worker_assignment = writes.find_hit_for(worker, hit_id)
    remember_choice(request, hit.hit_type)
    assignment = worker_assignment or writes.accept_hit(worker=worker, hit=hit)
    return redirect("marketplace:assignment", assignment.public_id)


@require_POST
@worker_required
def accept_next(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """Accept the next HIT of this group that the worker hasn't done.

    Access: workers.
    """
    hit_type = writes.find_group(hit_type_id)
    remember_choice(request, hit_type)
    assignment = writes.accept_next(worker=worker, hit_type=hit_type)
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
    hit = worker_assignment.hit
    # Once the time is over, the page still shows what its browser has kept.
    is_over = worker_assignment.status == Assignment.Status.ABANDONED and is_html(hit)
    if not is_over:
        writes.require_accepted(worker_assignment)
    task = task_for(request, hit, worker_assignment, worker)
    state = work_state(worker_assignment, with_draft=True)
    state["is_last"] = _is_last(worker_assignment)
    if not began_here(request, assignment_id=assignment_id):
        state["draft"] = ""
    context = work_context(request, worker_assignment, task, state)
    context |= {"is_working": task.frame is not None, "code": "time_over" if is_over else ""}
    with task_language(hit.question):
        return render(
            request, "marketplace/assignment.html", context, status=410 if is_over else 200
        )


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
    messages.info(
        request,
        _("You returned “%(title)s”.") % {"title": worker_assignment.hit.hit_type.title},
        extra_tags="returned",
    )
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
            return JsonResponse(
                {"error": str(error), "code": error.code},
                status=error.status if isinstance(error, WorkRefused) else 404,
            )
        return explain(request, error, template="marketplace/submission_refused.html")
    if _wants_data(request):
        return JsonResponse(
            {
                "receipt": submitted.receipt,
                "submitted_at": submitted.submitted_at,
                "is_as_sent": submitted.answer == writes.answer_document(fields),
                "is_signed_in": worker_of(request) == submitted.worker,
            }
        )
    return render(request, "marketplace/receipt.html", {"assignment": submitted})


def _wants_data(request: HttpRequest) -> bool:
    # The page around the frame sends the form itself.
    return request.headers.get("Accept") == "application/json"


def _form(request: HttpRequest) -> QueryDict:
    largest = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    try:
        if largest and int(request.META.get("CONTENT_LENGTH") or 0) > largest:
            raise RequestDataTooBig
        return request.POST
    except (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent) as error:
        raise WorkRefused(
            _("The form is larger than this marketplace takes. Nothing was submitted."),
            code="submission_too_large",
            status=413,
        ) from error


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
    filled = fill_in(form_of(assignment.hit), request.POST.getlist)
    if not filled.is_valid:
        writes.require_accepted(assignment)
        return render(
            request,
            "marketplace/assignment.html",
            work_context(request, assignment, Task(None, filled), work_state(assignment)),
            status=422,
        )
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
