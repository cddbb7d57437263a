import json
import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    DRAFTS_WITH_PICTURES_AT_ONCE,
    CandidateDraft,
    ItemDraft,
    PictureDraft,
    ReadingReport,
    StudyDraft,
)
from annotation.readers.item_files import ACCEPTABLE
from annotation.readers.pictures import Folder, PictureSource, read_picture
from annotation.readers.rows import Row
from annotation.readers.tables import kind_of
from retrieval.exceptions import PoolFileFaults
from retrieval.pools.records import Pool, Slot, Target
from retrieval.text_lines import each_table_row, each_text_line, take_rows
from retrieval.trec_files import Run
from stats.arguments import Floats

NAMES = ("docno", "id", "key", "item", "target")
TITLES = ("title", "text", "name", "caption")
PICTURES = ("image", "picture", "path")
DIGESTS = ("digest", "sha256")
MOST_FAULTS = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """A document that may be shown; `digest` is the same for the same picture, or text."""

    docno: str
    title: str = ""
    image: str = ""
    digest: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Catalogue:
    documents: dict[str, Document]
    pictures: PictureSource | None = None
    folder: Path | None = None
    path: Path | None = None
    lines: dict[str, int] = field(default_factory=dict, repr=False)

    def __contains__(self, docno: object) -> bool:
        return docno in self.documents

    def content(self, docno: str) -> str:
        """The same for the same picture or text; a document without either is its name."""
        document = self.documents.get(docno)
        return (document.digest if document else "") or docno

    def title(self, docno: str) -> str:
        document = self.documents.get(docno)
        return document.title or docno if document else docno

    def picture(self, docno: str) -> PictureDraft | None:
        document = self.documents.get(docno)
        if document is None or not document.image or self.pictures is None:
            return None
        row = Row(self.path or Path(), self.lines.get(docno, 0), {"image": document.image})
        return read_picture(row, "image", self.pictures)


def names_alone(names: Iterable[str]) -> Catalogue:
    return Catalogue({name: Document(name) for name in names})


def read_catalogue(
    path: Path, *, pictures: PictureSource | None = None, report: ReadingReport | None = None
) -> Catalogue:
    """The documents of a CSV, TSV or JSON Lines file; pictures are files named relative to it.

    A document whose picture cannot be shown stays in the catalogue, with the problem. A name that
    is given twice is refused by line.
    """
    source = pictures or Folder(path.parent)
    documents: dict[str, Document] = {}
    lines: dict[str, int] = {}

    is_first = True

    def take(row: Row) -> None:
        nonlocal is_first
        if is_first and _present(row, NAMES) is None:
            raise PoolFileFaults.of_one(
                path,
                f"there is no column for the document's name, such as {NAMES[0]}.",
                "missing_column",
                line=1,
            )
        is_first = False
        document = _document(row, source)
        if document.docno in documents:
            first = lines[document.docno]
            raise row.refuse(
                f"document {document.docno} is in line {first} already. Keep one of the two.",
                code="twice",
            )
        documents[document.docno], lines[document.docno] = document, row.line

    rows = each_table_row(path, PoolFileFaults, report=report)
    take_rows(path, PoolFileFaults, rows, take, most_faults=MOST_FAULTS)
    return Catalogue(documents, source, path.parent, path, lines)


def document_names(path: Path, *, report: ReadingReport | None = None) -> list[str]:
    """The documents of such a file by name, in its order; what is shown of them is not read."""
    lines: dict[str, int] = {}

    def take(row: Row) -> None:
        if (column := _present(row, NAMES)) is None:
            raise PoolFileFaults.of_one(
                path,
                f"there is no column for the document's name, such as {NAMES[0]}. A list that has "
                "a name a line and no columns is a .txt file.",
                "missing_column",
                line=1,
            )
        name = require_name(row, column)
        if lines.setdefault(name, row.line) != row.line:
            raise row.refuse(f"document {name} is in line {lines[name]} already.", code="twice")

    take_rows(path, PoolFileFaults, each_table_row(path, PoolFileFaults, report=report), take)
    return list(lines)


def _document(row: Row, pictures: PictureSource) -> Document:
    docno = require_name(row, _present(row, NAMES) or NAMES[0])
    title, image, digest = (_cell(row, names) for names in (TITLES, PICTURES, DIGESTS))
    problem = ""
    if image:
        try:
            picture = read_picture(row, _present(row, PICTURES) or "", pictures)
            digest = digest or (sha256(picture.content).hexdigest() if picture else "")
        except ImportRefused as refused:
            problem = refused.problem
    if not digest and not image and title:
        digest = sha256(" ".join(title.split()).encode()).hexdigest()
    return Document(docno, title, posixpath.normpath(image) if image else "", digest, problem)


