"""The pages of a collection, and how it stands with each, for the navigation at their left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, Q, Value
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.stages import DONE, LATER, NEEDS_YOU, Stage
from results.models import Result
from retrieval.models import Collection, CollectionFile, ResultType

KIND, RESULT = CollectionFile.Kind, ResultType
USABLE = Q(n_lines__isnull=False, n_faults=0)


def _counts(collection: Collection) -> Counter[str]:
    """Usable files by kind, faulty ones, and results by kind, in one statement."""
    files = (
        collection.files.order_by()
        .values("kind")
        .annotate(n=Count("pk", filter=USABLE), n_faulty=Count("pk", filter=Q(n_faults__gt=0)))
    )
    results = (
        Result.objects.filter(collection=collection)
        .order_by()
        .values("kind")
        .annotate(n=Count("pk"), n_faulty=Value(0))
    )
    counts: Counter[str] = Counter()
    for kind, n, n_faulty in files.union(results, all=True).values_list("kind", "n", "n_faulty"):
        counts[kind] += n
        counts["faulty"] += n_faulty
        counts["faulty_sources"] += n_faulty if kind in (KIND.CATALOGUE, KIND.EMBEDDINGS) else 0
    return counts


@dataclass(frozen=True)
class StagesOfCollection:
    """Each page of a collection, in the order in which one goes through them."""

    slug: str
    counts: Counter[str]

    def __iter__(self) -> Iterator[Stage]:
        return _stages(self.slug, self.counts)


def stages_of_collection(collection: Collection) -> StagesOfCollection:
    """The pages of a collection, and what of it is counted for them."""
    return StagesOfCollection(collection.slug, _counts(collection))


def _stages(slug: str, counts: Counter[str]) -> Iterator[Stage]:
    prepare, answer = _("Prepare"), _("Answer")
    n_runs, n_qrels, n_assessors = (counts[kind] for kind in (KIND.RUN, KIND.QRELS, KIND.ASSESSORS))
    is_faulty = counts["faulty"] > counts["faulty_sources"]
    state = NEEDS_YOU if is_faulty else DONE if n_runs and n_qrels else LATER
    sizes = _sizes(n_runs, n_qrels, n_assessors)
    yield _stage(slug, "collection-files", _("Runs and qrels"), state, prepare, sizes)
    n_samples, n_pools = counts[RESULT.TARGETS], counts[RESULT.POOL]
    state = DONE if n_samples else LATER
    sizes = (
        ngettext("%(n)d sample", "%(n)d samples", n_samples) % {"n": n_samples} if n_samples else ""
    )
    yield _stage(slug, "collection-targets", _("Targets"), state, prepare, sizes)
    state = NEEDS_YOU if counts["faulty_sources"] else DONE if n_pools else LATER
    sizes = ngettext("%(n)d pool", "%(n)d pools", n_pools) % {"n": n_pools} if n_pools else ""
    yield _stage(slug, "collection-pools", _("Pool"), state, prepare, sizes)
    state = DONE if n_qrels else LATER
    yield _stage(slug, "collection-judgments", _("Judgments"), state, prepare)
    state = DONE if counts[RESULT.EVALUATION] else LATER
    yield _stage(slug, "collection-evaluation", _("Evaluation"), state, answer)
    for name, kind, title in (
        ("collection-trust", RESULT.COMPARISON, _("How far to trust it")),
        ("collection-machine", RESULT.MACHINE, _("A machine's labels")),
        ("collection-reuse", RESULT.REUSE, _("Reuse for other systems")),
        ("collection-audit", RESULT.AUDIT, _("Audit of files")),
    ):
        yield _stage(slug, name, title, DONE if counts[kind] else LATER, answer)
    state = DONE if counts[RESULT.REPORT] else LATER
    yield _stage(slug, "collection-report", _("Report"), state, answer)


def _sizes(n_runs: int, n_qrels: int, n_assessors: int) -> str:
    """How many runs and qrels there are; empty where there is nothing."""
    if not n_runs and not n_qrels and not n_assessors:
        return ""
    runs = ngettext("%(n)d run", "%(n)d runs", n_runs) % {"n": n_runs}
    if n_assessors and not n_qrels:
        return _("{runs}, grades to be merged").format(runs=runs)
    return _("{runs}, {n} qrels").format(runs=runs, n=n_qrels)


def _stage(slug: str, name: str, title: str, state: str, group: str, detail: str = "") -> Stage:
    return Stage(name, title, reverse(f"console:{name}", args=[slug]), state, detail, group)
