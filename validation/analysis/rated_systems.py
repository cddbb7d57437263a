from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, nan
from typing import Any, Literal

from error_codes import CodedText
from presentation.numbers import count_of, plain_values
from stats.inference.crossed_means import (
    SKEWED,
    MeanOfCells,
    mean_over_items_and_annotators,
)
from stats.inference.larger_studies import (
    FamilyOfMeans,
    family_of_means,
    least_distinguishable,
    least_with_items,
    purchase_to_distinguish,
)
from stats.inference.resampled_means import LEAST_FLIPPED, sign_flip_test
from stats.inference.two_systems import (
    FEWEST_OFF_END,
    MANY_AT_ONE_END,
    difference_of_systems,
    items_off_the_end,
    ordered_comparison,
    share_at_one_end,
)
from stats.jackknife import is_uneven, uneven_notes
from stats.libraries import np, pd
from stats.significance import holm
from validation.analysis.records import RatedPairRecord, RatedSystemRecord

# With more, each is compared with the best only, and p is adjusted for all pairs.
MOST_SYSTEMS = 30
FEW_ITEMS, FEW_ANNOTATORS = 20, 3
# With fewer, p below .05 depends on how ratings are distributed.
LEAST_ITEMS = 10
ESTIMANDS = {
    "quasi-f": "these systems, on new items by new annotators",
    "two-way-clusters": "these systems, on new items by new annotators",
    "items": "these systems, on new items by annotators drawn as these were",
}

Scale = Literal["interval", "ordinal", "binary"]
ORDER = "order-"
ORDERED = "how much oftener rated above than below, on new items by new annotators"


@dataclass(frozen=True)
class RatedSystems:
    means: dict[str, MeanOfCells]
    comparisons: tuple[dict[str, Any], ...]
    ranks: dict[str, tuple[int, int]]
    notes: tuple[CodedText, ...]

    def best_first(self) -> list[tuple[str, MeanOfCells]]:
        return sorted(
            self.means.items(), key=lambda pair: -np.nan_to_num(pair[1].value, nan=-np.inf)
        )


def compare_rated_systems(
    frame: pd.DataFrame, *, seed: int = 0, flips: bool = True, scale: Scale = "interval"
) -> RatedSystems:
    """The systems of ratings: columns item, annotator, system and value; a `unit` holds items.

    On an ordinal or binary scale two systems differ by how much oftener the same annotator rates
    one above the other on the same item, wherever annotators rated both.
    """
    skewed = _at_one_end(frame)
    means = {
        str(name): mean_over_items_and_annotators(
            part["item"], part["annotator"], part["value"], skewed=name in skewed
        )
        for name, part in frame.groupby("system", observed=True)
    }
    best = max(means, key=lambda name: means[name].value)
    pairs = list(combinations(sorted(means), 2))
    if len(means) > MOST_SYSTEMS:
        pairs = [pair for pair in pairs if best in pair]
    by_system = {str(name): part for name, part in frame.groupby("system", observed=True)}
    compared = [
        _compared(
            a,
            b,
            pd.concat([by_system[a], by_system[b]]),
            seed=seed if flips else None,
            scale=scale,
            skewed=not skewed.isdisjoint((a, b)),
        )
        for a, b in pairs
    ]
    comparisons = adjusted_in_family(compared, untested_pairs(len(means), len(pairs)))
    notes = small_sample_notes(frame)
    if scale == "interval":
        notes += tuple(notes_of_ends(off_the_end(frame), means))
    return RatedSystems(means, comparisons, _ranks(means, comparisons), notes)


