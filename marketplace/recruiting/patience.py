"""One thing after another at a recruiter: one that fails each time holds up no other, and a
recruiter that is away is not asked about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from marketplace.recruiting.problems import RecruiterProblem

MOST_IN_A_ROW = 3


class Patience:
    """Passes over a thing that fails, or that the token may not see; the last problem is raised
    when all have had their turn, or after so many failures in a row."""

    def __init__(self) -> None:
        self._problem: RecruiterProblem | None = None
        self._n_in_a_row = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        try:
            yield
        except RecruiterProblem as problem:
            self._problem, self._n_in_a_row = problem, self._n_in_a_row + 1
            if self._n_in_a_row >= MOST_IN_A_ROW:
                raise
        else:
            self._n_in_a_row = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._problem is not None:
            raise self._problem
