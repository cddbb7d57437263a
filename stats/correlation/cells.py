from dataclasses import dataclass

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded,
    coded_in_order,
    numbers,
    require,
    require_same_length,
)
from stats.libraries import pd


@dataclass(frozen=True)
class Cells:
    """Human and metric values of complete cells, and how many were not complete.

    `item` and `system` are codes, None where the column was not given; `n_groups` counts the
    items handed in, with or without a complete cell.
    """

    human: Floats
    metric: Floats
    item: Integers | None
    system: Integers | None
    n_groups: int
    n_missing: int
    cluster: Integers | None = None
    # Whether items and systems keep the order of their codes, so that draws are shared.
    in_order: bool = False

    @property
    def drawn_units(self) -> Integers | None:
        """What a resample of items draws: clusters, where items come in them."""
        return self.item if self.cluster is None else self.cluster

    def numbered(self, codes: Integers) -> tuple[Integers, int]:
        """The codes without a gap, by appearance or in order."""
        if not self.in_order:
            return renumbered(codes)
        distinct, new = np.unique(codes, return_inverse=True)
        return np.asarray(new, dtype=np.intp), len(distinct)

    @property
    def n_rows(self) -> int:
        return len(self.human)


def complete_cells(
    human: Column,
    metric: Column,
    items: Column | None,
    systems: Column | None,
    clusters: Column | None = None,
) -> Cells:
    columns = {"human": human, "metric": metric, "items": items, "systems": systems}
    require_same_length(**{name: column for name, column in columns.items() if column is not None})
    x, y = numbers(human, "human"), numbers(metric, "metric")
    item = None if items is None else coded(items, "items")[0]
    system = None if systems is None else coded_in_order(systems, "systems")[0]
    if item is not None and system is not None:
        _refuse_repeats(item, system)
    complete = ~(np.isnan(x) | np.isnan(y))
    return Cells(
        human=x[complete],
        metric=y[complete],
        item=None if item is None else item[complete],
        system=None if system is None else system[complete],
        n_groups=0 if item is None else int(item.max(initial=-1)) + 1,
        n_missing=int((~complete).sum()),
        cluster=_clusters(clusters, item, complete),
    )


def _clusters(clusters: Column | None, item: Integers | None, complete: Flags) -> Integers | None:
    if clusters is None:
        return None
    if item is None:
        raise InvalidValue("clusters are of items: items must be given", code="items_missing")
    require_same_length(items=item, clusters=clusters)
    cluster = coded(clusters, "clusters")[0]
    pairs = np.unique(np.stack([item, cluster]), axis=1)
    require(
        pairs.shape[1] <= len(np.unique(item)),
        "clusters must hold whole items: an item is in two of them",
        code="clusters_split_items",
    )
    return cluster[complete]


def _refuse_repeats(item: Integers, system: Integers) -> None:
    repeated = int(pd.DataFrame({"item": item, "system": system}).duplicated().sum())
    require(
        not repeated,
        f"items and systems name the same cell again in {repeated} rows; "
        "average the judgments of a cell first",
        code="repeated_cells",
    )


def renumbered(codes: Integers) -> tuple[Integers, int]:
    """The same grouping with codes 0, 1, ... and none unused, and how many there are."""
    new, distinct = pd.factorize(codes)
    return np.asarray(new, dtype=np.intp), len(distinct)