def rated_records(
    question: str, ratings: pd.DataFrame, scale: Scale = "interval"
) -> tuple[list[RatedSystemRecord], list[RatedPairRecord]]:
    rows = ratings[(ratings["system"].astype(str) != "") & ratings["value"].notna()]
    unit = "cluster" if "cluster" in rows else "item"
    columns = {name: rows[name].astype(str) for name in ("annotator", "system")}
    frame = pd.DataFrame({"item": rows[unit].astype(str), **columns, "value": rows["value"]})
    if frame["system"].nunique() < 2:
        return [], []
    if unit == "cluster":
        frame = frame.assign(within=rows["item"].astype(str))
    compared = compare_rated_systems(frame, flips=False, scale=scale)
    carrying = off_the_end(frame)
    systems = [
        RatedSystemRecord(
            **plain_values(
                {
                    "question": question,
                    "system": name,
                    "mean": mean.value,
                    "ci_low": mean.ci_low,
                    "ci_high": mean.ci_high,
                    "method": mean.method,
                    "rank_low": compared.ranks[name][0],
                    "rank_high": compared.ranks[name][1],
                    "n_items": mean.n_items,
                    "n_annotators": mean.n_annotators,
                    "n_ratings": mean.n,
                    "n_items_off_end": carrying.get(name),
                    "busiest_share": mean.busiest_share,
                }
            )
        )
        for name, mean in compared.best_first()
    ]
    pairs = []
    for row in compared.comparisons:
        values: dict[str, Any] = {name: row.get(name) for name in PAIR}
        pairs.append(RatedPairRecord(question=question, **values))
    return systems, pairs


PAIR = (
    *("a", "b", "delta", "se", "ci_low", "ci_high", "test", "freedom", "p", "p_adjusted"),
    *("estimand", "n_items", "n_annotators", "items_needed", "annotators_needed"),
    *("least_shown", "least_shown_of_twice"),
)


def _compared(
    a: str, b: str, pair: pd.DataFrame, *, seed: int | None, scale: Scale, skewed: bool
) -> tuple[dict[str, Any], MeanOfCells | None]:
    items_of = pair.groupby("system", observed=True)["item"].agg(set)
    shared = items_of[a] & items_of[b]
    rows = pair[pair["item"].isin(shared)]
    row: dict[str, Any] = {"a": a, "b": b, "n_items": len(shared), "n_annotators": 0}
    if not shared:
        return row | {"delta": nan, "p": nan, "test": "none", "estimand": ESTIMANDS["items"]}, None
    one = difference_of_systems(
        rows["item"], rows["annotator"], rows["system"] == a, rows["value"], skewed=skewed
    )
    if scale != "interval" and (ordered := _in_order(rows, a)) is not None:
        shares, lead = ordered
        flips = {} if seed is None else _flips(rows, a, seed, ordered=True)
        return row | {"mean_difference": one.value} | shares | flips, lead
    values = {
        "delta": one.value,
        "se": one.se,
        "ci_low": one.ci_low,
        "ci_high": one.ci_high,
        "test": one.method,
        "freedom": one.freedom,
        "p": one.p,
        "estimand": ESTIMANDS[one.method.removesuffix(SKEWED)],
        "n_annotators": one.n_annotators,
        "busiest_share": one.busiest_share,
        **({} if seed is None else _flips(rows, a, seed)),
    }
    return row | values, one


def _in_order(rows: pd.DataFrame, a: str) -> tuple[dict[str, Any], MeanOfCells] | None:
    """Compare by who is rated higher; None if no annotator rated both."""
    comparison = ordered_comparison(
        rows["within" if "within" in rows else "item"],
        rows["annotator"],
        rows["system"] == a,
        rows["value"],
        clusters=rows["item"] if "within" in rows else None,
    )
    if comparison is None:
        return None
    lead = comparison.lead
    shares = {name: value for name, value in vars(comparison).items() if name != "lead"}
    values = {
        "delta": lead.value,
        "se": lead.se,
        "ci_low": lead.ci_low,
        "ci_high": lead.ci_high,
        "test": f"{ORDER}{lead.method}",
        "freedom": lead.freedom,
        "p": lead.p,
        "estimand": ORDERED,
        "n_annotators": lead.n_annotators,
        "busiest_share": lead.busiest_share,
    }
    return shares | values, lead


def _flips(rows: pd.DataFrame, a: str, seed: int, *, ordered: bool = False) -> dict[str, float]:
    """Sign-flip p over items and over annotators; NaN where p can never be below .05."""
    paired = rows.groupby(["item", "annotator", "system"])["value"].mean().unstack().dropna()
    difference = paired[a] - paired.drop(columns=a).iloc[:, 0]
    values = difference.to_numpy()
    if ordered:
        values = np.sign(values)
    p = {}
    for level in ("item", "annotator"):
        units = difference.index.get_level_values(level)
        enough = units.nunique() >= LEAST_FLIPPED
        p[f"p_flip_{level}s"] = sign_flip_test(list(units), values, rng=seed) if enough else nan
    return p


