import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

from allauth.decorators import rate_limit
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet, Sum, Window
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from error_codes import CodedText, require
from marketplace import clock
from marketplace.documents.answers import blank, fill_in, read_answers
from marketplace.documents.questions import parse_question_form
from marketplace.exceptions import (
    HitDoesNotExist,
    QualificationRequestDoesNotExist,
    RequestRefused,
    first_or_raise,
)
from marketplace.hits import lifecycle
from marketplace.hits.assignments import find_assignment_of
from marketplace.hits.review import LONGEST_TEXT, appeal as write_appeal
from marketplace.models import (
    Assignment,
    AssignmentQuerySet,
    Hit,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    Qualification,
    QualificationRequest,
    QualificationType,
    Session,
    WorkerAccount,
    WorkerMessage,
)
from marketplace.money import ledger
from marketplace.people.messages import write_to_requester
from marketplace.qualifications.definitions import find_type
from marketplace.qualifications.eligibility import is_earned, not_earned, work_towards
from marketplace.qualifications.requests import (
    expire_overdue,
    request_qualification,
    submit_test,
    why_not_request,
)
from marketplace.qualifications.results import (
    GradedTest,
    is_too_low,
    latest_result,
    pass_marks,
    value_sentence,
)
from marketplace.qualifications.system import ALL, Record, languages_of
from marketplace.web.worker.access import (
    for_participants,
    in_own_browser,
    with_requesters_content,
    worker_required,
)
from marketplace.web.worker.hits import assignments_at_hand
from marketplace.web.worker.tasks import question_of, task_for

ROWS_PER_PAGE = 50
DAYS_LISTED = 30
STATUSES = Assignment.HANDED_IN_STATUSES


