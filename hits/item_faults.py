"""Which items of a study make no page that a marketplace takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.protocols.versions import current_document
from hits.exceptions import BatchUnfit, HitsError, QuestionTooLarge
from hits.questions import html_question
from presentation.progress import Progress, silently

# Items with their pictures that are in memory at once.
CHUNK = 20


@dataclass(frozen=True)
class ItemFault:
    """What is wrong with an item's page."""

    item_id: int
    key: str
    error: HitsError


def item_faults(study: Study, progress: Progress = silently) -> Iterator[ItemFault]:
    """Every item whose page cannot be published, with the reason."""
    document = current_document(study)
    items = study.items.select_related("study", "picture")
    items = items.prefetch_related("candidates__picture", "study__questions")
    for item in progress(items.iterator(chunk_size=CHUNK), items.count()):
        try:
            html_question(item, document)
        except QuestionTooLarge as error:
            yield ItemFault(item.pk, item.key, error)
        except ValueError as error:
            message = _("An item cannot be shown to workers: {error}").format(error=error)
            yield ItemFault(item.pk, item.key, BatchUnfit(message, code=getattr(error, "code", "")))