def require_name(row: Row, field: str) -> str:
    """A document's or topic's name. White space is refused: it separates the columns of qrels."""
    name = row.required(field)
    if len(name.split()) != 1:
        raise row.refuse(f"'{name[:40]}' has white space in it, which no qrels can hold.", field)
    return name


def _present(row: Row, names: tuple[str, ...]) -> str | None:
    by_lower_case = {name.lower(): name for name in row.fields}
    return next((by_lower_case[name] for name in names if name in by_lower_case), None)


def _cell(row: Row, names: tuple[str, ...]) -> str:
    present = _present(row, names)
    return row.optional(present, longest=10_000) if present else ""


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
    return StudyDraft(
        kind="alternatives",
        items=PooledItems(pool, catalogue),
        questions=(ACCEPTABLE,),
        drafts_at_once=DRAFTS_WITH_PICTURES_AT_ONCE,
    )


def alternatives_lines(pool: Pool, catalogue: Catalogue, folder: Path) -> Iterator[str]:
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


# The same as the most candidates of a pool.
MOST_TARGETS = 1_000_000


def read_targets(
    path: Path,
    *,
    topic: str = "topic",
    target: str = "target",
    report: ReadingReport | None = None,
) -> list[Target]:
    """The targets of a file; where it has no column for the topic, that is the target's name.

    A file whose name ends in .txt or .ids has a target a line.
    """
    return [one for one, _, _ in _read(path, topic, target, None, report=report)]


def read_target_values(
    path: Path,
    column: str,
    *,
    topic: str = "topic",
    target: str = "target",
    is_required: bool = True,
    report: ReadingReport | None = None,
) -> tuple[list[Target], Floats]:
    """The targets of a file, and the number that a column of it has for each.

    NaN where the column is empty, or where there is none and it is not required.
    """
    read = _read(path, topic, target, column, is_required=is_required, report=report)
    return [one for one, _, _ in read], np.array([value for _, value, _ in read])


def line_of_topic(path: Path, topic: str) -> int:
    return next(line for one, _, line in _read(path, "topic", "target", None) if one.topic == topic)


def _read(
    path: Path,
    topic: str,
    target: str,
    column: str | None,
    *,
    is_required: bool = True,
    report: ReadingReport | None = None,
) -> list[tuple[Target, float, int]]:
    lines: dict[str, int] = {}
    read: list[tuple[Target, float, int]] = []

    def take(row: Row) -> None:
        one = _target(row, topic, target)
        value = row.number_or_nan(column) if column else nan
        if (line := lines.setdefault(one.topic, row.line)) != row.line:
            raise row.refuse(f"topic {one.topic} is in line {line} already.", code="twice")
        read.append((one, value, row.line))

    rows = _rows(path, [target, *([column] if column and is_required else [])], report)
    take_rows(path, PoolFileFaults, rows, take)
    return read


def targets_of_runs(runs: Sequence[Run], documents: Iterable[str] = ()) -> list[Target]:
    """The topics of all runs; a topic that has the name of a document is about that document."""
    known = set(documents)
    topics = dict.fromkeys(topic for run in runs for topic in run.topics)
    return [Target(topic, topic if topic in known else "") for topic in topics]


def _rows(path: Path, columns: Sequence[str], report: ReadingReport | None) -> list[Row]:
    if kind_of(path) not in (".txt", ".ids"):
        return _few(path, each_table_row(path, PoolFileFaults, columns, report=report))
    lines = each_text_line(path, PoolFileFaults, report=report)
    rows = _few(path, (Row(path, line, {columns[0]: text}) for line, text in lines if text.strip()))
    if not rows:
        raise PoolFileFaults.of_one(path, "it holds no targets.", "no_targets")
    return rows


def _few(path: Path, rows: Iterator[Row]) -> list[Row]:
    few = list(islice(rows, MOST_TARGETS + 1))
    if len(few) > MOST_TARGETS:
        raise PoolFileFaults.of_one(
            path,
            f"it has more than {MOST_TARGETS:,} targets. Split it.",
            "too_many_targets",
            line=few[-1].line,
        )
    return few


def _target(row: Row, topic: str, target: str) -> Target:
    docno = require_name(row, target) if row.optional(target) else ""
    return Target(require_name(row, topic) if row.optional(topic) or not docno else docno, docno)
