"""The annotator's page of an item of an uploaded file, before anything of it is stored."""

from dataclasses import replace
from hashlib import sha256
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext as _, override
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from annotation.exceptions import ImportRefused
from annotation.models import BLIND_KEY_LENGTH, Candidate, Item, Picture, Question, Study, Upload
from annotation.pages.previews import picture_path, previewed_item
from annotation.pages.uploads import upload_for
from annotation.protocols.records import Order, ProtocolDocument
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document, document_of_rows
from annotation.readers.drafts import ItemDraft, PictureDraft
from annotation.readers.item_files import ACCEPTABLE, APPROPRIATENESS
from annotation.upload_pictures import uploaded_picture
from hits.questions import preview_page

HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts; frame-ancestors 'self'",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
}


@require_safe
@xframe_options_sameorigin
def upload_item(request: HttpRequest, token: UUID) -> HttpResponse:
    """Access: as for the upload."""
    upload = upload_for(request, token)
    draft = previewed_item(upload, request.GET.get("page", "1"))
    if draft is None:
        raise Http404(_("There is no item to show."))
    study = upload.study or Study(kind=upload.kind, title=upload.title, slug="preview")
    document = replace(_document(upload, study), order=Order(policy="fixed"))
    try:
        with override(document.language or "en"):
            page = preview_page(_item(upload, study, draft), document)
    except (ImportRefused, ValueError) as error:
        template = '<!doctype html><html lang="en"><title>{}</title><main><p>{}</p></main></html>'
        page = format_html(template, _("Preview"), str(error))
    return HttpResponse(page, headers=HEADERS)


def _document(upload: Upload, study: Study) -> ProtocolDocument:
    if upload.study is not None:
        return current_document(upload.study)
    if upload.template:
        return read_protocol(upload.template)
    draft = ACCEPTABLE if study.kind == Study.Kind.ALTERNATIVES else APPROPRIATENESS
    return document_of_rows(study, [Question(**vars(draft))])


def _item(upload: Upload, study: Study, draft: ItemDraft) -> Item:
    """The item and its candidates without rows of the database; keys are those of the preview."""
    item = Item(
        pk=0,
        study=study,
        key=draft.key,
        context=draft.context,
        reference=draft.reference,
        condition=draft.condition,
        picture=_picture(upload, draft.picture),
    )
    candidates = [
        Candidate(
            item=item,
            key=each.key,
            blind_key=sha256(each.key.encode()).hexdigest()[:BLIND_KEY_LENGTH],
            system=each.system,
            text=each.text,
            picture=_picture(upload, each.picture),
        )
        for each in draft.candidates
    ]
    item._prefetched_objects_cache = {"candidates": candidates}  # type: ignore[attr-defined]
    return item


def _picture(upload: Upload, draft: PictureDraft | None) -> Picture | None:
    if draft is None:
        return None
    found = uploaded_picture(upload, picture_path(draft))
    return Picture(
        sha256=sha256(found.content).hexdigest(),
        media_type=found.media_type,
        content=found.content,
    )
