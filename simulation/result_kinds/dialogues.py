from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import AnnotationError
from annotation.models import Study
from presentation.numbers import join_names
from presentation.row_files import Kind, RowFile
from results.kinds import ResultKind
from results.models import Result
from results.tables import Record, Row, sentence
from simulation.exceptions import DialoguesUnfit, SimulationError
from simulation.recorded_dialogues import dialogues_of
from stats.libraries import pd

MOST_SEED = 2**31 - 1
SIGNIFICANT = 0.05
# Columns of the file of every number.
ESTIMATE_COLUMNS: dict[str, Kind] = {
    "part": "text",
    "name": "text",
    "user": "text",
    "recommender": "text",
    "value": "number",
    "ci_low": "number",
    "ci_high": "number",
    "p": "number",
    "p_adjusted": "number",
    "is_equivalent": "boolean",
    "reason": "text",
}


class DialogueKind(ResultKind[Study]):
    subject = "study"
    refusals = (SimulationError, AnnotationError)

    def open_subject(self, key: int) -> Study:
        study = Study.objects.filter(pk=key, dialogues__kind=self.name).first()
        if study is None:
            raise DialoguesUnfit(_("The study was deleted meanwhile."))
        return study

    def find_subject(self, name: str) -> Study:
        return dialogues_of(Study.objects.named(name), self.name).study

    def load_inputs(self, subject: Study, keys: Sequence[int]) -> Sequence[Any]:
        return ()

    def describe_inputs(self, subject: Study, inputs: Sequence[Any]) -> list[Any]:
        return [subject.dialogues.log_sha256, subject.judgments_version]

    @abstractmethod
    def list_estimates(self, record: Record) -> Iterable[Row]:
        pass

    def write_estimates(self, result: Result) -> RowFile:
        rows = self.list_estimates(result.record)
        return RowFile(ESTIMATE_COLUMNS, (tuple(row.values()) for row in rows))


def estimate(
    part: str,
    name: str,
    value: float | None = None,
    limits: Sequence[float | None] = (None, None),
    **more: Any,
) -> Row:
    low, high = limits
    number = None if value is None else float(value)
    numbers = {"part": part, "name": name, "value": number, "ci_low": low, "ci_high": high}
    row = dict.fromkeys(ESTIMATE_COLUMNS) | {"user": "", "recommender": ""} | numbers | more
    return row | {"reason": row["reason"] or ""}


def limits_of(row: Row) -> tuple[float | None, float | None]:
    return row["ci_low"], row["ci_high"]


def named_frame(rows: Iterable[tuple[str, Row]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"name": name} | {key: row[key] for key in ("value", "ci_low", "ci_high")}
            for name, row in rows
            if row["value"] is not None
        ]
    )


def describe_truest(gains: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Users significantly closer to people than the first. Rows have `user`, `gain`, `p` and
    `p_adjusted`; only the first user has no p."""
    others = [row for row in gains if row["p"] is not None]
    if not others:
        return
    first = find_first(gains)
    truer = [
        row["user"]
        for row in others
        if row["p_adjusted"] is not None
        and row["p_adjusted"] < SIGNIFICANT
        and (row["gain"] or 0) > 0
    ]
    if not truer:
        yield sentence("none_truer", _("No user is shown to be truer than {first}."), first=first)
        return
    text = ngettext(
        "{users} is truer than {first}, by more than chance explains.",
        "{users} are truer than {first}, by more than chance explains.",
        len(truer),
    )
    yield sentence("truer", text, users=join_names(truer), first=first)


def find_first(gains: Sequence[Mapping[str, Any]]) -> str:
    return next((str(row["user"]) for row in gains if row["p"] is None), "")
