"""Published correlations: table 1 of LMStyle, and UniEval on Topical-Chat."""

import json
from pathlib import Path

import pandas as pd
import pytest

from stats.correlation import correlation_at_level

METRICS = ["NLL", "ChatGPT", "BLEU", "SBERT", "StyleStrength"]
SYSTEMS = ["vicuna13b", "vicuna7b", "llama7b", "llama13b"]


def cells(folder: Path) -> pd.DataFrame:
    """One row for each approved HIT and system: human values beside metric scores."""
    batch = pd.read_csv(folder / "mturk_batch_results.csv")
    approved = batch[batch["ApprovalTime"].notna()]
    answers = pd.concat(
        pd.DataFrame(
            {
                "hit": approved.index,
                "dataset": approved["Input.dataset"],
                "task": approved["Input.task"],
                "speaker": approved["Input.Speaker"].str.strip(),
                "model": system,
                "Appropriateness": approved[f"Answer.Appropriateness_{system}"],
                "Style": approved[f"Answer.Style_{system}"],
            }
        )
        for system in SYSTEMS
    )
    scores = pd.read_csv(folder / "metric_scores.csv")
    scores["speaker"] = scores["input"].str.strip()
    key = ["dataset", "task", "speaker", "model"]
    return answers.merge(scores[key + METRICS], how="left", on=key, validate="many_to_one")


@pytest.fixture
def lmstyle(shared_data: Path) -> tuple[pd.DataFrame, dict]:
    folder = shared_data / "lmstyle"
    return cells(folder), json.loads((folder / "table1.json").read_text())


def human(frame: pd.DataFrame, metric: str) -> pd.Series:
    return frame["Style" if metric == "StyleStrength" else "Appropriateness"]


@pytest.mark.parametrize("coefficient", ["pearson", "kendall", "spearman"])
@pytest.mark.parametrize("metric", METRICS)
def test_the_pooled_correlations_are_reproduced(lmstyle, metric, coefficient):
    frame, table = lmstyle
    result = correlation_at_level(
        human(frame, metric), frame[metric], level="pooled", coefficient=coefficient
    )
    assert result.n_rows == table["pooled"][metric]["n"]
    assert result.value == pytest.approx(table["pooled"][metric][coefficient], abs=1e-9)


pytestmark = pytest.mark.shared_data
