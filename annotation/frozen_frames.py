"""Frames frozen as Parquet under their fingerprint, to compute with away from the database.

The fingerprint is of what the frame holds, not of the file: the same judgments have the same one
on either database and with any version of Parquet's library. A frozen frame never changes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.utils.translation import gettext as _

from annotation.exceptions import FrameUnfit
from annotation.frames import judgment_frame

if TYPE_CHECKING:
    import pandas as pd
    from django.core.files.storage import Storage

    from annotation.models import Study

FOLDER = "frames"


@dataclass(frozen=True)
class FrozenFrame:
    """What a frame is found by, and where; `is_new` unless it was frozen before."""

    fingerprint: str
    name: str
    n_rows: int
    is_new: bool


def freeze_judgments(study: Study) -> FrozenFrame:
    """Freeze the study's long frame of all judgments but rejected ones, as it is now."""
    return freeze_frame(judgment_frame(study))


def freeze_frame(frame: pd.DataFrame) -> FrozenFrame:
    fingerprint = frame_fingerprint(frame)
    name, storage = _name_of(fingerprint), _storage()
    is_new = not _is_frozen(fingerprint)
    if is_new:
        # What a full disk or a process that was killed left of an earlier one.
        storage.delete(name)
        content = BytesIO()
        frame.to_parquet(content, index=False, compression="zstd")
        storage.save(name, ContentFile(content.getvalue()))
    return FrozenFrame(fingerprint, name, len(frame), is_new)


def read_frozen_frame(fingerprint: str) -> pd.DataFrame:
    import pandas as pd

    name, storage = _name_of(fingerprint), _storage()
    if not storage.exists(name):
        raise FrameUnfit(
            _("No frame is frozen as {fingerprint}.").format(fingerprint=fingerprint),
            code="unknown",
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
    """SHA-256 of the names of the columns and of their values, in their order."""
    import pandas as pd

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
    if len(fingerprint) != 64 or set(fingerprint) - set("0123456789abcdef"):
        raise FrameUnfit(
            _("'{fingerprint}' is not a fingerprint, of 64 hexadecimal digits.").format(
                fingerprint=fingerprint
            ),
            code="not_fingerprint",
        )
    return f"{FOLDER}/{fingerprint[:2]}/{fingerprint}.parquet"


def _storage() -> Storage:
    return storages["objects"]
