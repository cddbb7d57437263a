"""UniEval's correlations with people on Topical-Chat, to the six decimals it publishes."""

import json
from pathlib import Path

import pandas as pd
import pytest

from stats.correlation import correlation_at_level

pytestmark = pytest.mark.shared_data
DIMENSIONS = ["naturalness", "coherence", "engagingness", "groundedness", "understandability"]


@pytest.fixture
def topical_chat(shared_data: Path) -> tuple[pd.DataFrame, dict[str, list[float]]]:
    folder = shared_data / "topical_chat_usr"
    rows = json.loads((folder / "topical_chat_usr.json").read_text())
    published = json.loads((folder / "unieval_published.json").read_text())["published"]
    return pd.DataFrame(rows), published


@pytest.mark.parametrize("dimension", [*DIMENSIONS, "overall"])
def test_pooled_correlations_are_the_published_ones(topical_chat, dimension):
    frame, published = topical_chat
    human = [row[dimension] for row in frame["scores"]]
    metric = [row[dimension] for row in frame["unieval"]]
    for coefficient, expected in zip(
        ("pearson", "spearman", "kendall"), published[dimension], strict=True
    ):
        result = correlation_at_level(
            human, metric, level="pooled", coefficient=coefficient, n_resamples=0
        )
        assert round(result.value, 6) == expected
