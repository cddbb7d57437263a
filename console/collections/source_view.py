"""Catalogues and vectors as the Pool page lists them, and how well each fits the runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.db.models import Prefetch
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from retrieval.models import Collection, CollectionFile, FileFit

SOURCES = (CollectionFile.Kind.EMBEDDINGS, CollectionFile.Kind.CATALOGUE)


@dataclass(frozen=True)
class SourceRow:
    """A source with what it knows of each run."""

    file: CollectionFile

    @cached_property
    def fits(self) -> list[FileFit]:
        return list(self.file.fits.all())

    @property
    def is_foreign(self) -> bool:
        """Whether there is a run of which it knows nothing."""
        return any(not fit.n_known for fit in self.fits)

    @property
    def sentences(self) -> list[str]:
        """How many documents and topics of the runs it knows."""
        if not self.fits:
            return []
        return [*self._documents(), self._topics()]

    def _documents(self) -> list[str]:
        lacking = [fit for fit in self.fits if fit.n_known < fit.n_documents]
        if not lacking:
            n = len(self.fits)
            text = ngettext(
                "Knows every document of the run.", "Knows every document of the {n} runs.", n
            )
            return [text.format(n=n)]
        return [_sentence(fit) for fit in lacking]

    def _topics(self) -> str:
        fit = max(self.fits, key=lambda fit: fit.n_topics)
        if not fit.n_known_topics:
            return _("No topic is one of its documents: targets are shown by name.")
        return _("{n} of {total} topics are among its documents.").format(
            n=f"{fit.n_known_topics:,}", total=f"{fit.n_topics:,}"
        )


def _sentence(fit: FileFit) -> str:
    if not fit.n_known:
        text = _("Knows no document of {run}: are their names the same in both files?")
        return text.format(run=fit.run.name)
    return _("Knows {n} of {total} documents of {run}.").format(
        n=f"{fit.n_known:,}", total=f"{fit.n_documents:,}", run=fit.run.name
    )


def listed_sources(collection: Collection) -> list[SourceRow]:
    """The catalogues and vectors of a collection."""
    fits = FileFit.objects.select_related("run").defer("run__faults", "run__warnings")
    rows = collection.files.filter(kind__in=SOURCES).defer("faults")
    return [SourceRow(file) for file in rows.prefetch_related(Prefetch("fits", fits))]
