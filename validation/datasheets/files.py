"""A study's datasheets as files: how it came about, which needs no metric."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import Study
from presentation.documents import Document
from presentation.formats import FORMATS
from validation.datasheets.heds import heds_document
from validation.datasheets.short import datasheet_document
from validation.study_results import current_version

# In the order of a list of them, with what each holds.
DATASHEETS: Mapping[str, Promise] = {
    "datasheet.html": _(
        "Wording, instructions, consent, pay, dates, annotators, rejections, agreement and means."
    ),
    "datasheet.md": _("The same as Markdown."),
    "heds.html": _("The Human Evaluation Datasheet (HEDS), filled as far as it is known here."),
    "heds.md": _("The same as Markdown, to go on with."),
}


def datasheet_file(study: Study, name: str, *, with_money: bool) -> bytes:
    """One of `DATASHEETS`; amounts of money are for roles that may see them."""
    kind, _dot, form = name.partition(".")
    return FORMATS[form](_document(study, kind, with_money))[f"report.{form}"]


def _document(study: Study, kind: str, with_money: bool) -> Document:
    version = current_version(study)
    if kind == "heds":
        return heds_document(study, version)
    return datasheet_document(study, version, with_money=with_money)
