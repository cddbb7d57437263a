"""The stored samples of "A Closer Look" through our reading and weighting, beside people."""

import json
import math
from pathlib import Path

import pytest

from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.geval import GEval
from metrics.scorers.judges.geval_settings import GEvalSettings
from metrics.scorers.judges.readings import read_rating
from metrics.scorers.judges.replies import Reply
from metrics.scorers.judges.samples import Sample
from stats.correlation import correlation_at_level

pytestmark = pytest.mark.shared_data

PUBLISHED = {
    "naturalness": (0.393, 0.358),
    "coherence": (0.468, 0.391),
    "engagingness": (0.549, 0.513),
    "groundedness": (0.311, 0.566),
}
SCALES = {aspect: (0, 1) if aspect == "groundedness" else (1, 3) for aspect in PUBLISHED}
OFFLINE = Client(Endpoint(base_url="", model="gpt-3.5-turbo-0613"))


@pytest.fixture
def topical_chat(shared_data: Path) -> Path:
    return shared_data / "topical_chat_usr"


def judge(aspect: str, *, released: bool) -> GEval:
    low, high = SCALES[aspect]
    settings = GEvalSettings(
        aspect=aspect, criteria="", low=low, high=high, n=20, released=released
    )
    return GEval(settings, client=OFFLINE)


def samples(folder: Path, aspect: str) -> dict[int, Sample]:
    with (folder / "geval_gpt35_n20.jsonl").open() as lines:
        rows = [json.loads(line) for line in lines]
    return {
        row["item_id"]: Sample(tuple(Reply(text) for text in row["raw"]), 1, "gpt-3.5-turbo-0613")
        for row in rows
        if (row["mode"], row["dim"]) == ("geval", aspect)
    }


def correlations(folder: Path, aspect: str, *, released: bool) -> tuple[float, float]:
    scorer = judge(aspect, released=released)
    drawn = samples(folder, aspect)
    assert len(drawn) > 350
    assert {len(sample.replies) for sample in drawn.values()} == {20}
    items = {
        item["item_id"]: item for item in json.loads((folder / "topical_chat_usr.json").read_text())
    }
    human = [items[key]["scores"][aspect] for key in drawn]
    metric = [scorer.read(sample).value for sample in drawn.values()]
    dialogues = [items[key]["dialog_id"] for key in drawn]
    pooled = correlation_at_level(
        human, metric, level="pooled", coefficient="pearson", items=dialogues, n_resamples=2
    )
    tau = correlation_at_level(
        human, metric, level="item", coefficient="kendall", items=dialogues, n_resamples=2
    )
    return pooled.value, tau.value


@pytest.mark.parametrize("aspect", PUBLISHED)
def test_the_published_correlations_come_out_of_the_stored_replies(topical_chat, aspect):
    result = correlations(topical_chat, aspect, released=True)
    assert result == pytest.approx(PUBLISHED[aspect], abs=0.0006)


def test_reading_what_was_said_lifts_groundedness_and_little_else(topical_chat):
    read = {aspect: correlations(topical_chat, aspect, released=False) for aspect in PUBLISHED}
    assert read["groundedness"][0] > PUBLISHED["groundedness"][0] + 0.005
    assert read["groundedness"][1] > PUBLISHED["groundedness"][1] + 0.02
    for aspect in ("naturalness", "coherence", "engagingness"):
        assert read[aspect] == pytest.approx(PUBLISHED[aspect], abs=0.006)


def test_long_answers_are_read_as_their_authors_read_them_but_for_those_without_a_number(
    topical_chat,
):
    with (topical_chat / "geval_gpt35_long_samples.jsonl").open() as lines:
        rows = [json.loads(line) for line in lines]
    pairs = [
        (read_rating(text, row["dim"], *SCALES[row["dim"]]).value, theirs)
        for row in rows
        for text, theirs in zip(row["raw"], row["parsed"], strict=True)
    ]
    assert len(pairs) > 800
    assert all(math.floor(ours) == theirs for ours, theirs in pairs if not math.isnan(ours))
    assert [theirs for ours, theirs in pairs if math.isnan(ours)] == [0, 0]
