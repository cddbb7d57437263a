from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from annotation.label_uploads import LabelSettings
from annotation.models import Upload
from annotation.pages.import_forms import DELIMITER_NAMES
from annotation.protocols.templates import read_protocol, size_problems
from annotation.readers.drafts import Fault, Faults, PictureDraft
from annotation.readers.formats import CSV, EXCEL, JSON, JSON_LINES, ODS, PARQUET, FileFormat
from annotation.readers.mapped_items import MappedItems
from annotation.readers.mapping import ColumnMapping, Use, mapping_faults, mapping_warnings
from annotation.readers.pictures import NamesOfPictures
from annotation.readers.rows import Row, gather_rows
from annotation.score_settings import KIND as SCORES, ScoreSettings
from annotation.uploads import keep_mapping, request_reading
from error_codes import CodedText

ITEMS_SHOWN = 3


@dataclass(frozen=True)
class ColumnRow:
    n: int
    name: str
    first: str
    use: Use | None
    system: str


@dataclass(frozen=True)
class Preview:
    problems: Sequence[str]
    warnings: Sequence[CodedText]
    shown: Page[Any]
    faults: list[Fault]
    n_faults: int
    notes: list[str]
    n_items: int
    n_responses: int
    n_systems: int
    n_uneven: int
    is_whole: bool
    n_sample: int
    has_responses: bool

    @property
    def is_possible(self) -> bool:
        return not self.problems and self.n_items > 0

    @property
    def sentence(self) -> str:
        n = self.n_items
        items = ngettext("%(n)s item", "%(n)s items", n) % {"n": f"{n:,}"}
        n = self.n_responses
        responses = ngettext("%(n)s response", "%(n)s responses", n) % {"n": f"{n:,}"}
        n = self.n_systems
        if not n:
            return _("{items} with {responses}").format(items=items, responses=responses)
        return _("{items} with {responses} of {systems}").format(
            items=items,
            responses=responses,
            systems=ngettext("%(n)s system", "%(n)s systems", n) % {"n": f"{n:,}"},
        )


def column_rows(upload: Upload) -> list[ColumnRow]:
    mapping = ColumnMapping.of(upload.mapping)
    return [
        ColumnRow(
            n,
            column["name"],
            column["first"],
            mapping.uses.get(column["name"]),
            mapping.system_of(column["name"]),
        )
        for n, column in enumerate(upload.columns)
    ]


def uses() -> list[tuple[str, str]]:
    return [(str(use), str(use.label)) for use in Use]


def preview_of(upload: Upload, page: str = "") -> Preview:
    """Computed from the rows stored with the upload, without reading the file."""
    mapping, faults = ColumnMapping.of(upload.mapping), Faults()
    problems = mapping_faults(mapping, has_pictures=upload.has_pictures)
    path = Path(upload.file_name)
    rows = [Row(path, line, fields, is_csv=is_csv) for line, fields, is_csv in upload.sample]
    items = MappedItems(
        gather_rows(rows if not problems else (), [], faults.add),
        mapping,
        path=path,
        faults=faults,
        pictures=NamesOfPictures(),
        is_pool=upload.kind == "alternatives",
    )
    is_whole = len(rows) == upload.n_rows
    whole = list(items)
    shown: Page[Any] = Paginator(whole, ITEMS_SHOWN).get_page(page)
    shown.object_list = [_item(item) for item in shown.object_list]
    counts = (
        (len(items), items.n_candidates, items.n_systems)
        if is_whole or problems
        else _counts(upload, mapping)
    )
    known = {(each["line"], each["column"], each["problem"]) for each in upload.faults}
    new = [each for each in faults.first if (each.line, each.column, each.problem) not in known]
    warnings = mapping_warnings(mapping) if not problems else []
    notes = [f"{note}." for note in items.notes() if note not in warnings]
    if upload.template and not upload.study_id and whole:
        sizes = [len(item.candidates) for item in whole]
        warnings += size_problems(read_protocol(upload.template), min(sizes), max(sizes))
    return Preview(
        problems,
        warnings,
        shown,
        [*(Fault(**each) for each in upload.faults), *new],
        upload.n_faults + len(new) + faults.n_more,
        notes if is_whole else [],
        *counts,
        n_uneven=items.n_uneven if is_whole else 0,
        is_whole=is_whole,
        n_sample=len(rows),
        has_responses=any(mapping.columns(use) for use in (Use.RESPONSE, Use.CANDIDATE_PICTURE)),
    )


