import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.core.paginator import Page, Paginator
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from annotation.label_uploads import LabelSettings
from annotation.models import StoredMapping, Study, Upload
from annotation.pages.import_forms import DELIMITER_NAMES
from annotation.pages.upload_problems import (
    SEVERAL,
    PictureCells,
    Problem,
    find_problems,
    read_picture_cells,
)
from annotation.protocols.templates import read_protocol, size_problems
from annotation.readers.drafts import Fault, FaultGroup, Faults, ItemDraft, PictureDraft
from annotation.readers.formats import CSV, EXCEL, JSON, JSON_LINES, ODS, PARQUET, FileFormat
from annotation.readers.mapped_items import MappedItems
from annotation.readers.mapping import (
    POOL_LABELS,
    Column,
    ColumnMapping,
    Use,
    guess_reasons,
    mapping_faults,
    mapping_warnings,
)
from annotation.readers.pictures import ListedPictures, NoPictures, PictureSource
from annotation.readers.rows import Row, gather_rows
from annotation.score_settings import KIND as SCORES, ScoreSettings
from annotation.upload_pictures import opened_pictures
from annotation.uploads import columns_digest, guess_of, keep_mapping, request_reading
from error_codes import CodedText

ALTERNATIVES = Study.Kind.ALTERNATIVES
ITEMS_SHOWN = 1


@dataclass(frozen=True)
class Preview:
    problems: Sequence[CodedText]
    warnings: Sequence[CodedText]
    to_resolve: Sequence[Problem]
    shown: Page[Any]
    faults: list[Fault]
    n_faults: int
    notes: list[str]
    n_items: int
    n_responses: int
    n_systems: int
    n_per_item: tuple[int, int]
    ends: list[str]
    is_pool: bool
    is_whole: bool
    n_sample: int
    has_responses: bool

    @property
    def is_possible(self) -> bool:
        return not self.problems and self.n_items > 0

    @property
    def n_required(self) -> int:
        return sum(problem.is_open for problem in self.to_resolve)

    @property
    def n_optional(self) -> int:
        return sum(not (each.is_required or each.is_resolved) for each in self.to_resolve)

    @property
    def why_not(self) -> str:
        """Why no study can be created yet; "" if it can."""
        if not self.has_responses:
            return _("Choose a column with responses first.")
        if self.n_required:
            codes = {problem.code for problem in self.to_resolve if problem.is_open}
            if all("picture" in code for code in codes):
                return _("Resolve the pictures first.")
            n = self.n_required
            return ngettext("Resolve %(n)s problem first.", "Resolve %(n)s problems first.", n) % {
                "n": n
            }
        return "" if self.n_items else _("The file has no items yet.")

    @property
    def sentence(self) -> str:
        n = self.n_items
        items = ngettext("%(n)s item", "%(n)s items", n) % {"n": f"{n:,}"}
        n = self.n_responses
        responses = (
            ngettext("%(n)s candidate", "%(n)s candidates", n)
            if self.is_pool
            else ngettext("%(n)s response", "%(n)s responses", n)
        ) % {"n": f"{n:,}"}
        n = self.n_systems
        if not n:
            return _("{items} with {responses}").format(items=items, responses=responses)
        return _("{items} with {responses} of {systems}").format(
            items=items,
            responses=responses,
            systems=ngettext("%(n)s system", "%(n)s systems", n) % {"n": f"{n:,}"},
        )

    @property
    def per_item(self) -> str:
        fewest, most = self.n_per_item
        n = f"{most:,}" if fewest == most else _("{n} to {most}").format(n=fewest, most=most)
        text = _("{n} candidates per item.") if self.is_pool else _("{n} responses per item.")
        return text.format(n=n) if most else ""


