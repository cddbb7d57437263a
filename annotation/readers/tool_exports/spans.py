"""Labels in exports of doccano and INCEpTION, tools that also mark spans; spans are counted.

doccano writes a file for each annotator, or a zip of those. Since doccano 1.3 a record has `id`,
`text` (`data`, `filename`) and `label`, a list; in CSV labels are joined by `#`. Before, a record
had `annotations`, each with its `user` and the number of its label, and CSV a row per label; in
2018 `doc_id`, `labels` and `username`.
https://doccano.github.io/doccano/tutorial/ (Export the dataset)

INCEpTION: labels of documents (UIMA CAS JSON) and of sentences (WebAnno TSV 3). A project's zip has
`annotation/DOCUMENT/ANNOTATOR.json` or `.tsv`; one such file is read, too. In a CAS, an annotation
without offsets is a label of the document. In a TSV file, a layer is of labels if each of its
annotations covers a sentence or the document. Other annotations are spans.
https://inception-project.github.io/releases/36.0/docs/user-guide.html (Appendix: formats)
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.archives import unpacked_members
from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row, inner, inner_list, item_key
from annotation.readers.tables import kind_of
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    SOLE_CANDIDATE,
    Entry,
    Export,
    Kind,
    named_texts,
    require_fields,
    texts,
)
from error_codes import CodedText, require

QUESTION = "label"
LABELS = ("label", "cats", "labels")
TEXTS = ("text", "data", "filename", "image", "url")
USERS = ("username", "user")
# Between the labels of a cell.
BETWEEN = "#"
# The file of a project whose annotators share their labels.
MERGED = "all"
SPANS = CodedText("spans, boxes and other regions are not read yet", "spans")
RELATIONS = CodedText("relations between spans are not read yet", "relations")
COMMENTS = CodedText("comments are not read", "comments")
UNLABELED = CodedText("the example has no label, or nobody has looked at it", "unlabeled")
REGIONS = {
    "entities": SPANS,
    "spans": SPANS,
    "bbox": SPANS,
    "segmentation": SPANS,
    "relations": RELATIONS,
    "Comments": COMMENTS,
    "comments": COMMENTS,
}


def read_doccano(export: Export) -> list[Entry]:
    if kind_of(export.path) != ".zip":
        return list(_file(export, export.path.name.split(".")[0]))
    entries: list[Entry] = []
    with unpacked_members(export.path) as members:
        for member in members:
            entries += _file(replace(export, path=member.path), member.name.stem)
    return entries


def _file(export: Export, annotator: str) -> Iterator[Entry]:
    if annotator == MERGED:
        export.report.note(
            CodedText(
                "The file 'all' has the labels of a project whose annotators share them: it is "
                "read as one annotator's.",
                "merged_labels",
            )
        )
    return export.read_each(partial(_example, export, annotator, {}))


def _example(
    export: Export, annotator: str, answered: dict[tuple[str, str], Entry], row: Row
) -> Iterator[Entry]:
    require_fields(row, named_texts(export.fields))
    shown = next((name for name in TEXTS if name in row.fields), TEXTS[0])
    about = texts(row, export.fields, response=row.text(shown))
    own = "doc_id" if "doc_id" in row.fields else "id"
    key = item_key(row, export.fields.item or (own,))
    yield Entry(row=row, item=key, **about)
    for name, reason in REGIONS.items():
        value = row.fields.get(name)
        parts = value if isinstance(value, list) else [value] if value else []
        export.leave_out(reason, row, len(parts))
    for user, kind, value in _labels(export, row, annotator):
        if export.is_unwanted(QUESTION, row):
            continue
        entry = answered.get((key, user))
        if entry is not None and row.is_csv and USERS[1] in row.fields:
            # Tables of doccano before 1.3 have a row for each label.
            entry.records.append(id(row))
            entry.answers[0].value += [one for one in value if one not in entry.answers[0].value]
            continue
        entry = Entry(row=row, item=key, annotator=user, **about)
        entry.add(QUESTION, kind, value, row.called(QUESTION))
        answered.setdefault((key, user), entry)
        yield entry


def _labels(export: Export, row: Row, annotator: str) -> Iterator[tuple[str, Kind, Any]]:
    if "annotations" in row.fields:
        yield from _labels_by_user(export, row)
        return
    name = next((name for name in LABELS if name in row.fields), None)
    if name is None:
        if not REGIONS.keys() & row.fields.keys():
            there = ", ".join(row.fields)
            raise row.refuse(f"there are no labels; there are {there}.", QUESTION, code="no_labels")
        return
    who = next((name for name in USERS if name in row.fields), None)
    user = row.required(who, longest=254) if who else annotator
    if row.is_csv and row.text("start_offset").strip():
        export.leave_out(SPANS, row)
        return
    value = row.fields[name]
    if isinstance(value, str):
        labels = [one for one in value.split(BETWEEN) if one]
    else:
        values = inner_list(row, name)
        spans = [one for one in values if isinstance(one, list | dict)]
        export.leave_out(SPANS, row, len(spans))
        if spans:
            return
        labels = [_label(row, name, one) for one in values]
    if labels:
        yield user, "categories", list(dict.fromkeys(labels))
    else:  # which may be one that nobody has looked at
        export.leave_out(UNLABELED, row)


def _label(row: Row, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise row.refuse("expected a list of labels.", name, code="not_label")
    return str(value)


def _labels_by_user(export: Export, row: Row) -> Iterator[tuple[str, Kind, Any]]:
    labels: dict[str, list[str]] = {}
    written: dict[str, list[str]] = {}
    annotations = inner_list(row, "annotations")
    if not annotations:
        export.leave_out(UNLABELED, row)
    for index, value in enumerate(annotations):
        annotation = inner(row, value, f"annotations[{index}]")
        user = annotation.required("user", longest=254)
        if annotation.fields.get("start_offset") is not None:
            export.leave_out(SPANS, annotation)
        elif "label" not in annotation.fields and "text" in annotation.fields:
            written.setdefault(user, []).append(annotation.text("text"))
        else:
            label = annotation.fields.get("label")
            if isinstance(label, int) and not isinstance(label, bool):
                export.report.note(
                    CodedText(
                        "This export has the numbers of labels, which doccano before 1.3 wrote, "
                        "without their names: each number is a category.",
                        "label_numbers",
                    )
                )
            labels.setdefault(user, []).append(annotation.required("label"))
    for user, names in labels.items():
        yield user, "categories", list(dict.fromkeys(names))
    for user, lines in written.items():
        yield user, "written", "\n".join(lines)


TSV_MARK = "#FORMAT=WebAnno TSV 3"
FEATURE_TYPE = "%TYPE"
SHAPES = (frozenset({"%ID", FEATURE_TYPE}),)
DOCUMENT = "document"
# Of curators, and of the document before anybody annotated it.
NOBODY = ("CURATION_USER", "INITIAL_CAS")
METADATA = "de.tudarmstadt.ukp.clarin.webanno.api.type.CASMetadata"
# What is in every CAS: the text, its sentences and tokens, tag sets and so on.
STRUCTURE = re.compile(
    r"uima\..*|de\.tudarmstadt\.ukp\.(clarin\.webanno\.api|dkpro\.core\.api\.(segmentation|metadata))\..*"
)
SPANS_AND_RELATIONS = CodedText("spans and relations are not read yet", "spans")
OTHER_FILES = CodedText(
    "Files of curators, of the source and of settings in the archive are not read.", "other_files"
)
TEXT_MARK = "#Text="
LAYER = re.compile(r"#T_(SP|CH|RL)=(.*)")
TOKEN = re.compile(r"(\d{1,9})-(\d{1,9})(\.\d+)?\t\d+-\d+\t")
UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
NUMBERED = re.compile(r"(.*?)(?<!\\)\[(\d+)\]", re.DOTALL)


def read_inception(export: Export) -> list[Entry]:
    if kind_of(export.path) != ".zip":
        return list(_read_file(export, DOCUMENT, export.path.name.split(".")[0]))
    entries: list[Entry] = []
    with unpacked_members(export.path) as members:
        for member in members:
            if is_annotation_file(member.name) and member.name.stem not in NOBODY:
                document, annotator = member.name.parent.name, member.name.stem
                entries += _read_file(replace(export, path=member.path), document, annotator)
            else:
                export.report.note(OTHER_FILES)
    return entries


def is_tsv(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as content:
        return content.read(100).removeprefix(codecs.BOM_UTF8).startswith(TSV_MARK.encode())


def is_annotation_file(name: PurePosixPath) -> bool:
    return name.parts[-3:-2] == ("annotation",) and name.suffix in (".json", ".tsv")


def _read_file(export: Export, document: str, annotator: str) -> Iterator[Entry]:
    if export.rows is None and is_tsv(export.path):
        yield from _sentences(export, document, annotator)
    else:
        yield from _feature_structures(export, document, annotator)


def _entry(row: Row, item: str, text: str, annotator: str = "") -> Entry:
    candidate = CandidateDraft(key=SOLE_CANDIDATE, text=text)
    return Entry(row=row, item=item, candidates=(candidate,), annotator=annotator)


def _feature_structures(export: Export, document: str, annotator: str) -> Iterator[Entry]:
    rows = list(export.records())
    text = ""
    for row in rows:
        row.refuse_unless(
            FEATURE_TYPE in row.fields,
            "expected a CAS in JSON, with %FEATURE_STRUCTURES.",
            FEATURE_TYPE,
            code="not_export",
        )
        text = text or row.text("sofaString")
        if row.fields[FEATURE_TYPE] == METADATA:
            annotator = row.optional("username", longest=254) or annotator
            document = row.optional("sourceDocumentName") or document
    if not rows:
        return
    entry = _entry(rows[0], document, text, annotator)
    for row in rows:
        with export.faults.noting():
            kind = row.required(FEATURE_TYPE)
            if STRUCTURE.fullmatch(kind):
                export.leave_out_record(
                    CodedText("it is the text or its structure, not an annotation", "structure"),
                    row,
                )
            elif "begin" in row.fields:
                export.leave_out_record(SPANS_AND_RELATIONS, row)
            else:
                entry.records.append(id(row))
                _add_features(export, entry, row, kind.rpartition(".")[2])
    yield entry


def _add_features(export: Export, entry: Entry, row: Row, layer: str) -> None:
    for name, value in row.fields.items():
        question = f"{layer}.{name}"
        if name[:1] in "%@^" or export.is_unwanted(question, row):
            continue
        row.refuse_unless(
            len(question) <= LONGEST_QUESTION,
            f"'{question[:40]}' has more than {LONGEST_QUESTION} characters.",
            name,
            code="too_long",
        )
        known = next((each for each in entry.answers if each.question == question), None)
        if isinstance(value, bool):
            entry.add(question, "categories", ["yes" if value else "no"], name)
        elif isinstance(value, int | float):
            entry.add(question, "number", float(value), name)
        elif not row.text(name).strip():
            export.report.note_missing("")
        elif known is None:
            entry.add(question, "categories", [row.required(name)], name)
        elif (label := row.required(name)) not in known.value:
            known.value.append(label)


Token = tuple[int, int]


@dataclass
class _Layer:
    name: str
    features: list[str]
    first_column: int
    is_span: bool
    tokens: defaultdict[str, set[Token]] = field(default_factory=lambda: defaultdict(set))
    values: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def read(self, cells: Sequence[str], token: Token) -> None:
        """Add what a token has. An annotation of several tokens has a number in brackets."""
        for n, cell in enumerate(cells[self.first_column : self.first_column + len(self.features)]):
            for part in UNESCAPED_BAR.split(cell) if cell != "_" else ():
                numbered = NUMBERED.fullmatch(part)
                value, key = numbered.groups() if numbered else (part, f"token {token}")
                self.tokens[key].add(token)
                if value != "*":
                    self.values[key][self.features[n]] = re.sub(r"\\(.)", r"\1", value)


@dataclass
class _Document:
    layers: list[_Layer] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    texts: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    tokens: defaultdict[int, set[Token]] = field(default_factory=lambda: defaultdict(set))
    n_columns: int = 3

    def add_layer(self, kind: str, name: str, *features: str) -> None:
        is_span = kind == "SP" and not any(each.startswith("ROLE_") for each in features)
        names = list(features) or [""]
        self.layers.append(_Layer(name.rpartition(".")[2], names, self.n_columns, is_span))
        self.n_columns += len(names)

    def read_token(self, path: Path, line: int, token: Token, cells: Sequence[str]) -> None:
        if len(cells) < self.n_columns:
            raise ImportRefused(
                path,
                f"it has {len(cells)} fields; the layers have {self.n_columns}.",
                line=line,
                code="field_count",
            )
        if token[1] > 0:
            self.tokens[token[0]].add(token)
        for layer in self.layers:
            layer.read(cells, token)

    def sentence(self, covered: set[Token]) -> int | None:
        [first, *others] = {number for number, _ in covered}
        if not others:
            return first if covered == self.tokens[first] else None
        return 0 if covered == set().union(*self.tokens.values()) else None

    def has_labels(self, layer: _Layer) -> bool:
        covered = list(layer.tokens.values())
        whole = all(self.sentence(tokens) is not None for tokens in covered)
        return layer.is_span and whole and any(len(tokens) > 1 for tokens in covered)


def _sentences(export: Export, name: str, annotator: str) -> Iterator[Entry]:
    document = _read_tsv(export.path)
    numbered = {
        n: Row(export.path, line, {"text": "\n".join(document.texts[n])})
        for n, line in document.lines.items()
    }
    export.report.n_rows += len(numbered)
    export.records_read |= {id(row): row for row in numbered.values()}
    everything = "\n".join(row.fields["text"] for row in numbered.values())
    entries = {
        n: _entry(row, f"{name}#{n}", row.fields["text"], annotator) for n, row in numbered.items()
    }
    for n, row in numbered.items():
        entries[n].records.append(id(row))
    for layer in document.layers:
        if not document.has_labels(layer):
            first = next(iter(numbered.values()))
            export.leave_out(SPANS_AND_RELATIONS, first, len(layer.tokens), detail=layer.name)
            continue
        for key, tokens in layer.tokens.items():
            at = document.sentence(tokens) or 0
            if at == 0:
                whole = _entry(next(iter(numbered.values())), name, everything, annotator)
                whole.records = [id(row) for row in numbered.values()]
            entry = entries.setdefault(0, whole) if at == 0 else entries[at]
            row = entry.row.child(dict(layer.values[key]), "")
            with export.faults.noting():
                _add_features(export, entry, row, layer.name)
    yield from entries.values()


def _read_tsv(path: Path) -> _Document:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ImportRefused(path, "this is not UTF-8 text.", code="wrong_encoding") from None
    require(
        lines and lines[0].startswith(TSV_MARK),
        ImportRefused(
            path, f"expected a file that begins with {TSV_MARK}.", line=1, code="not_export"
        ),
    )
    document = _Document()
    text: list[str] = []
    for line, content in enumerate(lines, start=1):
        if match := LAYER.fullmatch(content):
            document.add_layer(match[1], *match[2].split("|"))
        elif content.startswith(TEXT_MARK):
            text.append(content.removeprefix(TEXT_MARK))
        elif match := TOKEN.match(content):
            if int(match[1]) not in document.lines:
                document.lines[int(match[1])] = line
                document.texts[int(match[1])], text = text, []
            # A part of a token has a negative number, so that it is never a whole sentence.
            token = (int(match[1]), -line if match[3] else int(match[2]))
            document.read_token(path, line, token, content.split("\t"))
    require(document.lines, ImportRefused(path, "it has no sentences.", code="no_rows"))
    return document
