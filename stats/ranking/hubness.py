"""Hubs: documents that stand in far more lists than others, and those that stand in none."""

from dataclasses import dataclass
from math import nan

import numpy as np

from error_codes import InvalidValue
from stats.arguments import Column, coded
from stats.libraries import scipy

HUB_SHARE = 0.1


@dataclass(frozen=True)
class Hubness:
    """How unevenly lists are filled.

    Attributes
    ----------
    n_lists, n_documents : int
        Lists; documents that could stand in them.
    skewness : float
        Of the k-occurrence: in how many lists each document stands. NaN with the `reason` where
        undefined.
    n_hubs : int
        Documents that stand in at least `hub_share` of the lists.
    hub_slots : float
        The share of all places in lists that hubs take.
    anti_hubs : float
        The share of documents that stand in no list.
    most : int
        The greatest k-occurrence.
    hub_share : float
    reason : str or None
        Why what is NaN is undefined.
    """

    n_lists: int
    n_documents: int
    skewness: float
    n_hubs: int
    hub_slots: float
    anti_hubs: float
    most: int
    hub_share: float
    reason: str | None = None


def hubness(
    document: Column, *, n_lists: int, n_documents: int | None = None, hub_share: float = HUB_SHARE
) -> Hubness:
    """How unevenly documents stand in lists of neighbours, or in pools.

    Parameters
    ----------
    document : array-like, shape (n_places,)
        The document in each place of all lists together, each once a list.
    n_lists : int
    n_documents : int, optional
        Documents that could stand in a list; by default those that do.
    hub_share : float
        From which share of the lists on a document is a hub.

    Returns
    -------
    Hubness

    Raises
    ------
    ValueError
        If there is no list, fewer documents than stand in lists, or `hub_share` is not above 0
        and at most 1.

    References
    ----------
    M. Radovanović, A. Nanopoulos and M. Ivanović (2010). Hubs in space: Popular nearest neighbors
    in high-dimensional data. Journal of Machine Learning Research 11, 2487-2531.

    Examples
    --------
    >>> lists = [["a", "b"], ["a", "c"], ["a", "d"]]
    >>> found = hubness([name for each in lists for name in each], n_lists=3, n_documents=5,
    ...                 hub_share=0.5)
    >>> found.n_hubs, found.hub_slots, found.anti_hubs, round(found.skewness, 3)
    (1, 0.5, 0.2, 0.868)
    """
    if n_lists < 1:
        raise InvalidValue(f"n_lists must be positive, got {n_lists}", code="n_lists_out_of_range")
    if not 0 < hub_share <= 1:
        raise InvalidValue(
            f"hub_share must be above 0 and at most 1, got {hub_share}",
            code="hub_share_out_of_range",
        )
    codes, distinct = coded(document, "document")
    n = len(distinct) if n_documents is None else n_documents
    if n < len(distinct):
        raise InvalidValue(
            f"n_documents must be at least {len(distinct)}, got {n}",
            code="n_documents_out_of_range",
        )
    if not len(codes):
        return Hubness(n_lists, n, nan, 0, nan, 1.0 if n else nan, 0, hub_share, "empty lists")
    occurrence = np.zeros(n)
    occurrence[: len(distinct)] = np.bincount(codes)
    # A share of the lists as a count: 20 of 200 is 10 %, whatever 0.1 is in binary.
    is_hub = occurrence >= round(hub_share * n_lists, 9)
    has_spread = bool(np.ptp(occurrence))
    return Hubness(
        n_lists=n_lists,
        n_documents=n,
        skewness=float(scipy.stats.skew(occurrence)) if has_spread else nan,
        n_hubs=int(is_hub.sum()),
        hub_slots=float(occurrence[is_hub].sum() / len(codes)),
        anti_hubs=float((occurrence == 0).mean()),
        most=int(occurrence.max()),
        hub_share=hub_share,
        reason=None if has_spread else "all documents stand in the same number of lists",
    )
