"""What is to be resolved before an uploaded file becomes items: one row per kind of problem."""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _, ngettext

from annotation.models import Upload
from annotation.pages.import_forms import NO_PICTURES
from annotation.readers.drafts import FaultGroup
from annotation.readers.formats import EXCEL, ODS
from annotation.readers.mapped_items import BLANK, NO_TEXT, REPEATED, Found, MappedItems
from annotation.readers.mapping import KEEP, LEAVE_OUT, Column, ColumnMapping, Use
from annotation.readers.pictures import Archive
from annotation.uploads import guess_of
from error_codes import CodedText

FOLDERS, SEVERAL, NO_ITEM = "picture_folders", "several_pictures", "no_item_column"
GENERATE, USE = "generate", "use"
MOST_FOLDERS = 3


@dataclass(frozen=True)
class Fix:
    """`value` is posted as `fix`: the code of a problem and what is done about it."""

    value: str
    label: str
    is_chosen: bool = False


@dataclass(frozen=True)
class Problem:
    code: str
    title: str
    detail: str = ""
    is_required: bool = True
    is_fault: bool = False
    fixes: Sequence[Fix] = ()

    @property
    def is_resolved(self) -> bool:
        return any(fix.is_chosen for fix in self.fixes)

    @property
    def is_open(self) -> bool:
        return self.is_required and not self.is_resolved


@dataclass(frozen=True)
class PictureCells:
    """How the cells of the first rows name the pictures of the zip.

    `n_bare` cells name a picture without its folder, `n_unclear` one that several folders have.
    """

    n_bare: int = 0
    example: tuple[str, str] = ("", "")
    folders: tuple[str, ...] = ()
    n_unclear: int = 0
    unclear_example: str = ""
    unclear_folders: tuple[str, ...] = ()


def read_picture_cells(
    source: Archive, mapping: ColumnMapping, rows: Iterable[dict[str, object]]
) -> PictureCells:
    columns = [*mapping.columns(Use.PICTURE), *mapping.columns(Use.CANDIDATE_PICTURE)]
    cells = Counter(str(row.get(name) or "").strip() for row in rows for name in columns)
    del cells[""]
    found = {cell: source.find(cell) for cell in cells if source.exact_path(cell) is None}
    bare = {cell: paths[0] for cell, paths in found.items() if len(paths) == 1}
    unclear = {cell: paths for cell, paths in found.items() if len(paths) > 1}
    folders = Counter(map(posixpath.dirname, bare.values()))
    of_unclear = Counter(posixpath.dirname(path) for paths in unclear.values() for path in paths)
    return PictureCells(
        sum(cells[cell] for cell in bare),
        next(iter(bare.items()), ("", "")),
        tuple(folder for folder, _n in folders.most_common()),
        sum(cells[cell] for cell in unclear),
        next(iter(unclear), ""),
        tuple(folder for folder, _n in of_unclear.most_common(MOST_FOLDERS)),
    )


def find_problems(
    upload: Upload,
    mapping: ColumnMapping,
    faults: Sequence[CodedText],
    items: MappedItems,
    groups: Iterable[FaultGroup],
    pictures: PictureCells,
) -> list[Problem]:
    """Problems of the columns first, then those of pictures, of rows, and optional ones."""
    problems = [_mapping_problem(fault) for fault in faults if fault.code != "no_response"]
    if not faults and not mapping.columns(Use.ITEM):
        problems.append(_generated_names(upload, mapping, len(items)))
    problems += _picture_problems(mapping, pictures)
    problems += [
        _fault_problem(upload, mapping, group) for group in groups if group.code != SEVERAL
    ]
    problems += [_found_problem(upload, mapping, found) for found in items.found]
    return sorted(problems, key=lambda problem: not problem.is_required)


def _fix(mapping: ColumnMapping, code: str, choice: str, label: str) -> Fix:
    return Fix(f"{code}={choice}", label, mapping.fixes.get(code) == choice)


def _mapping_problem(fault: CodedText) -> Problem:
    fixes = [Fix(f"{NO_PICTURES}={LEAVE_OUT}", _("Continue without pictures"))]
    return Problem(fault.code, str(fault), fixes=fixes if fault.code == NO_PICTURES else ())


def _generated_names(upload: Upload, mapping: ColumnMapping, n_items: int) -> Problem:
    fixes = [_fix(mapping, NO_ITEM, GENERATE, _("Generate IDs"))]
    if best := _best_item_column(upload, mapping, n_items):
        number = [column["name"] for column in upload.columns].index(best)
        fixes.insert(0, Fix(f"item={number}", _("Use {column} as item ID").format(column=best)))
    return Problem(
        NO_ITEM,
        _("Item IDs will be generated."),
        _("No column is the item ID. Exports and qrels would contain IDs such as {name}.").format(
            name="item-1b54ddf4749b"
        ),
        fixes=fixes,
    )


def _best_item_column(upload: Upload, mapping: ColumnMapping, n_items: int) -> str | None:
    if guessed := guess_of(upload).column(Use.ITEM):
        return guessed
    unused = [
        column
        for column in (Column(**column) for column in upload.columns)
        if column.name not in mapping.uses
        and column.n_filled == upload.n_rows
        and column.n_distinct >= n_items > 0
        and column.is_name
    ]
    # With as few values as there are items, and codes before numbers.
    unused.sort(key=lambda column: (column.n_distinct, bool(column.lowest)))
    return unused[0].name if unused else None