def untested_pairs(n_systems: int, n_tested: int) -> int:
    return comb(n_systems, 2) - n_tested if n_systems > MOST_SYSTEMS else 0


def _ranks(
    means: Mapping[str, MeanOfCells], comparisons: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[int, int]]:
    """Possible ranks: significant differences fix who is above and below."""
    better = dict.fromkeys(means, 0)
    worse = dict.fromkeys(means, 0)
    for row in comparisons:
        if is_decided(row["p_adjusted"], row["n_items"]):
            up, down = (row["a"], row["b"]) if row["delta"] > 0 else (row["b"], row["a"])
            better[down] += 1
            worse[up] += 1
    return {name: (1 + better[name], len(means) - worse[name]) for name in means}


def is_decided(p_adjusted: float | None, n_items: int | None) -> bool:
    """Whether two systems differ significantly. `n_items` is None for comparisons that name no
    items."""
    has_enough = n_items is None or n_items >= LEAST_ITEMS
    return has_enough and p_adjusted is not None and p_adjusted < ALPHA


def small_sample_notes(frame: pd.DataFrame) -> tuple[CodedText, ...]:
    n_annotators = frame["annotator"].nunique()
    share = float(frame["annotator"].value_counts(normalize=True).max())
    counts = notes_of_counts(frame["item"].nunique(), n_annotators)
    return (*counts, *uneven_notes(share, n_annotators))


def notes_of_counts(n_items: int, n_annotators: int) -> Iterator[CodedText]:
    if n_items < FEW_ITEMS:
        yield CodedText(
            f"only {n_items} items: intervals are a rough guide below {FEW_ITEMS}", code="few_items"
        )
    if n_annotators < FEW_ANNOTATORS:
        yield CodedText(
            f"only {n_annotators} annotators: little can be said of others", code="few_annotators"
        )


def off_the_end(frame: pd.DataFrame) -> dict[str, int]:
    """Per system, the items not at the extreme value of all systems; empty for two-valued
    ratings."""
    if frame["value"].nunique() < 3:
        return {}
    ends = _ends(frame)
    return {
        str(name): items_off_the_end(part["item"], part["value"], **ends)
        for name, part in frame.groupby("system", observed=True)
    }


def _at_one_end(frame: pd.DataFrame) -> set[str]:
    if frame["value"].nunique() < 3:
        return set()
    ends = _ends(frame)
    of_systems = frame.groupby("system", observed=True)["value"]
    return {str(name) for name, y in of_systems if share_at_one_end(y, **ends) >= MANY_AT_ONE_END}


def _ends(frame: pd.DataFrame) -> dict[str, float]:
    return {"low": float(frame["value"].min()), "high": float(frame["value"].max())}


def is_carried_by_few(n_off_end: int, n_items: int) -> bool:
    return n_off_end < FEWEST_OFF_END and 2 * n_off_end < n_items


def notes_of_ends(
    off_end: Mapping[str, int], means: Mapping[str, MeanOfCells]
) -> Iterator[CodedText]:
    for name, n_items in off_end.items():
        if is_carried_by_few(n_items, means[name].n_items):
            yield CodedText(
                f"most ratings of {name} lie at one end of the scale, and "
                f"{count_of(n_items, 'item')} carry its mean: a test of means is a rough guide "
                f"below {FEWEST_OFF_END}; an ordinal scale compares who is rated above whom",
                code="few_items_off_end",
            )


