"""The ids that a marketplace has for submissions, asked of the app that collected them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from console.registrations import load_registrations

FindIds = Callable[[Collection[int]], dict[int, tuple[str, str]]]

_finders: list[FindIds] = []


def register_assignment_ids(find_ids: FindIds) -> None:
    _finders.append(find_ids)


def assignment_ids(submissions: Collection[int]) -> dict[int, tuple[str, str]]:
    """The HIT's and the assignment's id by submission; without those from no marketplace."""
    load_registrations()
    return {pk: ids for find_ids in _finders for pk, ids in find_ids(submissions).items()}
