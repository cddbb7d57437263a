"""From the database to pandas: a long frame with a row per judgment, frozen or from a sample.

A frozen frame is Parquet under its fingerprint, to compute with away from the database. The
fingerprint is of what the frame holds, not of the file: the same judgments have the same one on
either database and with any version of Parquet's library. A frozen frame never changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from typing import Any

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from annotation.bulk import batched
from annotation.exceptions import FrameUnfit, require
from annotation.models import (
    Candidate,
    ItemSample,
    Judgment,
    Protocol,
    Question,
    SampledItem,
    Study,
)
from stats.libraries import pd

COLUMNS = (
    *("study", "round", "item", "condition", "candidate", "system"),
    *("question", "annotator", "value", "position", "seconds"),
)
# What is read of a judgment; its texts are looked up once for all judgments of a candidate.
CODES = (
    *("pk", "question_id", "about", "submission__annotator_id", "submission__round"),
    *("value", "position", "seconds"),
)
READ_AT_ONCE = 10_000
CANDIDATE_COLUMNS = {
    "candidate_id": "pk",
    "item": "item__key",
    "condition": "item__condition",
    "candidate": "key",
    "system": "system",
    "context": "item__context",
    "response": "text",
    "reference": "item__reference",
}


def judgment_frame(
    study: Study,
    *,
    question: Question | None = None,
    accepted: bool = True,
    with_flagged: bool = True,
    protocol: Protocol | None = None,
) -> pd.DataFrame:
    """Every judgment of a study, in a fixed order: under one question where one is named, and
    those not rejected, unless requested otherwise; of submissions under one version of the
    protocol where one is named. An answer to an ordered question that says that nothing can be
    said is no judgment. Pairs also have a column `cluster`: the imported item that they are of."""
    rows = Judgment.objects.of(study)
    rows = rows if protocol is None else rows.filter(submission__protocol=protocol)
    rows = rows if question is None else rows.filter(question=question)
    rows = rows.accepted() if accepted else rows
    rows = rows if with_flagged else rows.unflagged()
    return _judgment_frame(study, _columns_of(rows))


def _columns_of(rows: QuerySet[Judgment]) -> dict[str, np.ndarray[Any, Any]]:
    # A judgment of an item as a whole has no candidate: minus the item's id stands for it.
    rows = rows.annotate(about=Coalesce("candidate_id", -F("submission__item_id")))
    read = rows.order_by().values_list(*CODES).iterator(chunk_size=READ_AT_ONCE)
    parts = [np.array(chunk, dtype="float64") for chunk in batched(read, READ_AT_ONCE)]
    matrix = np.concatenate(parts) if parts else np.empty((0, len(CODES)))
    return {
        name: column.astype("int64") if index < CODES.index("value") else column
        for index, (name, column) in enumerate(zip(CODES, matrix.T, strict=True))
    }


def _judgment_frame(study: Study, columns: dict[str, np.ndarray[Any, Any]]) -> pd.DataFrame:
    questions = list(study.questions.order_by("position", "pk"))
    columns = _on_the_scale(questions, columns)
    ordered = Candidate.objects.filter(item__study=study).order_by(
        "item__position", "item_id", "position", "pk"
    )
    names = ("pk", "item__key", "item__condition", "key", "system", "item__source__key")
    texts = list(ordered.values_list(*names))
    texts += _whole_items(study, columns["about"])
    candidate = _positions(columns["about"], [pk for pk, *_ in texts])
    question = _positions(columns["question_id"], [one.pk for one in questions])
    annotators = sorted(study.annotators.values_list("pseudonym", "pk"))
    annotator = _positions(columns["submission__annotator_id"], [pk for _, pk in annotators])
    round = columns["submission__round"]
    order = np.lexsort((columns["pk"], annotator, round, candidate, question))
    of_candidate = candidate[order]
    frame = pd.DataFrame(
        {
            "study": _category(np.zeros_like(of_candidate), [study.slug]),
            "round": round[order],
            "item": _category(of_candidate, [text[1] for text in texts]),
            "condition": _category(of_candidate, [text[2] for text in texts]),
            "candidate": _category(of_candidate, [text[3] for text in texts]),
            "system": _category(of_candidate, [text[4] for text in texts]),
            "question": _category(question[order], [one.name for one in questions]),
            "annotator": _category(annotator[order], [name for name, _ in annotators]),
            **{name: columns[name][order] for name in ("value", "position", "seconds")},
        }
    )
    frame = frame[list(COLUMNS)]
    if not any(text[5] for text in texts):
        return frame
    return frame.assign(cluster=_category(of_candidate, [text[5] or text[1] for text in texts]))


def _on_the_scale(
    questions: list[Question], columns: dict[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Without the answers to ordered questions that say that nothing can be said: they have no
    place in the order."""
    kept = np.ones(len(columns["value"]), dtype=bool)
    for one in questions:
        if one.highest < one.scale_max:
            kept &= (columns["question_id"] != one.pk) | (columns["value"] <= one.highest)
    return {name: column[kept] for name, column in columns.items()}


