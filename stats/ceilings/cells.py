"""The cells that several annotators rated, each one's ratings set against the others'."""

from __future__ import annotations

from math import nan

import numpy as np

from stats.arguments import Column, Floats, coded_in_order, complete_numbers, require_same_length
from stats.groups import sum_by
from stats.libraries import pd


def cells_of_several(
    items: Column, systems: Column, annotators: Column, values: Column
) -> pd.DataFrame:
    """One rating of each annotator for each cell that has several."""
    require_same_length(items=items, systems=systems, annotators=annotators, values=values)
    named = {"items": items, "systems": systems, "annotators": annotators}
    codes = {name: coded_in_order(column, name) for name, column in named.items()}
    frame = pd.DataFrame({name: code for name, (code, _) in codes.items()})
    frame["value"] = complete_numbers(values, "values")
    means: pd.DataFrame = frame.groupby(list(named), as_index=False)[["value"]].mean()
    n_systems = max(1, len(codes["systems"][1]))
    means["cell"] = pd.factorize(means["items"] * n_systems + means["systems"])[0]
    means["item_name"] = pd.Index(codes["items"][1], tupleize_cols=False).take(
        means["items"].to_numpy()
    )
    several = means.groupby("cell")["value"].transform("size") > 1
    means = means[several].reset_index(drop=True)
    means["cell"] = pd.factorize(means["cell"])[0]
    means["annotator"] = pd.Index(codes["annotators"][1], tupleize_cols=False).take(
        means["annotators"].to_numpy()
    )
    means["items"] = pd.factorize(means["items"], sort=True)[0]
    return means


def random_halves(cells: pd.DataFrame, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The cells' means in two random halves of the same size; whole annotators go into a half as
    far as they can, for how severe somebody is moves all candidates of an item alike."""
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    annotator = cells["annotators"].to_numpy()
    # cells come in order, so that this orders the annotators within each
    order = np.argsort(cell + rng.random(int(annotator.max(initial=-1)) + 1)[annotator])
    size = np.bincount(cell)
    position = np.arange(len(cells)) - np.repeat(np.cumsum(size) - size, size)
    half = np.repeat(size // 2, size)
    first, second = order[position < half], order[(position >= half) & (position < 2 * half)]
    means = [sum_by(cell[side], value[side], len(size)) / (size // 2) for side in (first, second)]
    return means[0], means[1]


def cell_means(cells: pd.DataFrame) -> Floats:
    """Each cell's mean."""
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    size = np.bincount(cell)
    return np.asarray(sum_by(cell, value, len(size)) / size)


def growth(cells: pd.DataFrame) -> float:
    """How many times as many ratings there are as in a half."""
    size = np.bincount(cells["cell"].to_numpy())
    return float(size.mean() / (size // 2).mean()) if len(size) else nan


def means_of_others(cells: pd.DataFrame) -> Floats:
    """For each rating, the mean of its cell's other ratings."""
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    n_cells = int(cell.max(initial=-1)) + 1
    size, total = np.bincount(cell, minlength=n_cells), sum_by(cell, value, n_cells)
    return np.asarray((total[cell] - value) / (size[cell] - 1))
