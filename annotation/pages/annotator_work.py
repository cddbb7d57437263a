"""Where the work of annotators is reviewed, asked of the app that reviews it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from annotation.models import Study
from console.registrations import load_registrations


@dataclass(frozen=True)
class DeskWork:
    list_name: str
    n: int
    first: int
    worker_id: str
    words: str


FindWork = Callable[[Study, Collection[str]], Mapping[str, Sequence[DeskWork]]]

_finders: list[FindWork] = []


def register_annotator_work(find_work: FindWork) -> None:
    _finders.append(find_work)


def annotator_work(study: Study, annotators: Collection[str]) -> dict[str, Sequence[DeskWork]]:
    """By pseudonym, in the order of the desk's lists; annotators without work are left out."""
    load_registrations()
    return {name: work for find in _finders for name, work in find(study, annotators).items()}