def comparison_sentence(row: Mapping[str, Any]) -> CodedText:
    a, b = row["a"], row["b"]
    if row["p"] is None:
        return CodedText(f"{a} and {b}: too little data to say.", code="too_little_data")
    limits = f"{row['delta']:+.3g} [{row['ci_low']:+.3g}, {row['ci_high']:+.3g}]"
    if row.get("odds_ratio") is not None:
        limits += f", odds {row['odds_ratio']:.3g}"
    n_items = row.get("n_items")
    if is_decided(row["p_adjusted"], n_items):
        better, worse = (a, b) if row["delta"] > 0 else (b, a)
        p = f"p = {row['p_adjusted']:.4f} after Holm"
        of_whom = f"{row['estimand']}{_busiest(row)}"
        text = f"{better} is better than {worse} ({a} less {b}: {limits}, {p}; {of_whom})."
        return CodedText(text, code="better")
    if row["se"] is None or (n_items is not None and n_items < LEAST_ITEMS):
        text = f"{a} and {b} are not distinguished ({limits}): too few items to say."
        return CodedText(text, code="too_few_items")
    least = row.get("least_shown") or least_distinguishable(row["se"], row.get("freedom") or 0.0)
    alone = row["ci_low"] > 0 or row["ci_high"] < 0
    why = f" once p is adjusted for all pairs: {row['p_adjusted']:.4f} after Holm" if alone else ""
    pair = ", an interval of this pair alone" if alone else ""
    return CodedText(
        f"{a} and {b} are not distinguished{why} ({limits}{pair}); this study could distinguish "
        f"differences over {least:.3g}.",
        code="undecided_after_adjustment" if alone else "undecided",
    )


def _busiest(row: Mapping[str, Any]) -> str:
    share, n_annotators = row.get("busiest_share"), row.get("n_annotators") or 0
    if share is None or not is_uneven(share, n_annotators):
        return ""
    return f"; one of {n_annotators} annotators gave {100 * share:.0f} % of the judgments"


INTERVALS_ALONE = (
    "Each interval is of its pair alone; whether two systems are distinguished goes by p, adjusted "
    "for all pairs by Holm's method, so that an interval may leave out 0 where p does not"
)


ALPHA = 0.05
MOST_TO_BUY = 1_000_000


def adjusted_in_family(
    compared: Sequence[tuple[dict[str, Any], MeanOfCells | None]], n_untested: int
) -> tuple[dict[str, Any], ...]:
    """Adjust p and degrees of freedom over all comparisons, and add the sample sizes needed."""
    family = family_of_means([lead for _row, lead in compared if lead is not None])
    rows = [row | _in_family(row, lead, family) for row, lead in compared]
    levels = _levels([row["p_of_family"] for row in rows], n_untested)
    sized = [
        row | (_sizes(lead, level, row["freedom_of_family"], family) if lead is not None else {})
        for row, (_row, lead), level in zip(rows, compared, levels, strict=True)
    ]
    return adjusted_by_holm(sized, n_untested=n_untested)


def _in_family(
    row: Mapping[str, Any], lead: MeanOfCells | None, family: FamilyOfMeans | None
) -> dict[str, float]:
    """The family's degrees of freedom limit those of one test."""
    if lead is None or family is None:
        return {"freedom_of_family": row.get("freedom", nan), "p_of_family": row["p"]}
    freedom = family.freedom_of(lead)
    return {"freedom_of_family": freedom, "p_of_family": lead.p_with(freedom)}


def _levels(p: Sequence[float], n_untested: int) -> list[float]:
    known = np.asarray(p, dtype=float)
    n_others = [int((known >= each).sum()) + n_untested for each in known]
    return [ALPHA / max(1, n) for n in n_others]


def _sizes(
    one: MeanOfCells, level: float, freedom: float, family: FamilyOfMeans | None
) -> dict[str, float | int | None]:
    """Items or annotators for 80 % power, and the least differences shown now and with twice the
    items."""
    if not one.se > 0:
        return {}
    least: dict[str, float | int | None] = {
        "least_shown": least_distinguishable(one.se, freedom, alpha=level),
        "least_shown_of_twice": least_with_items(one, 2 * one.n_items, alpha=level, family=family),
    }
    if one.value == 0:
        return least
    purchase = purchase_to_distinguish(one, one.value, alpha=level, family=family)
    items, annotators = (
        int(count) if count <= MOST_TO_BUY else None
        for count in (purchase.items, purchase.annotators)
    )
    return {**least, "items_needed": items, "annotators_needed": annotators}


def adjusted_by_holm(
    rows: Sequence[dict[str, Any]], *, n_untested: int = 0
) -> tuple[dict[str, Any], ...]:
    adjusted = holm([row.get("p_of_family", row["p"]) for row in rows], n_untested=n_untested)
    return tuple(
        plain_values(row | {"p_adjusted": float(p)}) for row, p in zip(rows, adjusted, strict=True)
    )