def column_rows(upload: Upload) -> list[dict[str, Any]]:
    """The `state` is "kept" from an earlier file, "changed" by hand, "unused", or "" as guessed."""
    mapping, guessed = ColumnMapping.of(upload.mapping), guess_of(upload)
    columns = [Column(**column) for column in upload.columns]
    reasons = guess_reasons(guessed, columns, upload.n_rows or 0)
    labels = dict(use_labels(upload))
    rows = []
    for n, column in enumerate(columns):
        use, guess = mapping.uses.get(column.name), guessed.uses.get(column.name)
        reason, state = str(reasons[column.name]), "" if use else "unused"
        if use != guess:
            state = "kept" if upload.is_mapping_known else "changed"
            label = labels[guess] if guess else _("Not used")
            reason = (
                _("As in your last file with these columns. The guess was “{use}”.")
                if upload.is_mapping_known
                else _("You changed this. The guess was “{use}”.")
            ).format(use=label)
        row = {"n": n, "name": column.name, "first": column.first, "use": use}
        row |= {"system": mapping.system_of(column.name), "reason": reason, "state": state}
        rows.append(row)
    return rows


def use_labels(upload: Upload) -> list[tuple[str, str]]:
    own = POOL_LABELS if upload.kind == ALTERNATIVES else {}
    return [(str(use), str(own.get(use, use.label))) for use in Use]


def is_mapping_stored(upload: Upload) -> bool:
    """Whether the next file with these columns gets this mapping."""
    stored = (
        StoredMapping.objects.filter(**StoredMapping.owner_of(upload))
        .filter(columns_digest=columns_digest(upload))
        .first()
    )
    mapping = replace(ColumnMapping.of(upload.mapping), fixes={})
    return stored is not None and ColumnMapping.of(stored.mapping) == mapping


@contextmanager
def _listed_pictures(upload: Upload) -> Iterator[ListedPictures | NoPictures]:
    if not upload.has_pictures:
        yield NoPictures()
        return
    with opened_pictures(upload, ListedPictures) as source:
        yield source


def preview_of(upload: Upload, page: str = "") -> Preview:
    """Computed from the rows stored with the upload, without reading the file."""
    mapping, faults = ColumnMapping.of(upload.mapping), Faults()
    problems = mapping_faults(mapping, has_pictures=upload.has_pictures)
    with _listed_pictures(upload) as source:
        pictures = _picture_cells(upload, mapping, source)
        items = _sampled_items(
            upload, _with_likely_folder(mapping, pictures), faults, source, is_empty=bool(problems)
        )
        shown: Page[Any] = Paginator(list(items), ITEMS_SHOWN).get_page(page)
    shown.object_list = [_item(item) for item in shown.object_list]
    is_whole = len(upload.sample) == upload.n_rows
    counts = (
        (len(items), items.n_candidates, items.n_systems)
        if is_whole or problems
        else _counts(upload, mapping)
    )
    known = {(each["line"], each["column"], each["problem"]) for each in upload.faults}
    new = [each for each in faults.first if (each.line, each.column, each.problem) not in known]
    warnings = mapping_warnings(mapping) if not problems else []
    if upload.template and not upload.study_id and len(items):
        warnings += size_problems(read_protocol(upload.template), *items.n_per_item)
    return Preview(
        problems,
        warnings,
        find_problems(upload, mapping, problems, items, _merged_groups(upload, faults), pictures),
        shown,
        sorted([*(Fault(**each) for each in upload.faults), *new], key=lambda each: each.line or 0),
        upload.n_faults + len(new) + faults.n_more,
        items.report().omissions() if is_whole else [],
        *counts,
        n_per_item=items.n_per_item,
        ends=items.first_and_last if is_whole else [],
        is_pool=upload.kind == ALTERNATIVES,
        is_whole=is_whole,
        n_sample=len(upload.sample),
        has_responses=any(mapping.columns(use) for use in (Use.RESPONSE, Use.CANDIDATE_PICTURE)),
    )


