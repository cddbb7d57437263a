from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.readers.drafts import CandidateDraft, PictureDraft
from annotation.readers.rows import unstorable
from presentation.files import plain_file
from simulation.catalogue import Catalogue
from simulation.drawn_products import title
from simulation.exceptions import DialoguesUnfit
from simulation.models.dialogue_studies import ID_LENGTH, DialogueStudy

LARGEST = {"seed": 2**63 - 1, "turn": 10_000}
# More than any embedding has, less than the limit of any database.
MOST_DELTA = 1e9
WORD = gettext_lazy("a text that is not empty or long, without NUL or half a surrogate pair")
WANTED = {
    **dict.fromkeys(("recommender", "user", "target", "shown"), WORD),
    **dict.fromkeys(("seed", "turn"), gettext_lazy("a whole number from 0 on")),
    "delta": gettext_lazy("a number up to a thousand million, or null"),
    "found": gettext_lazy("true or false"),
}

IMPORTS: dict[str, str] = {
    DialogueStudy.Kind.SWITCHING: "import_switching_study",
    DialogueStudy.Kind.OUTCOMES: "import_outcome_study",
}


def log_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and row. Raises DialoguesUnfit if a field is missing."""
    try:
        with plain_file(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield number, _row(path, number, line, needed)
    except (OSError, UnicodeDecodeError) as error:
        raise DialoguesUnfit(
            _("{file} cannot be read: {error}.").format(file=path.name, error=error)
        ) from None


def require_log(name: str, first_line: str) -> None:
    """Refuse a file whose first line is not that of a log."""
    _row(Path(name), 1, first_line, ("recommender", "user", "seed", "target", "turn", "shown"))


def _row(path: Path, number: int, line: str, needed: Sequence[str]) -> dict[str, Any]:
    at = f"{path.name}, line {number}"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        raise DialoguesUnfit(_("{where}: not a JSON object.").format(where=at)) from None
    if not isinstance(row, dict):
        raise DialoguesUnfit(_("{where}: not a JSON object.").format(where=at))
    for name in needed:
        if name not in row:
            raise DialoguesUnfit(
                _("{where}: {field} is missing. Name a file that simulate --log wrote.").format(
                    where=at, field=name
                )
            )
        if not _is_fit(name, row[name]):
            raise DialoguesUnfit(
                _("{where}: {field} must be {wanted}.").format(
                    where=at, field=name, wanted=WANTED[name]
                )
            )
    return row


def _is_fit(name: str, value: Any) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if name in ("seed", "turn"):
        return is_number and 0 <= value <= LARGEST[name]
    if name == "found":
        return isinstance(value, bool)
    if name == "delta":
        # A whole number of JSON may be beyond any float.
        is_number = is_number or isinstance(value, float)
        return value is None or (is_number and -MOST_DELTA <= value <= MOST_DELTA)
    return isinstance(value, str) and 0 < len(value) <= ID_LENGTH and not unstorable(value)


def log_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def require_in(catalogue: Catalogue, names: Iterable[str]) -> None:
    if unknown := sorted(set(names) - catalogue.number_of.keys()):
        raise DialoguesUnfit(
            _(
                "{name} is not in the catalogue ({catalogue}). Name the catalogue "
                "that the dialogues are of."
            ).format(name=unknown[0], catalogue=catalogue.source),
            code="item_unknown",
        )


def product_words(catalogue: Catalogue, name: str) -> str:
    number = catalogue.number_of[name]
    if catalogue.captions:
        return catalogue.captions[number]
    return title(catalogue.attributes.describe(number)) if catalogue.attributes else name


def product_picture(catalogue: Catalogue, name: str) -> PictureDraft | None:
    if catalogue.picture is None:
        return None
    content = catalogue.picture(catalogue.number_of[name])
    is_drawing = content.lstrip().startswith((b"<svg", b"<?xml"))
    return PictureDraft("image/svg+xml" if is_drawing else "image/png", content)


def product_candidate(catalogue: Catalogue, name: str) -> CandidateDraft:
    """Without a system: workers must not see whose it is, and several recommenders may share it."""
    return CandidateDraft(
        key=name, text=product_words(catalogue, name), picture=product_picture(catalogue, name)
    )


def dialogues_of(study: Study, kind: str) -> DialogueStudy:
    """Raises DialoguesUnfit if the study is not of such dialogues."""
    dialogues = DialogueStudy.objects.filter(study=study, kind=kind).first()
    if dialogues is None:
        raise DialoguesUnfit(
            _("Study '{study}' is not of recorded dialogues. Make one with {command}.").format(
                study=study.slug, command=IMPORTS[kind]
            )
        )
    return dialogues


def origin_of(dialogues: DialogueStudy) -> dict[str, Any]:
    names = ["log_name", "log_sha256", "catalogue", "seed", "n_targets_left_out"]
    is_switching = dialogues.kind == DialogueStudy.Kind.SWITCHING
    names.append("per_target" if is_switching else "final_user")
    return {name: getattr(dialogues, name) for name in names}
