"""Rows of a table by a mapping of its columns: items, responses, and cells that cannot be used."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.mapping import LONGEST_SYSTEM, ColumnMapping, Use
from annotation.readers.pictures import PictureSource, read_picture
from annotation.readers.rows import CheckedCells, RowBlock


class Responses(NamedTuple):
    column: str
    keys: Sequence[str]
    systems: Sequence[str]
    texts: Sequence[str]
    pictures: Sequence[str]
    digests: Sequence[str]


class MappedRows:
    """Of each row of a block its item's name, its page, and the digest of its picture.

    `responses` has a column of responses for each system, or one in a table of a row per response.
    `cells.faults` has every cell that cannot be used.
    """

    def __init__(
        self,
        block: RowBlock,
        mapping: ColumnMapping,
        *,
        pictures: PictureSource,
        is_pool: bool,
    ) -> None:
        self.block, self.cells = block, CheckedCells(block)
        self._mapping, self._pictures, self._is_pool = mapping, pictures, is_pool
        self._folder = mapping.fixes.get("several_pictures")
        cells, column = self.cells, mapping.column
        contexts = [cells.texts(each) for each in mapping.columns(Use.CONTEXT)]
        if len(contexts) != 1:
            joined = ["\n\n".join(filter(None, each)) for each in zip(*contexts, strict=True)]
            contexts = [joined or [""] * len(block)]
        shared = [
            *contexts,
            cells.texts(column(Use.REFERENCE)),
            cells.names(column(Use.CONDITION), longest=64),
            stripped(cells.texts(column(Use.PICTURE))),
        ]
        self.pages = list(zip(*shared, strict=True))
        self.digests = self._picture_digests(column(Use.PICTURE))
        if is_pool:
            problem = _("a target needs a title: choose its column as “Context”.")
            for n, text in enumerate(shared[0]):
                if not text.strip():
                    cells.note(n, block.row(n).refuse(problem, code="no_title"))
        names = cells.names(column(Use.ITEM), is_required=True)
        if not all(names):
            names = [name or named_by(page) for name, page in zip(names, self.pages, strict=True)]
        self.names = names
        self.extras = self._extra_columns()
        self.responses = self._wide_responses() if mapping.is_wide else [self._responses()]

    def _extra_columns(self) -> list[str]:
        """Each row's extra columns as a JSON object; "" if they are empty."""
        names = self._mapping.columns(Use.EXTRA)
        if not names:
            return [""] * len(self.block)
        filled = (
            {name: text for name, text in zip(names, row, strict=True) if text}
            for row in zip(*map(self.cells.texts, names), strict=True)
        )
        return [json.dumps(cells, ensure_ascii=False) if cells else "" for cells in filled]

    def _wide_responses(self) -> list[Responses]:
        block, none = self.block, [""] * len(self.block)
        responses = []
        for column in self._mapping.columns(Use.RESPONSE):
            systems = [self._mapping.system_of(column)] * len(block)
            responses.append(
                Responses(column, systems, systems, self.cells.texts(column), none, none)
            )
        return responses

    def _responses(self) -> Responses:
        cells, column = self.cells, self._mapping.column
        system, candidate = column(Use.SYSTEM), column(Use.CANDIDATE)
        systems = cells.names(system, longest=LONGEST_SYSTEM, is_required=True)
        keys = cells.names(candidate, is_required=True)
        if not all(keys):
            keys = [key or name for key, name in zip(keys, systems, strict=True)]
        response, picture = column(Use.RESPONSE), column(Use.CANDIDATE_PICTURE)
        texts: Sequence[str] = cells.texts(response)
        if self._is_pool:
            texts = cells.names(response, longest=1000) if response else keys
        pictures = stripped(cells.texts(picture))
        digests = self._picture_digests(picture)
        return Responses(candidate or system or "", keys, systems, texts, pictures, digests)

    def _picture_digests(self, column: str | None) -> list[str]:
        digests = [""] * len(self.block)
        if column is None:
            return digests
        for n, row in enumerate(self.block.rows()):
            try:
                picture = read_picture(row, column, self._pictures, self._folder)
            except ImportRefused as refused:
                self.cells.note(n, refused, str(row.fields.get(column, "")))
            else:
                digests[n] = sha256(picture.content).hexdigest() if picture else ""
        return digests


def stripped(texts: Sequence[str]) -> list[str]:
    return [text.strip() for text in texts]


def named_by(page: Sequence[str]) -> str:
    """A name for an item that has none: the same for the same page, in whatever file."""
    digest = sha256("\x00".join(page).encode("utf-8", "replace")).hexdigest()
    return f"item-{digest[:12]}"
