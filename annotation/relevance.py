"""Relevance judgments and embeddings that one app stores, for apps on its level.

The module `relevance_sources` of that app has the functions of `RelevanceSources`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from accounts.models import Team
from annotation.models import LabelSet, Study
from console.registrations import app_modules
from stats.arguments import Floats

# A target, an item, and the item's grade; below 0 if nobody judged it.
Judged = tuple[str, str, int]


@dataclass(frozen=True)
class Source:
    key: str
    title: str
    group: str
    team_id: int
    judgments: Callable[[], list[Judged]]
    study: Study | None = None
    label_set: LabelSet | None = None
    collection: str = ""

    @property
    def made_of(self) -> str:
        return f"{self.group}: {self.title}"


class RelevanceSources(Protocol):
    def read_qrels(self, path: Path) -> Any:
        """The grades of a file: `topics`, `documents`, and by row `topic`, `document`, `grade`."""

    def list_sources(self, teams: list[Team]) -> Iterator[Source]:
        """What the teams' studies and collections offer, the newest first."""

    def find_study_source(
        self, study: Study, *, label_set: int | None, round: int
    ) -> Source | None:
        """The labels of that version, or the judgments of a round; None if there are none."""

    def find_qrels_source(self, collection: Any, name: str) -> Source | None:
        """The usable qrels of that name; None if a collection has none."""

    def list_embeddings(self, teams: list[Team]) -> list[tuple[int, str]]:
        """Key and title of the teams' embeddings, the newest first."""

    def read_embeddings(self, team: Team, key: int) -> tuple[str, list[str], Floats] | None:
        """The file's name, the items' ids and a row for each; None if they are not the team's."""


def relevance_sources() -> RelevanceSources:
    [module] = app_modules("relevance_sources")
    return cast(RelevanceSources, module)
