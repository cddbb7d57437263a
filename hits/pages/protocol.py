from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _, override
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.check_placement import example_questions
from annotation.exceptions import AnnotationError, DraftChanged, StudyUnfit
from annotation.models import Item, Study
from annotation.models.studies import CountedStudy
from annotation.pages.stages import study_for, study_page
from annotation.protocols.documents import read_document
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
from console.access import may, may_of, person
from hits.answers import read_answer_text
from hits.exceptions import HitsError
from hits.pages.admission import change_practice, change_tests
from hits.pages.questionnaire import (
    MOST_QUESTIONS,
    change_checks,
    change_questions,
    document_of,
    previewed_check,
    unread_numbers,
)
from hits.pages.sections import ProtocolView, view_of
from hits.pages.tasks import change_task
from hits.pages.undo import (
    add_undo_step,
    drop_undo_step,
    earlier_documents,
    last_undo_step,
    undo_label,
)
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


@require_safe
@never_cache
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def protocol(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the form for those who may edit, keys of candidates
    for those who may view systems."""
    study = study_for(request, slug)
    view = _view(request, study)
    context = _page_context(request, study, view, request.GET) | {"writer": token_hex(8)}
    context["tab"] = "yaml" if request.GET.get("tab") == "yaml" else "form"
    return study_page(request, study, "hits/protocol", context)


def _page_context(
    request: HttpRequest, study: CountedStudy, view: ProtocolView, query: Mapping[str, str]
) -> dict[str, Any]:
    # The query names the item of the preview and the part of the page that is open.
    item, next_item = view.item(query.get("item"))
    if not may(request, Permission.VIEW_SYSTEMS):
        view = view.blinded()
    view.open_question = _place(query.get("question"))
    view.open_check = _place(query.get("check"))
    may_share = may(request, Permission.EDIT) and study.archived_at is None
    return {
        "view": view,
        "item": item,
        "previous_item": view.study.items.preceding(item) if item else None,
        "next_item": next_item,
        "open_test": query.get("test", ""),
        "open_practice": query.get("practice", ""),
        "placed": previewed_check(view.document, item, query.get("placed")),
        "may_share": may_share,
        "may_edit": may_share and not view.is_frozen,
        "undo": undo_label(request.session, study),
        "preview_links": active_preview_links(study),
    }


def _place(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 4 else None


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
    """Access: those who may edit the study. Saved while typing, or with a button of the page:
    `undo` brings back what was saved before, and `reset` leaves out what is not saved yet."""
    study = study_for(request, slug, Permission.EDIT)
    before = current_document(study)
    typed = document_of(request.POST.dict(), before)
    action = request.POST.get("action", "")
    document, opened = _changed(request, study, typed, action)
    if action in ("undo", "reset"):
        document = before
    if action == "undo":
        document = last_undo_step(request.session, study) or before
    try:
        version = save_draft(study=study, document=document, **_writer(request))
    except (DraftChanged, StudyUnfit) as problem:
        return _not_saved(request, study, problem)
    if action == "undo":
        drop_undo_step(request.session, study)
    else:
        is_overwritten = bool(request.POST.get("overwrite"))
        add_undo_step(request.session, study, before, document, is_overwritten=is_overwritten)
    view = view_of(study, version, document)
    if not request.headers.get("HX-Request"):
        address = redirect("console:protocol", slug)
        if opened.part:
            address["Location"] += f"?{opened.part}={opened.index}#{opened.part}-{opened.index}"
        return address
    view.unread = unread_numbers(request.POST.dict())
    view.labelled_anywhere = {
        index for index in range(MOST_QUESTIONS) if request.POST.get(f"q{index}-labels") == "any"
    }
    query = {"item": request.POST.get("previewed_item", "")}
    query["placed"] = request.POST.get("previewed_check", "")
    if opened.part:
        query[opened.part] = str(opened.index)
    context = _page_context(request, study, view, query)
    context |= {"study": study, "may": may_of(request), "is_saved": True, "focus": opened.focus}
    context["writer"] = _writer(request)["writer"]
    return render(request, "hits/protocol/_changed.html" if action else SAVED, context)


SAVED = "hits/protocol/_saved.html"


class Writer(TypedDict):
    seen: str
    writer: str


def _writer(request: HttpRequest) -> Writer:
    # What is overwritten on purpose can be undone.
    writer = request.POST.get("writer", "")[:32]
    seen = "" if request.POST.get("overwrite") else request.POST.get("seen", "")[:64]
    return {"seen": seen, "writer": writer}


def _not_saved(
    request: HttpRequest, study: CountedStudy, changed: DraftChanged | StudyUnfit
) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        messages.error(request, str(changed), extra_tags=changed.code)
        return redirect("console:protocol", study.slug)
    context = {
        "study": study,
        "view": view_of(study, newest_version(study), current_document(study)),
        "may_edit": True,
        "changed": changed,
        "undo": undo_label(request.session, study),
    }
    context["seen"] = request.POST.get("seen", "")
    answer = render(request, SAVED, context)
    answer["HX-Retarget"] = "#protocol-saved"
    return answer


# The part of the page that an action is about, by its last word; others are about questions.
PARTS = {
    "check": ("check", change_checks),
    "case": ("check", change_checks),
    "practice": ("practice", change_practice),
    "test": ("test", change_tests),
}


@dataclass(frozen=True)
class Opened:
    """What is open after an action: a question, check, test or page of practice; and the field
    or button that has the focus."""

    part: str = ""
    index: int = 0
    focus: str = ""


def _changed(
    request: HttpRequest, study: CountedStudy, document: ProtocolDocument, action: str
) -> tuple[ProtocolDocument, Opened]:
    name = action.partition(":")[0]
    if name == "task":
        chosen, design = request.POST.get("task", ""), request.POST.get("pairs", "")
        earlier = earlier_documents(request.session, study)
        changed = change_task(study, document, chosen, design, earlier)
        return changed, Opened(focus=f"pairs-{design}" if design else f"task-{chosen}")
    if not action or name in ("undo", "reset", "close"):
        return document, Opened(focus="undo" if name in ("undo", "reset") else "")
    part, change = PARTS.get(name.rpartition("-")[2], ("question", change_questions))
    changed, index = change(document, action)
    if part == "question":
        return changed, _opened_question(request, action, index)
    return changed, Opened(part, index)


def _opened_question(request: HttpRequest, action: str, index: int) -> Opened:
    # A card that is moved or deleted stays as it is: only the one that was open is open again.
    name, _colon, target = action.partition(":")
    if name in ("up", "down"):
        is_open = request.POST.get("open") == target
        return Opened("question" if is_open else "", index, f"q{index}-{name}")
    if name == "remove":
        return Opened(focus=f"q{index}-edit")
    field = "wording" if name in ("add", "copy") else name
    return Opened("question", index, "" if name == "show" else f"q{index}-{field}")


@require_POST
def save_yaml(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    text = request.POST.get("yaml", "").replace("\r\n", "\n")[: MOST_CHARACTERS + 1]
    parsed = parse_yaml(text)
    context: dict[str, Any] = {"tab": "yaml", "may_edit": True}
    context |= {"yaml": text, "yaml_faults": parsed.faults}
    if not parsed.faults:
        before, document = current_document(study), read_document(parsed.values)
        try:
            save_draft(study=study, document=document, **_writer(request))
        except (DraftChanged, StudyUnfit) as changed:
            context["changed"] = changed
        else:
            add_undo_step(request.session, study, before, document)
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
        version = freeze(study=study, actor=person(request), **_writer(request))
    except AnnotationError as error:
        messages.error(request, str(error), extra_tags=error.code)
    else:
        messages.success(
            request, _("Version %(n)d is frozen. The next launch is of it.") % {"n": version.number}
        )
    return redirect("console:protocol", slug)


@require_POST
def begin_draft(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study. A template or a version becomes the draft."""
    study = study_for(request, slug, Permission.EDIT)
    source = request.POST.get("source", "")
    version = study.protocols.filter(
        number=int(source) if source.isdecimal() and len(source) <= 5 else 0
    ).first()
    if source in template_names():
        document, text = read_protocol(source), _("The draft is replaced by the template.")
    elif version is not None:
        document, text = read_document(version.document), ""
    else:
        messages.error(
            request,
            _("There is no such protocol. Choose one of the list."),
            extra_tags="no_protocol",
        )
        return redirect("console:protocol", slug)
    before = current_document(study)
    try:
        save_draft(study=study, document=document, is_copy=version is not None)
    except StudyUnfit as error:
        messages.error(request, str(error), extra_tags=error.code)
        return redirect("console:protocol", slug)
    add_undo_step(request.session, study, before, document)
    if text:
        messages.success(request, text)
    return redirect("console:protocol", slug)


@require_POST
def discard(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    before = current_document(study)
    if discard_draft(study=study):
        add_undo_step(request.session, study, before, current_document(study))
        messages.success(request, _("The draft is discarded."))
    return redirect("console:protocol", slug)


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
            page = practised or task_page(item, document, checks)
    except ValueError as error:
        template = '<!doctype html><html lang="en"><title>{}</title><main><p>{}</p></main></html>'
        return format_html(template, _("Preview"), str(error))
    index = _place(query.get("question"))
    if index is None or index >= len(document.questions):
        return page
    return page + format_html(EDITED, document.questions[index].name, mark_safe(SHOW_EDITED))


# The page shows the question that is being edited, behind the consent if there is one. Its own
# window scrolls: scrollIntoView would scroll the page around it too.
EDITED = '<template id="edited" data-name="{}"></template><script type="module">{}</script>'
SHOW_EDITED = """
document.querySelector("#agree")?.click();
const name = document.querySelector("#edited").dataset.name;
const fields = document.querySelectorAll(`[data-question="${CSS.escape(name)}"]`);
for (const field of fields) field.dataset.current = "";
if (fields[0]) scrollTo(0, scrollY + fields[0].getBoundingClientRect().top - innerHeight / 4);
"""


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
        "sizes": {"phone": _("Phone"), "desktop": _("Desktop")},
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