def _whole_items(
    study: Study, about: np.ndarray[Any, Any]
) -> list[tuple[int, str, str, str, str, str | None]]:
    if not (about < 0).any():
        return []
    return [
        (-pk, key, condition, "", "", source)
        for pk, key, condition, source in study.items.order_by("position", "pk").values_list(
            "pk", "key", "condition", "source__key"
        )
    ]


def _positions(keys: np.ndarray[Any, Any], known: list[int]) -> np.ndarray[Any, Any]:
    return pd.Index(known, dtype="int64").get_indexer(pd.Index(keys))


def _category(positions: np.ndarray[Any, Any], texts: list[str]) -> pd.Categorical:
    present = np.zeros(len(texts), dtype=bool)
    present[positions] = True
    there = [text for text, is_there in zip(texts, present, strict=True) if is_there]
    categories = pd.Index(sorted(set(there)), dtype=object)
    codes = categories.get_indexer(pd.Index(texts, dtype=object))
    return pd.Categorical.from_codes(codes[positions], categories=categories)


def candidate_frame(study: Study) -> pd.DataFrame:
    rows = Candidate.objects.filter(item__study=study).order_by("item__position", "position", "pk")
    values = rows.values_list(*CANDIDATE_COLUMNS.values()).iterator(chunk_size=10_000)
    return pd.DataFrame.from_records(list(values), columns=list(CANDIDATE_COLUMNS))


FOLDER = "frames"


def freeze_judgments(study: Study) -> dict[str, Any]:
    frame = judgment_frame(study)
    fingerprint = frame_fingerprint(frame)
    name, storage = _name_of(fingerprint), _storage()
    is_new = not _is_frozen(fingerprint)
    if is_new:
        # What a full disk or a process that was killed left of an earlier one.
        storage.delete(name)
        content = BytesIO()
        frame.to_parquet(content, index=False, compression="zstd")
        storage.save(name, ContentFile(content.getvalue()))
    facts = {"fingerprint": fingerprint, "name": name}
    return facts | {"n_rows": len(frame), "is_new": is_new}


def read_frozen_frame(fingerprint: str) -> pd.DataFrame:
    name, storage = _name_of(fingerprint), _storage()
    require(
        storage.exists(name),
        FrameUnfit(
            _("No frame is frozen as {fingerprint}.").format(fingerprint=fingerprint),
            code="unknown",
        ),
    )
    with storage.open(name) as file:
        content = BytesIO(file.read())
    # Parquet's library refuses what is cut short by a ValueError, and some of it by an OSError.
    with suppress(ValueError, OSError):
        frame = pd.read_parquet(content)
        if frame_fingerprint(frame) == fingerprint:
            return frame
    raise FrameUnfit(
        _("{name} was changed since it was frozen; freeze the study again.").format(name=name),
        code="changed",
    )


def _is_frozen(fingerprint: str) -> bool:
    try:
        read_frozen_frame(fingerprint)
    except FrameUnfit:
        return False
    return True


def frame_fingerprint(frame: pd.DataFrame) -> str:
    digest = sha256(json.dumps([len(frame), *map(str, frame.columns)]).encode())
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            digest.update(column.to_numpy("<f8").tobytes())
        else:
            codes, texts = pd.factorize(column.astype("object"), sort=True)
            digest.update(json.dumps(list(texts)).encode())
            digest.update(np.asarray(codes, dtype="<i8").tobytes())
    return digest.hexdigest()


def _name_of(fingerprint: str) -> str:
    require(
        not (len(fingerprint) != 64 or set(fingerprint) - set("0123456789abcdef")),
        FrameUnfit(
            _("'{fingerprint}' is not a fingerprint, of 64 hexadecimal digits.").format(
                fingerprint=fingerprint
            ),
            code="not_fingerprint",
        ),
    )
    return f"{FOLDER}/{fingerprint[:2]}/{fingerprint}.parquet"


def _storage() -> Storage:
    return storages["objects"]


def record_item_sample(
    *, study: Study, probabilities: Mapping[int, float | None], **how: Any
) -> ItemSample:
    """Store a draw of items by primary key; under the lock on the study that drew them."""
    last = ItemSample.objects.of(study).aggregate(last=Max("number"))["last"] or 0
    sample = ItemSample.objects.create(study=study, number=last + 1, **how)
    add_to_item_sample(sample=sample, probabilities=probabilities)
    return sample


def add_to_item_sample(*, sample: ItemSample, probabilities: Mapping[int, float | None]) -> None:
    SampledItem.objects.bulk_create(
        (
            SampledItem(sample=sample, item_id=item, probability=probability)
            for item, probability in probabilities.items()
        ),
        batch_size=1000,
    )


def sample_design(study: Study, round_: int = 1) -> pd.DataFrame:
    """Each item that was sent in a round by its key, with the first sample it was of and its
    probability there, missing where it was picked by hand."""
    frame = pd.DataFrame.from_records(
        list(
            SampledItem.objects.filter(sample__study=study, sample__round=round_)
            .order_by("sample__number")
            .values_list("item__key", "sample__number", "probability")
        ),
        columns=["item", "batch", "probability"],
    )
    frame = frame.astype({"batch": "float64", "probability": "float64"})
    return frame.drop_duplicates("item", ignore_index=True)