def _counts(upload: Upload, mapping: ColumnMapping) -> tuple[int, int, int]:
    columns = {column["name"]: column for column in upload.columns}
    n_rows = upload.n_rows or 0
    named = mapping.column(Use.ITEM) or (None if mapping.is_wide else mapping.column(Use.CONTEXT))
    n_items = columns[named]["n_distinct"] if named else n_rows
    if mapping.is_wide:
        responses = mapping.columns(Use.RESPONSE)
        return n_items, sum(columns[name]["n_filled"] for name in responses), len(responses)
    system = mapping.column(Use.SYSTEM)
    return n_items, n_rows, columns[system]["n_distinct"] if system else 0


def _item(item: Any) -> dict[str, Any]:
    letters = [ascii_uppercase[n % 26] for n in range(len(item.candidates))]
    pictures = [_name(candidate.picture) for candidate in item.candidates]
    candidates = list(zip(letters, item.candidates, pictures, strict=True))
    return {"item": item, "picture": _name(item.picture), "candidates": candidates}


def _name(picture: PictureDraft | None) -> str:
    return picture.content.removeprefix(NamesOfPictures.MARK).decode() if picture else ""


def format_in_words(upload: Upload) -> str:
    form = FileFormat.of(upload.form)
    names = {
        EXCEL: _("Excel"),
        ODS: _("OpenDocument"),
        JSON: _("JSON"),
        JSON_LINES: _("JSON Lines"),
        PARQUET: _("Parquet"),
    }
    delimiter = DELIMITER_NAMES.get(form.delimiter, form.delimiter)
    csv = _("CSV with {delimiter} between columns").format(delimiter=delimiter)
    is_unicode = form.encoding.startswith("utf")
    parts = (
        (True, csv if form.kind == CSV else names.get(form.kind, "")),
        (form.encoding, form.encoding.upper() if is_unicode else form.encoding.capitalize()),
        (form.sheet, _("sheet “{name}”").format(name=form.sheet)),
        (form.table, _("{name} in the zip").format(name=form.table)),
    )
    return ", ".join(text for is_there, text in parts if is_there)


def map_anew(row: Upload, mapping: dict[str, Any], person: User) -> bool:
    """Keep what is said of labels or scores; whether that was said before. What comes of it shows
    when the file is read by it."""
    if mapping == row.mapping:
        return True
    row.mapping = mapping
    row.is_mapping_known = False
    if row.content == Upload.Content.LABELS:
        chosen = LabelSettings.of(mapping)
        if "uses" in mapping and not chosen.problems():
            keep_mapping(row, chosen.tool)
    elif not ScoreSettings.of(mapping).problems():
        keep_mapping(row, SCORES)
    request_reading(upload=row, requested_by=person)
    return False


def import_problems(row: Upload) -> list[str]:
    if row.content == Upload.Content.ITEMS:
        return list(preview_of(row).problems)
    is_labels = row.content == Upload.Content.LABELS
    chosen = LabelSettings.of(row.mapping) if is_labels else ScoreSettings.of(row.mapping)
    problems = [str(problem) for problem in chosen.problems()]
    if n := row.n_faults:
        text = ngettext("%(n)s fault in the file.", "%(n)s faults in the file.", n)
        problems.append(text % {"n": f"{n:,}"})
    return problems
