"""Published data sets: human judgments and metrics' scores, into one study."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from accounts.models import Team
from annotation.imports import ImportResult, import_study
from metrics.stored_scores import write_scores
from replications.readers.published import Published


@dataclass(frozen=True)
class PublishedImported(ImportResult):
    """What an import wrote, with the number of scores of each metric."""

    n_scores: dict[str, int]

    def record(self) -> dict[str, Any]:
        return {**super().record(), "n_scores": self.n_scores}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} of {metric}" for metric, count in self.n_scores.items())
        return f"{super().__str__()}\n{counts} scores imported." if counts else super().__str__()


@transaction.atomic
def import_published(
    *,
    published: Published,
    path: Path,
    slug: str,
    title: str = "",
    owner: AbstractBaseUser | None = None,
    team: Team | None = None,
) -> PublishedImported:
    """Write a data set's study and its metrics' scores, whole or not at all."""
    imported = import_study(
        draft=published.study, path=path, slug=slug, title=title, owner=owner, team=team
    )
    counts: Counter[str] = Counter()
    for scores in published.scores:
        write_scores(
            study=imported.study,
            metric=scores.metric,
            signature=scores.signature,
            values=scores.values,
            higher_is_better=scores.higher_is_better,
        )
        counts[scores.metric] += len(scores.values)
    return PublishedImported(**vars(imported), n_scores=dict(counts))
