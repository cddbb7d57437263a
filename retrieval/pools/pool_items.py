"""A pool as the items of an alternatives study."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.readers.alternatives import ACCEPTABLE
from annotation.readers.drafts import (
    DRAFTS_WITH_PICTURES_AT_ONCE,
    CandidateDraft,
    ItemDraft,
    StudyDraft,
)
from retrieval.pools.catalogue import Catalogue
from retrieval.pools.records import Pool, Slot, Target


@dataclass(frozen=True)
class PooledItems(Collection[ItemDraft]):
    """A target and its candidates an item, made as they are gone through: pictures are large.

    A candidate's system is its source, which workers never see. Candidates are in the order drawn
    to present them; the worker's page shuffles them once more. A target without any is no item:
    there is nothing to ask about it.
    """

    pool: Pool
    catalogue: Catalogue

    def __len__(self) -> int:
        return len({slot.topic for slot in self.pool.slots})

    def __contains__(self, thing: object) -> bool:
        return any(each == thing for each in self)

    def __iter__(self) -> Iterator[ItemDraft]:
        for number, (target, slots) in enumerate(_topics(self.pool), 1):
            yield ItemDraft(
                key=target.topic,
                line=number,
                context=self.catalogue.title(target.docno or target.topic),
                picture=self.catalogue.picture(target.docno),
                candidates=tuple(map(self._candidate, slots)),
            )

    def _candidate(self, slot: Slot) -> CandidateDraft:
        return CandidateDraft(
            key=slot.docno,
            system=slot.source,
            text=self.catalogue.title(slot.docno),
            picture=self.catalogue.picture(slot.docno),
        )


def pool_study(pool: Pool, catalogue: Catalogue) -> StudyDraft:
    """What `import_study` makes an alternatives study of."""
    items = PooledItems(pool, catalogue)
    return StudyDraft(
        kind="alternatives",
        items=items,
        questions=(ACCEPTABLE,),
        drafts_at_once=DRAFTS_WITH_PICTURES_AT_ONCE,
    )


def alternatives_lines(pool: Pool, catalogue: Catalogue, folder: Path) -> Iterator[str]:
    """The lines of a file for `import_alternatives` that will stand in this folder."""
    for target, slots in _topics(pool):
        item = {
            "item": target.topic,
            "target": _content(target.docno or target.topic, catalogue, folder),
            "candidates": [
                {"key": slot.docno, "system": slot.source} | _content(slot.docno, catalogue, folder)
                for slot in slots
            ],
        }
        yield f"{json.dumps(item, ensure_ascii=False)}\n"


def _content(docno: str, catalogue: Catalogue, folder: Path) -> dict[str, Any]:
    document = catalogue.documents.get(docno)
    shown = {"title": catalogue.title(docno)}
    if document and document.image and catalogue.folder:
        shown["image"] = os.path.relpath(catalogue.folder / document.image, folder)
    return shown


def _topics(pool: Pool) -> Iterator[tuple[Target, list[Slot]]]:
    slots = pool.by_topic()
    for target in pool.targets:
        if of_target := slots[target.topic]:
            yield target, sorted(of_target, key=lambda slot: (slot.position, slot.slot))
