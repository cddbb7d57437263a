"""Published numbers beside the same numbers computed here, from the authors' data: a table with
the level, the coefficient, what the human value is, and a signature for each.

No study, no database, no marketplace: the files alone. What of a folder is missing is left out,
and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import nan
from pathlib import Path

from annotation.readers.drafts import StudyDraft
from replications.lmstyle import BATCH, QUESTION_OF, SCORES, table_1, table_3
from replications.published_data import DatasetIncomplete, Published
from replications.rated_dialogues import read_dstc9, read_topical_chat
from retrieval.audit.collections import audit_collection
from stats.correlation import Coefficient, Level, correlation_at_level
from stats.libraries import np, pd
from validation.documents.terms import plain_signature

# Table 1 of the LMStyle Benchmark, x 100, by metric and coefficient; the last is printed as the
# mean of the four.
STYLES = ("Formal", "Informal", "Positive", "Negative", "Overall")
_TABLE_1 = {
    ("StyleStrength", "pearson"): (36.6, 22.5, 16.6, 32.1, 27.0),
    ("BLEU", "pearson"): (-11.4, 1.5, 11.4, 5.1, 1.65),
    ("SBERT", "pearson"): (11.3, 8.2, 20.0, 28.7, 17.1),
    ("ChatGPT", "pearson"): (27.0, 21.3, 28.9, 15.2, 23.1),
    ("NLL", "pearson"): (34.2, 11.6, 27.5, 42.1, 28.9),
    ("StyleStrength", "kendall"): (32.2, 16.8, 17.8, 19.1, 21.5),
    ("BLEU", "kendall"): (-6.1, 4.9, 7.8, 3.1, 2.4),
    ("SBERT", "kendall"): (7.3, 6.2, 20.2, 26.4, 15.0),
    ("ChatGPT", "kendall"): (20.7, 17.4, 26.1, 16.4, 20.2),
    ("NLL", "kendall"): (25.3, 19.0, 28.3, 34.1, 26.7),
}
LMSTYLE_TABLE_1: Mapping[tuple[str, str], Mapping[str, float]] = {
    key: dict(zip(STYLES, values, strict=True)) for key, values in _TABLE_1.items()
}

# UniEval on Topical-Chat over 360 responses: Pearson, Spearman, Kendall, as its repository has
# them (reproduce/).
UNIEVAL: Mapping[str, tuple[float, float, float]] = {
    "naturalness": (0.443666, 0.513986, 0.373973),
    "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.55651, 0.604739, 0.455941),
    "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741),
    "overall": (0.632796, 0.662583, 0.487272),
}

# What retrieval/audit/claims.py has of Table 2 of Fashion-AlterEval, in words.
ALTEREVAL: Mapping[str, str] = {
    "assessed": "targets assessed",
    "with_relevant": "targets with an alternative",
    "mean_relevant": "alternatives a target",
    "judged_per_topic": "judgments a target",
}


DIGEST_CHARACTERS = 12
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """`published` is NaN if nothing was published; `ratings_mean` is the mean of the human values,
    and `raters` says what one rater is."""

    study: str
    quantity: str
    level: str
    coefficient: str
    value: float
    published: float
    decimals: int
    ratings_mean: float
    raters: str
    n: int
    signature: str

    @property
    def is_equal(self) -> bool | None:
        if np.isnan(self.published):
            return None
        return round(self.value, self.decimals) == round(self.published, self.decimals)


@dataclass(frozen=True)
class Gallery:
    rows: tuple[Reproduced, ...]
    # Files that were not found; their numbers are left out.
    missing: tuple[str, ...]


def gallery(folder: Path) -> Gallery:
    """Numbers from each data set's subfolder. Raises DatasetIncomplete if there is none."""
    rows: list[Reproduced] = []
    missing: list[str] = []
    for names, read in SOURCES.items():
        paths = [folder / name for name in names]
        lacking = [name for name, path in zip(names, paths, strict=True) if not path.is_file()]
        missing += lacking
        if not lacking:
            rows += read(paths)
    if not rows:
        wanted = ", ".join(name for names in SOURCES for name in names)
        raise DatasetIncomplete(f"{folder} has none of the data sets: {wanted}.")
    return Gallery(tuple(rows), tuple(missing))


def _signed(paths: Sequence[Path], **fields: object) -> str:
    content = sha256(b"".join(sha256(path.read_bytes()).digest() for path in paths)).hexdigest()
    return plain_signature("published", **fields, input=content[:DIGEST_CHARACTERS])


def _lmstyle(paths: Sequence[Path]) -> Iterator[Reproduced]:
    """Table 1: the mean over items of the correlation over four systems, by style."""
    folder = paths[0].parent
    means = pd.DataFrame(table_3(folder))
    for cell in table_1(folder):
        metric, style, coefficient = cell["metric"], cell["by"], cell["coefficient"]
        question = QUESTION_OF[metric]
        asked = means[means["question"] == question]
        asked = asked if style == "Overall" else asked[asked["by"] == style]
        yield Reproduced(
            study="LMStyle, Table 1",
            quantity=f"{metric} and {question.lower()}, {style}",
            level="item",
            coefficient=coefficient,
            value=cell["value"],
            published=LMSTYLE_TABLE_1.get((metric, coefficient), {}).get(style, nan),
            decimals=1,
            ratings_mean=float(np.average(asked["value"], weights=asked["n"])),
            raters="one approved rating",
            n=cell["n_used"],
            signature=_signed(
                paths, metric=metric, question=question, condition=style, level="item",
                coefficient=coefficient, scale=100, undefined="drop",
            ),
        )  # fmt: skip


