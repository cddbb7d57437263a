"""A page of practice as the Protocol page's preview has it, of a draft that may have faults."""

from __future__ import annotations

from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.protocols.practice import PATH, practice_faults, practice_source_faults
from annotation.protocols.records import ProtocolDocument
from hits.practice_pages import practice_page
from hits.questions import task_page


def practice_preview(study: Study, document: ProtocolDocument, number: str) -> str:
    """The page of that number, from 0; nothing where there is none, ValueError where something is
    wrong with it."""
    practice = document.qualifications.practice
    n = len(practice.items) if practice else 0
    if not number.isdecimal() or len(number) > 2 or int(number) >= n:
        return ""
    faults = [*practice_faults(document), *practice_source_faults(study, document)]
    if any(fault.path[:4] == (*PATH, "items", int(number)) for fault in faults):
        raise ValueError(_("This page of practice is shown once its faults are mended."))
    page = practice_page(study, document, int(number))
    return task_page(page.item, document, practice=page.record())
