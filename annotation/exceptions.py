"""What can go wrong in annotation.

AnnotationError
├── FileRefused            a file holds something that cannot be used
│   ├── ImportRefused      ... or imported
│   └── TableRefused       ... or computed from
├── FileFaults             everything in a file that cannot be imported, each with its line
├── StudyUnknown           no study has that slug
├── StudyUnfit             the study is not of the kind that was asked for
├── QuestionUnknown        the study asks no such question
├── LabelSetUnknown        the study has no label set of that version
├── ProtocolInvalid        a protocol says what none may say; every fault with its line
├── DraftChanged           somebody else saved the draft since it was read
├── ProtocolFrozen         a version that has been published cannot be changed
├── ProtocolUnknown        the study has no version of that number
├── CommentRefused         a comment without words, too long, or somebody else's
├── DecisionRefused        a value off the scale, a round without judgments, another study
├── FrameUnfit             no frame is frozen under that fingerprint, or it was changed
├── FolderUnusable         results cannot be written to a folder
├── LicenseUnknown         a license's name has a form that no license's has
└── InvitationVoid         a link that was used, revoked or made too long ago, or never was one
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from error_codes import CodedText, CorrectableError, require as require

if TYPE_CHECKING:
    from annotation.protocols.faults import Fault as ProtocolFault


class AnnotationError(CorrectableError):
    """Something a person can mend; its text says what and how."""


class FileRefused(AnnotationError):
    """A file was refused. The error has the line, the field and a code; a problem that is a
    `CodedText` brings its code."""

    advice = ""

    def __init__(
        self,
        path: Path,
        problem: str,
        *,
        line: int | None = None,
        field: str | None = None,
        code: str = "",
        record: str = "",
        sheet: str = "",
    ) -> None:
        self.path, self.problem, self.line, self.field = path, problem, line, field
        self.record, self.sheet = record, sheet
        name = path.name or str(path)
        where = _("{place} of {file}").format(place=self.place, file=name) if self.place else name
        if field:
            where = _("{place}, field {name}").format(place=where, name=field)
        self.statement = f"{where}: {problem}"
        coded = problem.code if isinstance(problem, CodedText) else ""
        super().__init__(f"{self.statement}{self.advice}", code=code or coded)

    @property
    def place(self) -> str:
        """Where in the file: a line, a record of a JSON array or a row of a sheet; or ""."""
        if self.record:
            return _("Record {n}").format(n=self.record)
        if self.sheet and self.line:
            return _("Row {n} of sheet '{sheet}'").format(n=self.line, sheet=self.sheet)
        return _("Line {n}").format(n=self.line) if self.line else ""


class ImportRefused(FileRefused):
    advice = " Fix the file and import again; nothing was imported."


class TableRefused(FileRefused):
    advice = " Nothing was computed."


class FileFaults(AnnotationError):
    MOST_LISTED = 50

    def __init__(self, faults: Sequence[ImportRefused]) -> None:
        self.faults = tuple(faults)
        lines = [fault.statement for fault in self.faults[: self.MOST_LISTED]]
        if (n_more := len(self.faults) - len(lines)) > 0:
            lines.append(f"... and {n_more:,} more.")
        super().__init__("\n".join([*lines, ImportRefused.advice.strip()]))


class StudyUnknown(AnnotationError):
    def __init__(self, slug: str, known: list[str]) -> None:
        self.slug, self.known = slug, known
        listed = ", ".join(known) if known else "none yet"
        super().__init__(f"There is no study '{slug}'. Studies: {listed}.")


class StudyUnfit(AnnotationError):
    """The study is not of the kind that was asked for."""


class QuestionUnknown(AnnotationError):
    def __init__(self, study: str, name: str, known: list[str]) -> None:
        self.study, self.name, self.known = study, name, known
        questions = (
            f"no question '{name}'. Questions: {', '.join(known)}" if known else "no question"
        )
        super().__init__(f"Study '{study}' asks {questions}.")


class LabelSetUnknown(AnnotationError):
    def __init__(self, version: int, known: list[int]) -> None:
        self.version, self.known = version, known
        listed = ", ".join(map(str, known)) if known else "none yet; make one with label_study"
        super().__init__(f"There are no labels of version {version}. Versions: {listed}.")


class DraftChanged(AnnotationError):
    def __init__(self, saved_at: datetime | None) -> None:
        super().__init__(
            _("Somebody else changed the protocol since you opened it. Nothing was saved.")
        )
        self.saved_at = saved_at


class ProtocolFrozen(AnnotationError):
    def __init__(self, study: str, number: int) -> None:
        super().__init__(
            f"Version {number} of the protocol of study '{study}' is frozen and never changes. "
            "Copy it into a new draft, and change that."
        )


class ProtocolUnknown(AnnotationError):
    def __init__(self, study: str, number: int, known: list[int]) -> None:
        self.study, self.number, self.known = study, number, known
        listed = ", ".join(map(str, known)) if known else "none yet"
        super().__init__(
            f"Study '{study}' has no version {number} of its protocol. Versions: {listed}."
        )


class ProtocolInvalid(AnnotationError):
    def __init__(self, message: str, faults: Sequence[ProtocolFault] = ()) -> None:
        self.faults = tuple(faults)
        super().__init__(message)


class CommentRefused(AnnotationError):
    """A comment that nobody can write, or that somebody else wrote."""


class DecisionRefused(AnnotationError):
    """A value off the question's scale, a round without judgments, or another study's candidate."""


class InvitationVoid(AnnotationError):
    """An invitation that does not hold."""


class FrameUnfit(AnnotationError):
    """No frame is frozen under that fingerprint, or what is there was changed."""


class FolderUnusable(AnnotationError):
    """Results cannot be written to a folder."""


class LicenseUnknown(AnnotationError):
    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"'{name[:64]}' is not the name of a license as Hugging Face has them, such as "
            f"{', '.join(known)}."
        )
