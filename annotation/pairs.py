"""Pairs of an item's candidates as items of their own, so that annotators compare two at a time.

The imported items are kept apart meanwhile (`SourceItem`) and come back as they were. HITs, costs
and results follow from the items; a pair's source is the cluster of its judgments.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.bulk import DRAFTS_AT_ONCE, batched, insert_rows
from annotation.exceptions import StudyUnfit, require
from annotation.models import (
    Candidate,
    Item,
    Protocol,
    SourceCandidate,
    SourceItem,
    Study,
    Submission,
)
from annotation.protocols.records import Order, Pairs, ProtocolDocument
from stats.pair_designs import draw_pairs

OF_ITEMS = ("key", "condition", "context", "reference", "picture_id", "position")
OF_CANDIDATES = ("key", "system", "text", "picture_id", "extra", "position")
LONGEST_KEY = 200
FIXED = "fixed"

AnyItem = Item | SourceItem
AnyCandidate = Candidate | SourceCandidate


def with_pairs(document: ProtocolDocument, pairs: Pairs | None) -> ProtocolDocument:
    """The document with this design; pairs have their left and right candidate by the design."""
    if (pairs is None) is (document.pairs is None):
        return replace(document, pairs=pairs)
    return replace(
        document,
        pairs=pairs,
        order=replace(document.order, policy=Order.policy if pairs is None else FIXED),
    )


def set_pairs(study: Study, pairs: Pairs | None, *, before: Pairs | None) -> None:
    """Make pairs of the study's items by a design, or the imported items of its pairs. The caller
    holds the lock on the study.

    StudyUnfit if the items may not change any more, or have no pairs.
    """
    if pairs == before:
        return
    if study.items.exists():
        _require_unpublished(study)
    if before is not None:
        _restore_items(study)
    if pairs is not None:
        _draw_items(study, pairs)


def _require_unpublished(study: Study) -> None:
    require(
        not (Protocol.objects.of(study).frozen().exists() or Submission.objects.of(study).exists()),
        StudyUnfit(
            _(
                "The items of study '{study}' were published or have answers, so that the pairs "
                "to compare cannot change. Copy the study and change the copy."
            ).format(study=study.slug),
            code="pairs_fixed",
        ),
    )


def _restore_items(study: Study) -> None:
    study.items.all().delete()
    _copy(study.source_items.all(), study, Item, Candidate)
    study.source_items.all().delete()


def _draw_items(study: Study, pairs: Pairs) -> None:
    require(
        study.kind == Study.Kind.RATING,
        StudyUnfit(
            _("Alternatives are ticked together, so they have no pairs. Choose another task."),
            code="pairs_of_alternatives",
        ),
    )
    _copy(study.items.all(), study, SourceItem, SourceCandidate)
    study.items.all().delete()
    sources = list(study.source_items.order_by("position", "pk").prefetch_related("candidates"))
    named = [_named(list(source.candidates.all())) for source in sources]
    for source, candidates in zip(sources, named, strict=True):
        require(
            len(candidates) > 1,
            StudyUnfit(
                _(
                    "Item '{item}' has {n} response; a pair needs two. Add a response or remove "
                    "the item."
                ).format(item=source.key, n=len(candidates)),
                code="too_few_candidates",
            ),
        )
    designs = draw_pairs(
        [list(each) for each in named],
        per_item=None if pairs.design == "all" else pairs.per_item,
        seed=pairs.seed,
    )
    _write_pairs(study, sources, named, designs)


def _named(candidates: Sequence[SourceCandidate]) -> dict[Hashable, SourceCandidate]:
    """By system, and by place if it has none or the item has several of the system."""
    counts = Counter(each.system for each in candidates)
    return {
        each.system if each.system and counts[each.system] == 1 else (each.system, place): each
        for place, each in enumerate(candidates)
    }


def _write_pairs(
    study: Study,
    sources: Sequence[SourceItem],
    named: Sequence[dict[Hashable, SourceCandidate]],
    designs: Sequence[Sequence[tuple[Hashable, Hashable]]],
) -> None:
    pairs: dict[str, tuple[SourceItem, list[SourceCandidate]]] = {}
    for source, candidates, design in zip(sources, named, designs, strict=True):
        places = {name: place for place, name in enumerate(candidates, start=1)}
        for left, right in design:
            # By places in the file, since keys of candidates often are names of systems.
            key = f"{source.key}:{places[left]}-{places[right]}"
            require(
                len(key) <= LONGEST_KEY,
                StudyUnfit(
                    _("The ID of item '{item}' is too long for an ID of its pairs.").format(
                        item=source.key
                    ),
                    code="key_too_long",
                ),
            )
            pairs[key] = (source, [candidates[left], candidates[right]])
    insert_rows(
        Item,
        ("study_id", "source_id", *OF_ITEMS),
        (
            (
                *(study.pk, source.pk, key, source.condition, source.context),
                *(source.reference, source.picture_id, position),
            )
            for position, (key, (source, _two)) in enumerate(pairs.items())
        ),
    )
    ids = dict(study.items.order_by().values_list("key", "pk"))
    insert_rows(
        Candidate,
        ("item_id", "blind_key", *OF_CANDIDATES),
        (
            (
                *(ids[key], each.blind_key, each.key, each.system, each.text),
                *(each.picture_id, each.extra, side),
            )
            for key, (_source, two) in pairs.items()
            for side, each in enumerate(two)
        ),
    )


def imported_items(study: Study) -> QuerySet[Item] | QuerySet[SourceItem]:
    """The items as they were imported, of which pairs may have been made."""
    return study.source_items.all() if study.source_items.exists() else study.items.all()


def copy_items(source: Study, study: Study, *, keys: Collection[str] | None = None) -> None:
    """Copy the items as they were imported, with new blind keys; only those of `keys`, if given."""
    items = imported_items(source)
    chosen = items if keys is None else items.filter(key__in=keys)
    _copy(chosen, study, Item, Candidate, is_blinded_anew=True)


def _copy(
    items: QuerySet[Item] | QuerySet[SourceItem],
    study: Study,
    to_items: type[AnyItem],
    to_candidates: type[AnyCandidate],
    *,
    is_blinded_anew: bool = False,
) -> None:
    names = OF_CANDIDATES if is_blinded_anew else ("blind_key", *OF_CANDIDATES)
    ordered: Iterator[AnyItem] = iter(items.order_by("position", "pk").iterator())
    for read in batched(ordered, DRAFTS_AT_ONCE):
        insert_rows(
            to_items,
            ("study_id", *OF_ITEMS),
            ([study.pk, *(getattr(item, name) for name in OF_ITEMS)] for item in read),
        )
        keys = {item.pk: item.key for item in read}
        ids = dict(
            to_items._default_manager.filter(study=study, key__in=keys.values()).values_list(
                "key", "pk"
            )
        )
        insert_rows(
            to_candidates,
            ("item_id", *names),
            [
                [ids[keys[item]], *values]
                for item, *values in (Candidate if isinstance(read[0], Item) else SourceCandidate)
                ._default_manager.filter(item__in=keys)
                .order_by("item", "position", "pk")
                .values_list("item_id", *names)
                .iterator()
            ],
        )


@dataclass(frozen=True)
class ItemSizes:
    """Of the items as they were imported: how many there are, and the least and most candidates
    of one."""

    n_items: int
    least: int
    most: int
    # By number of candidates, how many items have it.
    counts: Counter[int]

    def n_pairs(self, pairs: Pairs) -> int:
        """How many items, and so HITs of a round, a design makes."""
        n = 0
        for size, n_items in self.counts.items():
            n_all = size * (size - 1) // 2
            n += n_items * (n_all if pairs.design == "all" else min(pairs.per_item, n_all))
        return n


def item_sizes(study: Study) -> ItemSizes:
    items = study.source_items if study.source_items.exists() else study.items
    values = items.order_by().values_list("pk", "candidates__pk")
    n_of_item = Counter(pk for pk, _candidate in values.exclude(candidates=None))
    counts = Counter(n_of_item.values())
    if n_empty := items.count() - len(n_of_item):
        counts[0] = n_empty
    return ItemSizes(sum(counts.values()), min(counts, default=0), max(counts, default=0), counts)
