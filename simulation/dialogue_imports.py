"""Studies of recorded dialogues written whole: items, protocol, and where each item comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Team
from annotation.imports import ImportResult, import_study
from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.readers.drafts import StudyDraft
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy
from simulation.recorded_dialogues import log_sha256


class DialogueItems(Protocol):
    """Items that were made of a log, with what is stored apart from what workers see."""

    @property
    def kind(self) -> DialogueStudy.Kind: ...

    @property
    def draft(self) -> StudyDraft: ...

    @property
    def origin(self) -> dict[str, Any]:
        """Fields of the `DialogueStudy`."""
        ...

    def store(self, dialogues: DialogueStudy) -> None: ...


@transaction.atomic
def import_dialogues(
    items: DialogueItems,
    *,
    log: Path,
    slug: str,
    title: str = "",
    owner: Any = None,
    team: Team | None = None,
) -> ImportResult:
    """Make a new study of them, ready to launch; the template has the name of its kind."""
    if Study.objects.filter(slug=slug).exists():
        raise DialoguesUnfit(
            _("There is a study '{study}' already. Choose another name.").format(study=slug),
            code="study_exists",
        )
    imported = import_study(
        draft=items.draft,
        path=log,
        slug=slug,
        title=title,
        owner=owner,
        team=team,
        protocol=read_protocol(items.kind),
    )
    dialogues = DialogueStudy(study=imported.study, kind=items.kind, log_name=log.name)
    _store(dialogues, items, log)
    return imported


@transaction.atomic
def fill_dialogues(dialogues: DialogueStudy, items: DialogueItems, *, log: Path) -> ImportResult:
    """Give a study of dialogues that has no items yet those of its log."""
    slug = dialogues.study.slug
    imported = import_study(draft=items.draft, path=log, slug=slug)
    _store(dialogues, items, log)
    return imported


def _store(dialogues: DialogueStudy, items: DialogueItems, log: Path) -> None:
    for name, value in items.origin.items():
        setattr(dialogues, name, value)
    dialogues.log_sha256, dialogues.made_at = log_sha256(log), timezone.now()
    dialogues.save()
    items.store(dialogues)