@require_safe
@worker_required
def dashboard(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What the worker is at, and has handed in, by day and status.

    Access: workers, each their own.
    """
    now = clock.now()
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=now)
    handed_in = Assignment.objects.by(worker).handed_in()
    status = request.GET.get("status", "")
    rows = handed_in.filter(status=status) if status in STATUSES else handed_in
    rows = rows.select_related("hit__hit_type__requester", "appeal").order_by("-pk")
    return render(
        request,
        "marketplace/dashboard.html",
        {
            "worker": worker,
            "held": assignments_at_hand(worker, now),
            "earned_usd": ledger.balance_of(ledger.earnings_account(worker)),
            "pending_usd": _pending_usd(handed_in),
            "counts": handed_in.aggregate(
                submitted=Count("pk"), **{name: Count("pk", Q(status=name)) for name in STATUSES}
            ),
            "days": _by_day(handed_in),
            "status": status if status in STATUSES else "",
            "statuses": [(name, Assignment.Status(name).label) for name in STATUSES],
            "page": Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page")),
        },
    )


@require_safe
@with_requesters_content
@worker_required
@for_participants
@in_own_browser
def submitted(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """What the worker submitted, with its receipt, on the page it was entered on.

    Access: the worker whose assignment it is.
    """
    assignment = find_assignment_of(worker, assignment_id)
    if assignment.status not in STATUSES:
        return redirect("marketplace:assignment", assignment_id)
    fields = read_answers(assignment.answer)
    is_form = question_of(assignment.hit).kind == "form"
    return render(
        request,
        "marketplace/submitted.html",
        {
            "worker": worker,
            "assignment": assignment,
            "hit": assignment.hit,
            "task": None if is_form else task_for(request, assignment.hit, assignment, worker),
            "fields": [(name, _readable(text)) for name, text in fields],
            "state": {"answer": dict(fields)},
        },
    )


@require_safe
@worker_required
def earnings(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Rewards, bonuses and payouts, as the ledger has them.

    Access: workers, each their own.
    """
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    account = ledger.earnings_account(worker)
    entries = LedgerEntry.objects.filter(account=account).annotate(
        balance_after_usd=Window(Sum("amount_usd"), order_by=F("id").asc())
    )
    entries = entries.order_by("-pk").select_related(
        "transaction__assignment__hit__hit_type__requester", "transaction__bonus_payment"
    )
    return render(
        request,
        "marketplace/earnings.html",
        _totals_usd(account)
        | {
            "worker": worker,
            "balance_usd": ledger.balance_of(account),
            "pending_usd": _pending_usd(Assignment.objects.by(worker)),
            "page": Paginator(entries, ROWS_PER_PAGE).get_page(request.GET.get("page")),
        },
    )


@require_safe
@worker_required
def inbox(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What requesters wrote to the worker.

    Access: workers, each their own.
    """
    page = Paginator(
        WorkerMessage.objects.filter(worker=worker).select_related("requester").order_by("-pk"),
        ROWS_PER_PAGE,
    ).get_page(request.GET.get("page"))
    return render(request, "marketplace/inbox.html", {"worker": worker, "page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
@for_participants
@rate_limit(action="message")  # type: ignore[untyped-decorator]
def contact(request: HttpRequest, worker: WorkerAccount, requester_id: str) -> HttpResponse:
    """Write to a requester about a HIT, and read what both wrote before. Participants read how to
    write by way of their recruiter.

    Access: workers, each their own messages.
    """
    hits = Hit.objects.filter(requester__public_id=requester_id)
    hits = hits.select_related("requester", "hit_type__requester").order_by("-pk")
    about = request.GET.get("about", "").replace("\0", "")
    named = hits.filter(Q(public_id=about) | Q(hit_type__public_id=about))
    mine = hits.filter(Q(messages__worker=worker) | Q(assignments__worker=worker))
    hit = named.first() or mine.first() or first_or_raise(hits, HitDoesNotExist(requester_id))
    problem = ""
    if request.method == "POST":
        try:
            write_to_requester(worker=worker, hit=hit, text=request.POST.get("text", ""))
            messages.success(request, _("Your message was sent."), extra_tags="sent")
            return redirect(request.get_full_path())
        except RequestRefused as refused:
            problem = str(refused)
    sent = WorkerMessage.objects.filter(worker=worker, requester=hit.requester_id)
    context = {
        "worker": worker,
        "hit": hit,
        "thread": sent.order_by("-pk")[:ROWS_PER_PAGE],
        "session": Session.objects.filter(worker=worker).order_by("-pk").first(),
        "text": request.POST.get("text", ""),
        "problem": problem,
        "most": LONGEST_TEXT,
    }
    return render(request, "marketplace/contact.html", context)


@require_POST
@worker_required
def mark_read(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Note that the worker has read what is there.

    Access: workers, each their own.
    """
    WorkerMessage.objects.filter(worker=worker, read_at=None).update(read_at=clock.now())
    return redirect("marketplace:inbox")


def _readable(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _pending_usd(assignments: AssignmentQuerySet) -> Decimal:
    total: Decimal | None = assignments.filter(status=Assignment.Status.SUBMITTED).aggregate(
        total=Sum("reward_usd")
    )["total"]
    return total or Decimal(0)


def _totals_usd(account: LedgerAccount) -> dict[str, Decimal]:
    kinds = LedgerTransaction.Kind
    totals = account.entries.aggregate(
        payment_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.PAYMENT)),
        bonus_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.BONUS)),
        payout_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.PAYOUT)),
    )
    totals = {name: total or Decimal(0) for name, total in totals.items()}
    return totals | {"paid_out_usd": -totals["payout_usd"]}


def _by_day(handed_in: AssignmentQuerySet) -> list[Any]:
    return list(
        handed_in.filter(submitted_at__gte=clock.now() - timedelta(days=DAYS_LISTED))
        .annotate(day=TruncDate("submitted_at"))
        .values("day")
        .annotate(
            submitted=Count("pk"),
            waiting=Count("pk", Q(status=Assignment.Status.SUBMITTED)),
            approved=Count("pk", Q(status=Assignment.Status.APPROVED)),
            rejected=Count("pk", Q(status=Assignment.Status.REJECTED)),
            approved_usd=Sum("reward_usd", filter=Q(status=Assignment.Status.APPROVED)),
        )
        .order_by("-day")
    )


