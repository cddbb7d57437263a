from collections.abc import Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any, TypedDict
from urllib.parse import urlencode

from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, override
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.check_placement import example_questions
from annotation.exceptions import AnnotationError, DraftChanged
from annotation.models import Item, Study
from annotation.models.studies import CountedStudy
from annotation.pages.study import study_for, study_page
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.practice import PATH, practice_faults, practice_source_faults
from annotation.protocols.records import Order, ProtocolDocument
from annotation.protocols.templates import (
    MOST_CHARACTERS,
    parse_yaml,
    read_protocol,
    template_names,
)
from annotation.protocols.versions import (
    current_document,
    discard_draft,
    freeze,
    newest_version,
    numbered_version,
    save_draft,
)
from console.access import may, person
from hits.answers import read_answer_text
from hits.exceptions import HitsError
from hits.pages.admission import change_practice, change_tests
from hits.pages.questionnaire import (
    change_checks,
    change_questions,
    document_of,
    previewed_check,
    unread_numbers,
)
from hits.pages.sections import ProtocolView, view_of
from hits.practice import practice_page
from hits.previews import active_preview_links
from hits.questions import task_page


def practice_preview(study: Study, document: ProtocolDocument, number: str) -> str:
    """The practice page of that number, from 0; "" if there is none. ValueError for faults."""
    practice = document.qualifications.practice
    n = len(practice.items) if practice else 0
    if not number.isdecimal() or len(number) > 2 or int(number) >= n:
        return ""
    faults = [*practice_faults(document), *practice_source_faults(study, document)]
    if any(fault.path[:4] == (*PATH, "items", int(number)) for fault in faults):
        raise ValueError(_("This page of practice is shown once its faults are mended."))
    page = practice_page(study, document, int(number))
    return task_page(page.item, document, practice=page.record())


# As a form names the draft that was there before the last one that replaced it.
REPLACED = "replaced"


