"""What can go wrong with test collections.

RetrievalError
├── FileFaults          a file cannot be used; every fault with its line
│   ├── TrecFileFaults  ... a run or qrels
│   └── PoolFileFaults  ... a pool, a catalogue, targets or embeddings
├── NothingToAudit      no file is at the paths that were named
├── RunsUnfit           runs and judgments that cannot be evaluated together
│   └── PoolDepthUnknown ... the depth of whose pool must be said
├── PoolUnfit           targets, sources and a plan of which no pool can be made
├── PoolDefective       a pool that should not be judged; every fault with its line
├── CatalogueUnfit      a list of a catalogue's items that cannot number those of a study
├── TermsUnfit          a list of terms that reasons cannot be counted by
└── CollectionUnfit     what a stored collection cannot hold or be used for
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from django.utils.translation import gettext as _, ngettext

from error_codes import CodedText, CorrectableError
from presentation.numbers import group_values

MOST_PLACES = 3


class RetrievalError(CorrectableError):
    """Something a person can mend; its text says what and how."""


class FileFaults(RetrievalError):
    """All that is wrong with a file, in its order; the message groups equal faults.

    The code is that of the first fault; `lines` and `codes` are those of all.
    """

    MOST_LISTED = 20

    def __init__(
        self, path: Path, faults: Sequence[tuple[int | None, str]], hint: str = ""
    ) -> None:
        self.path, self.faults = path, tuple(faults)
        name = path.name or str(path)
        lines_of = group_values((problem, line) for line, problem in self.faults)
        lines = [
            f"{_place(lines, name)}: {problem}"
            for problem, lines in list(lines_of.items())[: self.MOST_LISTED]
        ]
        if (n_more := len(lines_of) - len(lines)) > 0:
            lines.append(_("... and {n} more.").format(n=f"{n_more:,}"))
        lines += [hint] if hint else []
        self.lines = [line for line, _problem in self.faults]
        self.codes = [getattr(problem, "code", "") for _line, problem in self.faults]
        super().__init__(
            "\n".join([*lines, _("Nothing was computed.")]), code=next(iter(self.codes), "")
        )

    @classmethod
    def of_one(cls, path: Path, problem: str, code: str, *, line: int | None = None) -> Self:
        return cls(path, [(line, CodedText(problem, code))])


def _place(lines: Sequence[int | None], name: str) -> str:
    named = [f"{line}" for line in lines if line is not None]
    if not named:
        return name
    shown = ", ".join(named[:MOST_PLACES])
    if (n := len(named) - MOST_PLACES) > 0:
        return _("Lines {lines} and {n} more of {file}").format(lines=shown, n=f"{n:,}", file=name)
    return ngettext("Line {lines} of {file}", "Lines {lines} of {file}", len(named)).format(
        lines=shown, file=name
    )


class NothingToAudit(RetrievalError):
    """No file is at the paths that were named."""


class TrecFileFaults(FileFaults):
    """A run or qrels that cannot be used."""


class PoolFileFaults(FileFaults):
    """A pool, a catalogue, targets or embeddings that cannot be used."""


class PoolUnfit(RetrievalError):
    """Targets, sources and a plan of which no pool can be made."""


class SampleUnfit(PoolUnfit):
    """A sample of targets that cannot be drawn; `field` is the number at fault, n or strata, and
    `number` one that can be drawn, if it is known."""

    def __init__(self, field: str, text: str, *, number: int | None = None, code: str = "") -> None:
        self.field, self.number = field, number
        super().__init__(text, code=code)


class PoolDefective(RetrievalError):
    """A pool that should not be judged."""


class CatalogueUnfit(RetrievalError):
    """A list of a catalogue's items that cannot number those of a study."""


class TermsUnfit(RetrievalError):
    """A list of terms that reasons cannot be counted by."""


class RunsUnfit(RetrievalError):
    """Runs and judgments that cannot be evaluated together."""


class PoolDepthUnknown(RunsUnfit):
    """Runs whose first documents are not all in the qrels, so that no depth of a pool follows."""


class CollectionUnfit(RetrievalError):
    """What a stored collection cannot hold, or be used for."""