# Appealing a rejection.


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
def appeal(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Say why a rejection is wrong.

    Access: the worker whose assignment it is.
    """
    assignment = get_object_or_404(
        Assignment.objects.by(worker).select_related("hit__hit_type__requester", "appeal"),
        public_id=assignment_id,
    )
    reason, problem = request.POST.get("reason", ""), ""
    if request.method == "POST":
        try:
            write_appeal(worker=worker, assignment=assignment, reason=reason)
        except RequestRefused as refused:
            problem = str(refused)
        else:
            messages.success(request, _("Your appeal is with the requester."))
            return redirect("marketplace:dashboard")
    context = {"worker": worker, "assignment": assignment, "reason": reason, "problem": problem}
    return render(request, "marketplace/appeal.html", context | {"most": LONGEST_TEXT})


# Qualifications: what the worker has, has asked for, and can ask for.

TYPES_PER_PAGE = 25
Status = QualificationRequest.Status


@require_safe
@worker_required
def qualifications(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What the worker has, has asked for, and can ask for.

    Access: workers, each their own.
    """
    expire_overdue(worker, now=clock.now())
    search = request.GET.get("q", "").replace("\0", "").strip()
    record = Record(worker)
    computed = (*ALL, *languages_of(worker))
    context = {
        "worker": worker,
        "held": Qualification.objects.filter(worker=worker, status=Qualification.Status.GRANTED)
        .select_related("qualification_type__requester")
        .order_by("-granted_at"),
        "asked": QualificationRequest.objects.filter(worker=worker)
        .exclude(status=Status.GRANTED)
        .select_related("qualification_type__requester")
        .order_by("-pk")[:50],
        "computed": {each.name: each.value_of(record) for each in computed}.items(),
        "page": Paginator(_offered(search), TYPES_PER_PAGE).get_page(request.GET.get("page")),
        "search": search,
    }
    return render(request, "marketplace/qualifications.html", context)


def _offered(search: str) -> QuerySet[QualificationType]:
    rows = not_earned(QualificationType.objects.requestable()).filter(
        Q(name__icontains=search)
        | Q(description__icontains=search)
        | Q(keywords__icontains=search)
        | Q(requester__name__icontains=search)
    )
    return rows.select_related("requester").order_by("-pk")


@require_http_methods(["GET", "HEAD", "POST"])
@with_requesters_content
@worker_required
def qualification(request: HttpRequest, worker: WorkerAccount, type_id: str) -> HttpResponse:
    """One qualification, and asking for it.

    Access: workers.
    """
    qualification_type = find_type(type_id)
    if request.method == "POST":
        return _ask(request, worker, qualification_type)
    context = _standing(worker, qualification_type) | {"worker": worker, "type": qualification_type}
    return render(request, "marketplace/qualification.html", context)


@require_safe
@with_requesters_content
@worker_required
def test(request: HttpRequest, worker: WorkerAccount, request_id: str) -> HttpResponse:
    """A qualification test that the worker has begun.

    Access: the worker who takes it.
    """
    test_request = _find_test(worker, request_id)
    filled = blank(parse_question_form(test_request.test))
    return render(
        request,
        "marketplace/qualification_test.html",
        {"worker": worker, "taken": test_request, "filled": filled, "now": clock.now()},
    )


@require_POST
@with_requesters_content
@worker_required
def hand_in(request: HttpRequest, worker: WorkerAccount, request_id: str) -> HttpResponse:
    """Hand a test in, or show what to mend beside each question.

    Access: the worker who takes it.
    """
    test_request = _find_test(worker, request_id)
    filled = fill_in(parse_question_form(test_request.test), request.POST.getlist)
    if not filled.is_valid:
        context = {"worker": worker, "taken": test_request, "filled": filled, "now": clock.now()}
        return render(request, "marketplace/qualification_test.html", context, status=422)
    decided = submit_test(request=test_request, answer=filled.to_xml())
    result = latest_result(worker, decided.qualification_type, now=clock.now())
    if decided.status == Status.GRANTED and result is not None:
        level = messages.WARNING if result.is_passed is False else messages.SUCCESS
        text = _graded(decided.qualification_type.name, result)
        messages.add_message(request, level, text, extra_tags=text.code)
    else:
        news = _news(decided, worker)
        messages.success(request, news, extra_tags=news.code)
    return redirect("marketplace:qualification", decided.qualification_type.public_id)


def _standing(worker: WorkerAccount, qualification_type: QualificationType) -> dict[str, Any]:
    requests = _mine(worker).filter(qualification_type=qualification_type)
    now, held = (
        clock.now(),
        Qualification.objects.filter(worker=worker, qualification_type=qualification_type).first(),
    )
    marks = pass_marks(qualification_type, now=now)
    return {
        "obstacle": why_not_request(worker, qualification_type),
        "started": requests.filter(status=Status.STARTED).first(),
        "held": held,
        "marks": marks,
        "is_too_low": is_too_low(marks, None if held is None else held.integer_value),
        "result": latest_result(worker, qualification_type, now=now),
        "is_earned": bool(marks and is_earned(qualification_type)),
        "work": work_towards(worker, [qualification_type.pk], now).get(qualification_type.pk, ()),
    }


def _ask(
    request: HttpRequest, worker: WorkerAccount, qualification_type: QualificationType
) -> HttpResponse:
    qualification_request = request_qualification(
        worker=worker, qualification_type=qualification_type
    )
    if qualification_request.status == Status.STARTED:
        return redirect("marketplace:qualification_test", qualification_request.public_id)
    news = _news(qualification_request, worker)
    messages.success(request, news, extra_tags=news.code)
    return redirect("marketplace:qualification", qualification_type.public_id)


def _news(qualification_request: QualificationRequest, worker: WorkerAccount) -> CodedText:
    name = qualification_request.qualification_type.name
    if qualification_request.status != Status.GRANTED:
        return CodedText(
            _("Your request for “%(name)s” waits for its requester's decision.") % {"name": name},
            "request_waits",
        )
    return value_sentence(
        qualification_request.qualification_type,
        Qualification.objects.get(
            worker=worker, qualification_type=qualification_request.qualification_type
        ).integer_value,
        clock.now(),
    )


def _graded(name: str, result: GradedTest) -> CodedText:
    if result.is_passed is None:
        code, text = "graded", _("Your score in “%(name)s” is %(score)s.")
    elif result.is_passed:
        code = "passed"
        text = _("Your score in “%(name)s” is %(score)s. Work on offer asks for %(mark)s: passed.")
    else:
        code = "not_passed"
        text = _(
            "Your score in “%(name)s” is %(score)s. Work on offer asks for %(mark)s: not passed."
        )
    return CodedText(text % {"name": name, "score": result.grade, "mark": result.phrase}, code)


def _find_test(worker: WorkerAccount, public_id: str) -> QualificationRequest:
    expire_overdue(worker, now=clock.now())
    test_request = first_or_raise(
        _mine(worker).filter(public_id=public_id).exclude(test=""),
        QualificationRequestDoesNotExist(public_id),
    )
    require(
        test_request.status != Status.EXPIRED,
        RequestRefused(_("The time for this test is over."), code="test_over"),
    )
    require(
        test_request.status == Status.STARTED,
        RequestRefused(_("You have handed this test in already."), code="handed_in_already"),
    )
    return test_request


def _mine(worker: WorkerAccount) -> QuerySet[QualificationRequest]:
    return QualificationRequest.objects.filter(worker=worker).select_related(
        "qualification_type__requester"
    )