def previewed_item(upload: Upload, page: str) -> ItemDraft | None:
    """The item of that page of the preview; its pictures are `ListedPictures`."""
    mapping = ColumnMapping.of(upload.mapping)
    is_empty = bool(mapping_faults(mapping, has_pictures=upload.has_pictures))
    with _listed_pictures(upload) as source:
        likely = _with_likely_folder(mapping, _picture_cells(upload, mapping, source))
        items = list(_sampled_items(upload, likely, Faults(), source, is_empty=is_empty))
    return next(iter(Paginator(items, ITEMS_SHOWN).get_page(page)), None)


def _picture_cells(upload: Upload, mapping: ColumnMapping, source: PictureSource) -> PictureCells:
    if not isinstance(source, ListedPictures):
        return PictureCells()
    return read_picture_cells(source, mapping, [fields for _line, fields, _is_csv in upload.sample])


def _with_likely_folder(mapping: ColumnMapping, pictures: PictureCells) -> ColumnMapping:
    """The preview shows pictures that are in several folders as if the first were chosen."""
    if not pictures.unclear_folders:
        return mapping
    return replace(mapping, fixes={SEVERAL: pictures.unclear_folders[0], **mapping.fixes})


def _sampled_items(
    upload: Upload,
    mapping: ColumnMapping,
    faults: Faults,
    source: PictureSource,
    *,
    is_empty: bool,
) -> MappedItems:
    path = Path(upload.file_name)
    sample = [] if is_empty else upload.sample
    rows = [Row(path, line, fields, is_csv=is_csv) for line, fields, is_csv in sample]
    return MappedItems(
        gather_rows(rows, [], faults.add),
        mapping,
        path=path,
        faults=faults,
        pictures=source,
        is_pool=upload.kind == ALTERNATIVES,
    )


def _merged_groups(upload: Upload, faults: Faults) -> list[FaultGroup]:
    """Groups of equal faults of the whole file and, if they are not among them, of its sample."""
    stored = [FaultGroup(**each) for each in upload.reading.get("faults", ()) if upload.n_faults]
    known = {(group.code, group.column) for group in stored}
    return [*stored, *(g for g in faults.groups.values() if (g.code, g.column) not in known)]


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
    return {
        "item": item,
        "picture": picture_path(item.picture),
        "candidates": [(each, picture_path(each.picture)) for each in item.candidates],
    }


def picture_path(picture: PictureDraft | None) -> str:
    """The path in the zip of a picture of the preview."""
    return picture.content.removeprefix(ListedPictures.MARK).decode() if picture else ""


def file_in_words(upload: Upload) -> str:
    """Such as "12.4 MB · 96 pictures in pics/"."""
    parts = [filesizeformat(upload.n_bytes)]
    if upload.has_pictures:
        with opened_pictures(upload, ListedPictures) as source:
            folders = {posixpath.dirname(path) for path in source.pictures}
            n = len(source.pictures)
        text = ngettext("%(n)s picture", "%(n)s pictures", n) % {"n": f"{n:,}"}
        [folder] = folders if len(folders) == 1 else [""]
        parts.append(_("{n} in {folder}/").format(n=text, folder=folder) if folder else text)
    return " · ".join(reversed(parts))


def format_in_words(upload: Upload) -> str:
    form = FileFormat.of(upload.form)
    names = {
        EXCEL: _("Excel"),
        ODS: _("OpenDocument"),
        JSON: _("JSON"),
        JSON_LINES: _("JSON Lines"),
        PARQUET: _("Parquet"),
    }
    csv = _("CSV with {delimiter} between columns").format(
        delimiter=DELIMITER_NAMES.get(form.delimiter, form.delimiter)
    )
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
        return list(map(str, preview_of(row).problems))
    is_labels = row.content == Upload.Content.LABELS
    chosen = LabelSettings.of(row.mapping) if is_labels else ScoreSettings.of(row.mapping)
    problems = [str(problem) for problem in chosen.problems()]
    if n := row.n_faults:
        problems.append(
            ngettext("%(n)s fault in the file.", "%(n)s faults in the file.", n) % {"n": f"{n:,}"}
        )
    return problems
