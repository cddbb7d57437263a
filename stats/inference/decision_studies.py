"""What ratings by other numbers of items and annotators would be worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from error_codes import InvalidValue
from stats.inference.component_estimates import RESIDUAL


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a study of so many items and annotators would be worth.

    Attributes
    ----------
    n_items, n_annotators : int
        Items, and annotators of each rated output; all rate the same ones.
    se_of_mean : float
        Of a system's mean (without systems: of an item's), for new items and annotators.
    se_of_difference : float
        Of the difference of two systems (without systems: of two items).
    generalizability : float
        The reliability of the order of systems (items).
    dependability : float
        The reliability of their values.
    """

    n_items: int
    n_annotators: int
    se_of_mean: float
    se_of_difference: float
    generalizability: float
    dependability: float


def decision_study(
    components: Mapping[str, float], *, n_items: int = 1, n_annotators: int
) -> Decision:
    """How sure systems (or, without systems, items) would be with other numbers of ratings.

    Parameters
    ----------
    components : mapping of str to float
        From `variance_components`; what is missing counts as 0, negative ones as 0.
    n_items : int
        Items of each system; not used without systems.
    n_annotators : int
        Annotators who each rate every output.

    Returns
    -------
    Decision

    Raises
    ------
    ValueError
        If a number is below 1.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapters 2 and 4.

    Examples
    --------
    >>> parts = {"item": 0.98, "annotator": 0.29, "residual": 0.71}
    >>> round(decision_study(parts, n_annotators=3).generalizability, 2)
    0.81
    """
    if n_items < 1 or n_annotators < 1:
        raise InvalidValue(
            "n_items and n_annotators must be at least 1", code="n_items_out_of_range"
        )
    part = {
        name: 0.0 if isnan(value) else max(float(value), 0.0) for name, value in components.items()
    }

    def of(name: str) -> float:
        return part.get(name, 0.0)

    if "system" in part:
        cells = n_items * n_annotators
        object_ = of("system")
        relative = of("item_system") / n_items + of("system_annotator") / n_annotators
        relative += of(RESIDUAL) / cells
        absolute = relative + of("item") / n_items + of("annotator") / n_annotators
        absolute += of("item_annotator") / cells
    else:
        object_ = of("item")
        relative = of(RESIDUAL) / n_annotators
        absolute = relative + of("annotator") / n_annotators
    return Decision(
        n_items=n_items,
        n_annotators=n_annotators,
        se_of_mean=float(np.sqrt(absolute)),
        se_of_difference=float(np.sqrt(2 * relative)),
        generalizability=_share(object_, relative),
        dependability=_share(object_, absolute),
    )


def _share(signal: float, error: float) -> float:
    return signal / (signal + error) if signal + error > 0 else nan