def _topical_chat(paths: Sequence[Path]) -> Iterator[Reproduced]:
    published = read_topical_chat(paths[0])
    for question, numbers in UNIEVAL.items():
        cells = _cells(published, question, f"unieval_{question}")
        for coefficient, number in zip(COEFFICIENTS, numbers, strict=True):
            row = partial(_of_cells, cells, coefficient, "Topical-Chat-USR", "mean of 3 raters")
            quantity = f"UniEval and {question}"
            yield row(paths, quantity, level="pooled", published=number, decimals=3)
            if coefficient == "kendall":
                yield row(paths, quantity, level="item", published=nan, decimals=3)


def _dstc9(paths: Sequence[Path]) -> Iterator[Reproduced]:
    cells = _cells(read_dstc9(paths[0], paths[1]), "overall", "flow_score")
    levels: tuple[Level, ...] = ("system", "pooled")
    for level in levels:
        row = partial(_of_cells, cells, "pearson", "DSTC9 interactive", "mean of about 3 raters")
        yield row(paths, "FLOW score and overall", level=level, published=nan, decimals=3)


def _of_cells(
    cells: pd.DataFrame,
    coefficient: Coefficient,
    study: str,
    raters: str,
    paths: Sequence[Path],
    quantity: str,
    *,
    level: Level,
    published: float,
    decimals: int,
) -> Reproduced:
    result = correlation_at_level(
        cells["value"], cells["score"], level=level, coefficient=coefficient,
        items=cells["item"], systems=cells["system"], n_resamples=0,
    )  # fmt: skip
    return Reproduced(
        study=study,
        quantity=quantity,
        level=level,
        coefficient=coefficient,
        value=result.value,
        published=published,
        decimals=decimals,
        ratings_mean=float(cells["value"].mean()),
        raters=raters,
        n={"pooled": len(cells), "system": cells["system"].nunique()}.get(level, result.n_used),
        signature=_signed(
            paths, quantity=quantity.replace(" ", "_"), level=level, coefficient=coefficient,
            undefined="drop",
        ),
    )  # fmt: skip


def _cells(published: Published, question: str, metric: str) -> pd.DataFrame:
    """One row per candidate: its mean rating and its score, turned so that higher is better."""
    [scores] = [each for each in published.scores if each.metric == metric]
    sign = 1 if scores.higher_is_better else -1
    ratings = _ratings(published.study, question)
    systems = {
        (item.key, candidate.key): candidate.system
        for item in published.study.items
        for candidate in item.candidates
    }
    means = ratings.groupby(["item", "candidate"], sort=False)["value"].mean().reset_index()
    keys = list(zip(means["item"], means["candidate"], strict=True))
    return means.assign(
        score=[sign * scores.values.get(key, nan) for key in keys],
        system=[systems[key] for key in keys],
    ).dropna(subset=["score"])


def _ratings(study: StudyDraft, question: str) -> pd.DataFrame:
    rows = [
        {"item": one.item, "candidate": judgment.candidate, "value": judgment.value}
        for one in study.submissions
        for judgment in one.judgments
        if judgment.question == question
    ]
    return pd.DataFrame(rows)


def _altereval(paths: Sequence[Path]) -> Iterator[Reproduced]:
    """Table 2 of Fashion-AlterEval, whose mean counts the target itself as relevant."""
    for path in paths:
        [audited] = audit_collection([path]).files
        for claim in audited.claims:
            if claim.name not in ALTEREVAL:
                continue
            yield Reproduced(
                study=f"Fashion-AlterEval, {path.stem.rpartition('_')[2]}",
                quantity=ALTEREVAL[claim.name] + (f" ({claim.explanation})" * (not claim.holds)),
                level="target",
                coefficient="mean" if claim.name == "mean_relevant" else "count",
                value=claim.counted,
                published=claim.claimed,
                decimals=1 if claim.name == "mean_relevant" else 0,
                ratings_mean=nan,
                raters="one assessor",
                n=audited.n_rows,
                signature=_signed([path], claim=claim.name),
            )


Reader = Callable[[Sequence[Path]], Iterator[Reproduced]]
SOURCES: Mapping[tuple[str, ...], Reader] = {
    (f"lmstyle/{BATCH}", f"lmstyle/{SCORES}"): _lmstyle,
    ("topical_chat_usr/topical_chat_usr.json",): _topical_chat,
    ("dstc9/dialogs.jsonl.gz", "dstc9/ratings.csv"): _dstc9,
    ("altereval/judged_targets_shoes.csv",): _altereval,
    ("altereval/judged_targets_dresses.csv",): _altereval,
}