def _picture_problems(mapping: ColumnMapping, pictures: PictureCells) -> Iterator[Problem]:
    if n := pictures.n_unclear:
        title = ngettext(
            "%(n)s cell names a picture that is in several folders.",
            "%(n)s cells name pictures that are in several folders.",
            n,
        )
        label = _("Use pictures from {folder}/")
        yield Problem(
            SEVERAL,
            title % {"n": f"{n:,}"},
            _("Example: {name}.").format(name=pictures.unclear_example),
            fixes=[
                _fix(mapping, SEVERAL, folder, label.format(folder=folder))
                for folder in pictures.unclear_folders
            ],
        )
    if n := pictures.n_bare:
        title = ngettext(
            "%(n)s cell contains a picture name without its folder.",
            "%(n)s cells contain a picture name without its folder.",
            n,
        )
        [folder, *others] = pictures.folders
        where = (
            _("All files are in the folder {folder}/.")
            if not others
            else _("The files are in {n} folders, such as {folder}/.")
        )
        example = _("Example: {name} is {path}.")
        label = _("Use pictures from {folder}/") if not others else _("Use these pictures")
        yield Problem(
            FOLDERS,
            title % {"n": f"{n:,}"},
            " ".join([where, example]).format(
                n=len(pictures.folders),
                folder=folder,
                name=pictures.example[0],
                path=pictures.example[1],
            ),
            is_required=False,
            fixes=[_fix(mapping, FOLDERS, USE, label.format(folder=folder))],
        )


def _fault_titles(n: int) -> dict[str, str]:
    return {
        "no_picture": ngettext(
            "%(n)s cell names a picture that is not in the zip.",
            "%(n)s cells name pictures that are not in the zip.",
            n,
        ),
        "field_count": ngettext(
            "%(n)s row has another number of cells than the header.",
            "%(n)s rows have another number of cells than the header.",
            n,
        ),
        "empty": ngettext(
            "%(n)s cell that needs a value is empty.", "%(n)s cells that need a value are empty.", n
        ),
        "differs": ngettext(
            "%(n)s row differs from an earlier row of its item.",
            "%(n)s rows differ from an earlier row of their item.",
            n,
        ),
        "repeated_response": ngettext(
            "%(n)s row has a second response with the same name in its item.",
            "%(n)s rows have a second response with the same name in their item.",
            n,
        ),
        "no_response": ngettext("%(n)s item has no response.", "%(n)s items have no response.", n),
        "no_title": ngettext("%(n)s target has no text.", "%(n)s targets have no text.", n),
        "target_in_pool": ngettext(
            "%(n)s candidate has the picture of its target.",
            "%(n)s candidates have the picture of their target.",
            n,
        ),
    }


def _fault_problem(upload: Upload, mapping: ColumnMapping, group: FaultGroup) -> Problem:
    titles, n = _fault_titles(group.n), group.n
    other = ngettext("%(n)s row cannot be used.", "%(n)s rows cannot be used.", n)
    places = ", ".join(group.places) + (", …" if n > len(group.places) else "")
    value = f"“{group.value}”" if group.value else ""
    example = ", ".join(part for part in (places, group.column, value) if part)
    label = _("Leave out these rows") if group.code == "field_count" else _("Leave out these items")
    # What ends the reading of a file has no place, and nothing after it is read.
    return Problem(
        group.code,
        titles.get(group.code, other) % {"n": f"{n:,}"},
        f"{example}: {group.problem}" if example else group.problem,
        is_fault=True,
        fixes=[_fix(mapping, group.code, LEAVE_OUT, label)] if group.places else [],
    )


def _found_problem(upload: Upload, mapping: ColumnMapping, found: Found) -> Problem:
    n = found.n
    titles = {
        BLANK: ngettext("%(n)s response is empty.", "%(n)s responses are empty.", n),
        NO_TEXT: ngettext("%(n)s candidate has no text.", "%(n)s candidates have no text.", n),
        REPEATED: ngettext(
            "%(n)s candidate is in the same item twice.",
            "%(n)s candidates are in the same item twice.",
            n,
        ),
    }
    is_repeated = found.code == REPEATED
    last = row_names(upload, found.lines[-1:], 1)
    rows = row_names(upload, found.lines, n + is_repeated)
    named = "; ".join([*found.named, *["…"] * (n > len(found.named))])
    details = {
        BLANK: _("{rows}: {named}. Left out by default."),
        NO_TEXT: _("{rows}. Annotators see only the picture."),
        REPEATED: _("{rows}: the same picture or text in item {item}."),
    }
    labels = {
        BLANK: (_("Keep"), _("Leave out")),
        NO_TEXT: (_("Keep"), _("Leave out")),
        REPEATED: (
            _("Keep both"),
            _("Leave out {row}").format(row=last[:1].lower() + last[1:])
            if n == 1
            else _("Leave out repeats"),
        ),
    }
    keep, leave_out = labels[found.code]
    return Problem(
        found.code,
        titles[found.code] % {"n": f"{n:,}"},
        details[found.code].format(rows=rows, named=named, item=found.item),
        is_required=False,
        fixes=[
            _fix(mapping, found.code, KEEP, keep),
            _fix(mapping, found.code, LEAVE_OUT, leave_out),
        ],
    )


def row_names(upload: Upload, lines: Sequence[int], n: int) -> str:
    """Such as "Rows 31 and 58" of a sheet, or "Lines 3, 4, 5, …" of a text."""
    is_sheet = upload.form.get("kind") in (EXCEL, ODS)
    if n == 1:
        return (_("Row {n}") if is_sheet else _("Line {n}")).format(n=lines[0])
    listed = ", ".join(map(str, lines)) + (", …" if n > len(lines) else "")
    if n == len(lines):
        listed = _("{before} and {last}").format(
            before=", ".join(map(str, lines[:-1])), last=lines[-1]
        )
    return (_("Rows {listed}") if is_sheet else _("Lines {listed}")).format(listed=listed)
