"""Published data sets: human judgments and metrics' scores, into one study."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from accounts.models import Team
from annotation.imports import ImportResult, import_study
from metrics.stored_scores import write_scores
from replications.readers.published import Published


@dataclass(frozen=True)
class PublishedImported:
    """What an import wrote, and how many scores of each metric came with it."""

    study: ImportResult
    n_scores: dict[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} of {metric}" for metric, count in self.n_scores.items())
        return f"{self.study}\n{counts} scores imported." if counts else str(self.study)


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
    return PublishedImported(imported, dict(counts))
