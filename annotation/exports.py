"""Label sets as files that other programs read."""

import json
from pathlib import Path

from annotation.frames import label_frame
from annotation.models import LabelSet
from presentation.files import write_whole
from presentation.spreadsheets import frame_csv


def labels_csv(label_set: LabelSet) -> str:
    """A row a label; the header of a column is what the field is called in JSON."""
    return frame_csv(label_frame(label_set))


def labels_json(label_set: LabelSet) -> str:
    """The labels with the rule that made them."""
    frame = label_frame(label_set).astype(object)
    records = frame.where(frame.notna(), None).to_dict(orient="records")
    return json.dumps(label_set_record(label_set) | {"labels": records}, indent=1)


def label_set_record(label_set: LabelSet) -> dict[str, object]:
    """What a label set is, without its labels, as plain values."""
    return {
        "study": label_set.study.slug,
        "question": label_set.question.name,
        "version": label_set.version,
        "round": label_set.round,
        "method": label_set.method,
        "parameters": label_set.parameters,
        "with_flagged": label_set.with_flagged,
        "with_adjudications": label_set.with_adjudications,
        "converged": label_set.converged,
        "iterations": label_set.iterations,
        "warnings": label_set.warnings,
        "signature": label_set.signature,
        "made_at": label_set.made_at.isoformat(),
    }


def write_labels(label_set: LabelSet, path: Path) -> None:
    """Write a label set as JSON to a file that is named so, and as CSV to any other."""
    content = labels_json if path.suffix.lower() == ".json" else labels_csv
    write_whole(path, content(label_set))
