from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from error_codes import CodedText
from marketplace import clock
from marketplace.documents.answers import blank
from marketplace.documents.questions import parse_question_form
from marketplace.exceptions import (
    QualificationRequestDoesNotExist,
    QualificationTypeDoesNotExist,
    RequestRefused,
    first_or_raise,
)
from marketplace.models import Qualification, QualificationRequest, QualificationType, WorkerAccount
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
from marketplace.web.worker.access import with_requesters_content, worker_required
from marketplace.web.worker.tasks import filled_in

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
    owned = Qualification.objects.filter(worker=worker, status=Qualification.Status.GRANTED)
    requests = QualificationRequest.objects.filter(worker=worker).exclude(status=Status.GRANTED)
    context = {
        "worker": worker,
        "held": owned.select_related("qualification_type__requester").order_by("-granted_at"),
        "asked": requests.select_related("qualification_type__requester").order_by("-pk")[:50],
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
    qualification_type = _find_type(type_id)
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
    context = {"worker": worker, "taken": test_request, "filled": filled, "now": clock.now()}
    return render(request, "marketplace/qualification_test.html", context)


@require_POST
@with_requesters_content
@worker_required
def hand_in(request: HttpRequest, worker: WorkerAccount, request_id: str) -> HttpResponse:
    """Hand a test in, or show what to mend beside each question.

    Access: the worker who takes it.
    """
    test_request = _find_test(worker, request_id)
    filled = filled_in(request, parse_question_form(test_request.test))
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
    owned = Qualification.objects.filter(worker=worker, qualification_type=qualification_type)
    now, held = clock.now(), owned.first()
    marks = pass_marks(qualification_type, now=now)
    work = work_towards(worker, [qualification_type.pk], now)
    return {
        "obstacle": why_not_request(worker, qualification_type),
        "started": requests.filter(status=Status.STARTED).first(),
        "held": held,
        "marks": marks,
        "is_too_low": is_too_low(marks, None if held is None else held.integer_value),
        "result": latest_result(worker, qualification_type, now=now),
        "is_earned": bool(marks and is_earned(qualification_type)),
        "work": work.get(qualification_type.pk, ()),
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
    owned = Qualification.objects.get(
        worker=worker, qualification_type=qualification_request.qualification_type
    )
    return value_sentence(
        qualification_request.qualification_type, owned.integer_value, clock.now()
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


def _find_type(public_id: str) -> QualificationType:
    rows = QualificationType.objects.existing().select_related("requester")
    return first_or_raise(
        rows.filter(public_id=public_id), QualificationTypeDoesNotExist(public_id)
    )


def _find_test(worker: WorkerAccount, public_id: str) -> QualificationRequest:
    expire_overdue(worker, now=clock.now())
    test_request = first_or_raise(
        _mine(worker).filter(public_id=public_id).exclude(test=""),
        QualificationRequestDoesNotExist(public_id),
    )
    if test_request.status == Status.EXPIRED:
        raise RequestRefused(_("The time for this test is over."), code="test_over")
    if test_request.status != Status.STARTED:
        raise RequestRefused(_("You have handed this test in already."), code="handed_in_already")
    return test_request


def _mine(worker: WorkerAccount) -> QuerySet[QualificationRequest]:
    return QualificationRequest.objects.filter(worker=worker).select_related(
        "qualification_type__requester"
    )
