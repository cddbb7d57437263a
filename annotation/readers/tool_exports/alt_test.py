"""Labels of the alternative annotator test: JSON with an object of labels for each annotator.

Both files, of people and of language models, have this form; a label is a text, a number or a
list of texts. https://github.com/nitaytech/AltTest (human_annotations.json, llm_annotations.json)
"""

from collections.abc import Iterator

from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import Entry, Export, item_key, texts
from error_codes import CodedText

LABEL = "value"
FIELDS = ("annotator", "item", LABEL)
UNREAD = CodedText("labels that are lists of other than texts are not read", "unread")


def read_alt_test(export: Export) -> list[Entry]:
    return list(export.read_each(lambda row: _label(export, row)))


def _label(export: Export, row: Row) -> Iterator[Entry]:
    label = row.fields.get(LABEL)
    if "annotator" not in row.fields or "item" not in row.fields:
        problem = "expected an object with the labels of each annotator by item."
        raise row.refuse(problem, code="not_export")
    entry = Entry(
        row=row,
        item=item_key(row, ("item",)),
        annotator=row.required("annotator", longest=254),
        **texts(row, export.fields),
    )
    if isinstance(label, list):
        labels = [each for each in label if isinstance(each, str) and each]
        export.leave_out(UNREAD, row, len(label) - len(labels))
        entry.add(LABEL, "categories", list(dict.fromkeys(labels)), LABEL)
    elif isinstance(label, bool):
        entry.add(LABEL, "categories", ["yes" if label else "no"], LABEL)
    elif not export.is_missing(row.optional(LABEL, longest=20_000), LABEL):
        entry.add(LABEL, "plain", row.optional(LABEL, longest=20_000), LABEL)
    yield entry
