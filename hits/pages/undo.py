"""Earlier states of a study's draft, kept in the session, so that changes can be undone."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.sessions.backends.base import SessionBase

from annotation.models import Study
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.faults import FaultPath
from annotation.protocols.records import ProtocolDocument
from hits.pages.field_labels import place_of

MOST_STEPS = 30
# Of all steps together: a session is read with every request.
MOST_CHARACTERS = 300_000


def add_undo_step(
    session: SessionBase,
    study: Study,
    before: ProtocolDocument,
    after: ProtocolDocument,
    *,
    is_overwritten: bool = False,
) -> None:
    """Keep `before`. Changes of one field, one after another, are one step, unless somebody else's
    are overwritten."""
    plain = plain_document(after)
    path = _changed_path(plain_document(before), plain)
    if path is None:
        return
    steps = _steps(session, study)
    is_same_field = steps and steps[-1]["path"] == list(path) and _is_field(plain, path)
    if is_overwritten or not is_same_field:
        steps.append(
            {"document": json.dumps(plain_document(before), ensure_ascii=False), "path": list(path)}
        )
    while len(steps) > MOST_STEPS or sum(len(step["document"]) for step in steps) > MOST_CHARACTERS:
        steps.pop(0)
    session[_key(study)] = steps


def last_undo_step(session: SessionBase, study: Study) -> ProtocolDocument | None:
    return next(earlier_documents(session, study), None)


def drop_undo_step(session: SessionBase, study: Study) -> None:
    session[_key(study)] = _steps(session, study)[:-1]


def earlier_documents(session: SessionBase, study: Study) -> Iterator[ProtocolDocument]:
    """From the newest on."""
    for step in reversed(_steps(session, study)):
        yield read_document(json.loads(step["document"]))


def undo_label(session: SessionBase, study: Study) -> str | None:
    """What the last change was about, "" if it was about several fields; None without a change."""
    steps = _steps(session, study)
    return place_of(tuple(steps[-1]["path"])) if steps else None


def _key(study: Study) -> str:
    return f"undo-draft:{study.pk}"


def _steps(session: SessionBase, study: Study) -> list[dict[str, Any]]:
    return list(session.get(_key(study), []))


def _is_field(document: Any, path: FaultPath) -> bool:
    # Questions that are added or moved change a list, each time as a step of its own.
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else document[name]
    return not isinstance(document, Mapping | list)


def _changed_path(before: Any, after: Any) -> FaultPath | None:
    # None without a change; a path to the only value that differs, or to what has several.
    if before == after:
        return None
    pairs: list[tuple[str | int, Any, Any]] = []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        pairs = [
            (name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])
        ]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(n, *pair) for n, pair in enumerate(zip(before, after, strict=True))]
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    if len(differing) != 1:
        return ()
    name, old, new = differing[0]
    return (name, *(_changed_path(old, new) or ()))