@require_safe
@never_cache
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def protocol(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the form for those who may edit, keys of candidates
    for those who may view systems."""
    study = study_for(request, slug)
    view = _view(request, study)
    item, next_item = view.item(request.GET.get("item"))
    open_question = request.GET.get("question", "")
    context: dict[str, Any] = {
        "view": view if may(request, Permission.VIEW_SYSTEMS) else view.blinded(),
        "item": item,
        "next_item": next_item,
        "tab": "yaml" if request.GET.get("tab") == "yaml" else "form",
        "open_question": int(open_question) if open_question.isdecimal() else None,
        "open_check": request.GET.get("check", ""),
        "open_test": request.GET.get("test", ""),
        "open_practice": request.GET.get("practice", ""),
        "placed": previewed_check(view.document, item, request.GET.get("placed")),
        "may_edit": (may(request, Permission.EDIT) and study.archived_at is None)
        and not view.is_frozen,
        "was_replaced": _session_key(study) in request.session,
        "writer": token_hex(8),
        "preview_links": active_preview_links(study),
    }
    return study_page(request, study, "hits/protocol", context)


def _view(request: HttpRequest, study: CountedStudy) -> ProtocolView:
    number = request.GET.get("version", "")
    if not number.isdecimal() or len(number) > 5:
        return view_of(study, newest_version(study), current_document(study))
    try:
        version = numbered_version(study, int(number))
    except AnnotationError as error:
        raise Http404(str(error)) from None
    return view_of(study, version, read_document(version.document))


@require_POST
def save(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study. Saved while typing, or with a button of a question."""
    study = study_for(request, slug, Permission.EDIT)
    document = document_of(request.POST.dict(), current_document(study))
    action = request.POST.get("action", "")
    part, index = "", 0
    if action:
        part, (document, index) = _changed(document, action)
    try:
        version = save_draft(study=study, document=document, **_writer(request, study))
    except DraftChanged as changed:
        return _not_saved(request, study, changed)
    if request.headers.get("HX-Request") and not action:
        return _saved(request, study, view_of(study, version, document))
    address = redirect("console:protocol", slug)
    if part:
        address["Location"] += f"?{part}={index}#{part}-{index}"
    return address


class Writer(TypedDict):
    seen: str
    writer: str


def _writer(request: HttpRequest, study: CountedStudy) -> Writer:
    # A draft that is overwritten on purpose can be brought back.
    writer = request.POST.get("writer", "")[:32]
    if request.POST.get("overwrite"):
        _keep_draft(request, study)
        return {"seen": "", "writer": writer}
    return {"seen": request.POST.get("seen", "")[:64], "writer": writer}


def _not_saved(request: HttpRequest, study: CountedStudy, changed: DraftChanged) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        messages.error(request, str(changed), extra_tags=changed.code)
        return redirect("console:protocol", study.slug)
    context = {
        "study": study,
        "view": view_of(study, newest_version(study), current_document(study)),
        "may_edit": True,
        "changed": changed,
    }
    context["seen"] = request.POST.get("seen", "")
    return render(request, "hits/protocol/_saved.html", context)


# The part of the form that an action is about, by its last word; others are about questions.
PARTS = {
    "check": ("check", change_checks),
    "case": ("check", change_checks),
    "practice": ("practice", change_practice),
    "test": ("test", change_tests),
}


def _changed(document: ProtocolDocument, action: str) -> tuple[str, tuple[ProtocolDocument, int]]:
    name = action.partition(":")[0].rpartition("-")[2]
    part, change = PARTS.get(name, ("question", change_questions))
    return part, change(document, action)


def _saved(request: HttpRequest, study: CountedStudy, view: ProtocolView) -> HttpResponse:
    view.unread = unread_numbers(request.POST.dict())
    item, _next_item = view.item(request.POST.get("previewed_item"))
    placed = previewed_check(view.document, item, request.POST.get("previewed_check"))
    return render(
        request,
        "hits/protocol/_saved.html",
        {"study": study, "view": view, "is_saved": True, "may_edit": True, "placed": placed},
    )


@require_POST
def save_yaml(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    text = request.POST.get("yaml", "").replace("\r\n", "\n")[: MOST_CHARACTERS + 1]
    parsed = parse_yaml(text)
    context: dict[str, Any] = {"tab": "yaml", "may_edit": True}
    context |= {"yaml": text, "yaml_faults": parsed.faults}
    if not parsed.faults:
        document = read_document(parsed.values)
        try:
            save_draft(study=study, document=document, **_writer(request, study))
        except DraftChanged as changed:
            context["changed"] = changed
        else:
            messages.success(request, _("The draft is saved."))
            address = redirect("console:protocol", slug)
            address["Location"] += "?tab=yaml"
            return address
    context["view"] = view_of(study, newest_version(study), current_document(study))
    context |= {"seen": request.POST.get("seen", ""), "writer": request.POST.get("writer", "")}
    return study_page(request, study, "hits/protocol", context)


@require_POST
def freeze_draft(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    try:
        version = freeze(study=study, actor=person(request), **_writer(request, study))
    except AnnotationError as error:
        messages.error(request, str(error), extra_tags=error.code)
    else:
        request.session.pop(_session_key(study), None)
        messages.success(
            request, _("Version %(n)d is frozen. The next launch is of it.") % {"n": version.number}
        )
    return redirect("console:protocol", slug)


@require_POST
def begin_draft(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study. A template, a version, or the draft that one of them
    replaced, becomes the draft."""
    study = study_for(request, slug, Permission.EDIT)
    source = request.POST.get("source", "")
    version = study.protocols.filter(
        number=int(source) if source.isdecimal() and len(source) <= 5 else 0
    ).first()
    if source in template_names():
        document, text = read_protocol(source), _("The draft is replaced by the template.")
    elif version is not None:
        document, text = read_document(version.document), ""
    elif source == REPLACED and (kept := request.session.pop(_session_key(study), None)):
        document, text = read_document(kept), _("The draft is as it was before.")
    else:
        messages.error(
            request,
            _("There is no such protocol. Choose one of the list."),
            extra_tags="no_protocol",
        )
        return redirect("console:protocol", slug)
    _keep_draft(request, study)
    save_draft(study=study, document=document, is_copy=version is not None)
    if text:
        messages.success(request, text)
    return redirect("console:protocol", slug)


@require_POST
def discard(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    _keep_draft(request, study)
    if discard_draft(study=study):
        messages.success(request, _("The draft is discarded."))
    return redirect("console:protocol", slug)


def _keep_draft(request: HttpRequest, study: CountedStudy) -> None:
    newest = newest_version(study)
    if newest is None or newest.frozen_at is None:
        request.session[_session_key(study)] = plain_document(current_document(study))


def _session_key(study: CountedStudy) -> str:
    return f"replaced-draft:{study.pk}"


@require_safe
@never_cache
@xframe_options_sameorigin
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """The very page that workers will get, in a sandbox of its own.

    Access: whoever has a role in the study.
    """
    study = study_for(request, slug)
    view = _view(request, study)
    item, _next_item = view.item(request.GET.get("item"))
    if item is None:
        raise Http404(_("There is no item to show."))
    headers = {
        "Content-Security-Policy": "sandbox allow-scripts allow-forms; frame-ancestors 'self'"
    }
    return HttpResponse(
        _previewed_page(study, view.document, item, request.GET),
        headers=headers | {"Referrer-Policy": "no-referrer"},
    )


def _previewed_page(
    study: CountedStudy, document: ProtocolDocument, item: Item, query: Mapping[str, str]
) -> str:
    checks = example_questions(document, item)
    if (previewed := previewed_check(document, item, query.get("placed"))) and previewed["placed"]:
        # Candidates stand where their letters say; workers see them in another order each.
        document = replace(document, order=Order(policy="fixed"))
        checks = [previewed["placed"], *checks]
    try:
        with override(document.language or "en"):
            practised = practice_preview(study, document, query.get("practice", ""))
            return practised or task_page(item, document, checks)
    except ValueError as error:
        template = '<!doctype html><html lang="en"><title>{}</title><main><p>{}</p></main></html>'
        return format_html(template, _("Preview"), str(error))


# A trial of the worker's page stands in a sandboxed frame, as at a marketplace, without a person's
# session or cookies: a signed token in the address lets it load and send.
SALT, AN_HOUR = "console.trial", 3600
SANDBOX = "allow-scripts allow-forms allow-modals"
WIDTHS = {"phone": 390, "desktop": 1024}


@require_safe
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def try_item(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    items = Item.objects.filter(study=study)
    item = get_object_or_404(items, pk=item_id)
    size = request.GET.get("as", "phone")
    context = {
        "section": "items",
        "item": item,
        "source": _frame_address(request, item),
        "sandbox": SANDBOX,
        "size": size if size in WIDTHS else "phone",
        "sizes": {"phone": _("Telephone"), "desktop": _("Desktop")},
        "width": WIDTHS.get(size, WIDTHS["phone"]),
        "before": items.preceding(item),
        "after": items.following(item),
    }
    return study_page(request, study, "hits/try_item", context)


@require_safe
def try_first(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study. The page of its first item."""
    first = Item.objects.filter(study=study_for(request, slug)).first()
    if first is None:
        raise Http404
    return redirect("console:try-item", slug, first.pk)


def _frame_address(request: HttpRequest, item: Item) -> str:
    address = reverse("console:trial-page", args=[signing.dumps(item.pk, salt=SALT)])
    parameters = {
        "assignmentId": "TRIAL",
        "hitId": "TRIAL",
        "workerId": "TRIAL",
        "turkSubmitTo": request.build_absolute_uri(address),
    }
    return f"{address}?{urlencode(parameters)}"


def _item_of(token: str) -> Item:
    try:
        pk = signing.loads(token, salt=SALT, max_age=AN_HOUR)
    except signing.BadSignature:
        raise Http404(_("This trial is over. Open the page again.")) from None
    return get_object_or_404(Item.objects.select_related("study", "picture"), pk=pk)


@login_not_required
@require_safe
@xframe_options_sameorigin
def trial_page(request: HttpRequest, token: str) -> HttpResponse:
    """The worker's page by itself.

    Access: whoever has a token that the study's page made in the last hour.
    """
    headers = {
        "Content-Security-Policy": f"sandbox {SANDBOX}; frame-ancestors 'self'",
        "Cache-Control": "private, no-store",
    }
    try:
        content = task_page(_item_of(token))
    except (HitsError, ValueError) as error:
        return render(
            request,
            "hits/trial_sent.html",
            {"problem": _("This item has no page. {why}").format(why=error)},
        )
    return HttpResponse(content, headers=headers)


@csrf_exempt
@login_not_required
@require_POST
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]
def trial_sent(request: HttpRequest, token: str) -> HttpResponse:
    """What would be sent, as it would be read; nothing is stored.

    Access: whoever has a token that the study's page made in the last hour.
    """
    item, text = _item_of(token), request.POST.get("answer", "")
    sent: dict[str, Any] = {"answer": None, "text": text, "problem": ""}
    try:
        sent["answer"] = read_answer_text(text, item)
    except HitsError as error:
        sent["problem"] = str(error)
    return render(
        request,
        "hits/trial_sent.html",
        {"sent": sent, "again": reverse("console:trial-page", args=[token])},
    )
