import math
import subprocess
import sys
from pathlib import Path

import pytest

from metrics.exceptions import FileUnfit
from metrics.file_scores import score_file
from metrics.score_files import append_scores, read_scores
from metrics.scorers.scorer import Score
from tests.codes import refused
from tests.metrics.counting import Counting, SwitchedOff

PROJECT = Path(__file__).resolve().parents[2]
ITEMS = (
    "item,system,response",
    'q1,a,"two\nlines"',
    "q1,b,three",
    '"q,2",a,',
    '"q,2",b,a longer one',
    "q3,a,three",
)


@pytest.fixture
def items(write):
    return write(*ITEMS, name="items.csv")


@pytest.fixture
def output(tmp_path):
    return tmp_path / "scores.csv"


def test_scores_are_in_the_order_of_the_responses_and_equal_texts_computed_once(items, output):
    scorer, steps = Counting(), []

    def reporter(what):
        def progress(things, total):
            for thing in things:
                steps.append((what, total))
                yield thing

        return progress

    score_file(path=items, scorers=[scorer], output=output, reporter=reporter)
    rows = [(row.item, row.system, row.metric, row.value) for row in read_scores(output)]
    assert rows[:4] == [
        ("q1", "a", "counting", 9),
        ("q1", "a", "counting_words", 2),
        ("q1", "b", "counting", 5),
        ("q1", "b", "counting_words", 1),
    ]
    names = [("q1", "a"), ("q1", "b"), ("q,2", "a"), ("q,2", "b"), ("q3", "a")]
    assert [row[:2] for row in rows[::2]] == names
    assert len(scorer.seen) == 4
    assert steps == [("counting", 5)] * 5


def test_a_file_that_was_cut_off_anywhere_is_completed_and_what_it_holds_not_computed(
    items, output
):
    score_file(path=items, scorers=[Counting()], output=output)
    content = output.read_bytes()
    for end in range(content.index(b"\n") + 1, len(content), 29):
        output.write_bytes(content[:end])
        there = {(row.item, row.system, row.metric) for row in read_scores(output)}
        again = Counting(batch_size=1)
        result = score_file(path=items, scorers=[again], output=output)
        assert output.read_bytes() == content
        held = {(item, system) for item, system, metric in there if metric == "counting_words"}
        assert not held & set(again.seen)
        assert sum(metric.n_scored for metric in result.outputs) == 8


@pytest.mark.parametrize(("n_batches", "n_rows", "n_left"), [(1, 0, 4), (2, 4, 2)])
def test_a_scorer_that_broke_off_leaves_what_it_had_and_lets_go_of_its_file(
    items, output, n_batches, n_rows, n_left
):
    failing, scorer = Counting(batch_size=2, fails_at_batch=n_batches), Counting()
    with pytest.raises(SwitchedOff):
        score_file(path=items, scorers=[failing], output=output)
    assert len(read_scores(output)) == n_rows
    score_file(path=items, scorers=[scorer], output=output)
    assert len(scorer.seen) == n_left
    assert len(read_scores(output)) == 10


def test_a_response_that_changed_is_scored_again(items, output, write):
    score_file(path=items, scorers=[Counting()], output=output)
    changed = write(*[line.replace("longer", "shorter") for line in ITEMS], name="items.csv")
    scorer = Counting()
    score_file(path=changed, scorers=[scorer], output=output)
    assert scorer.seen == [("q,2", "b")]
    assert [row.value for row in read_scores(output) if row.metric == "counting"][3] == 13


def test_scores_of_other_signatures_and_items_stay(items, output, write):
    class Later(Counting):
        signature = "counting|version:2"

    score_file(path=items, scorers=[Counting()], output=output)
    fewer = write(*ITEMS[:2], name="fewer.csv")
    score_file(path=fewer, scorers=[Later()], output=output)
    rows = read_scores(output)
    assert len(rows) == 12
    assert [row.signature for row in rows[:2]] == ["counting|version:2"] * 2


@pytest.mark.parametrize(
    ("score", "reason"),
    [(Score(math.nan, "E1\nE2"), "E1 E2"), (Score(-math.inf), "-inf")],  # on one line
)
def test_an_undefined_or_infinite_score_has_its_reason(items, output, score, reason):
    class Same(Counting):
        def measure(self, examples):
            return [dict.fromkeys(self.outputs, score) for _ in examples]

    result = score_file(path=items, scorers=[Same()], output=output)
    [stored] = {row.reason for row in read_scores(output)}
    assert stored.endswith(reason)
    assert result.record()["n_undefined"] == 10


def test_scores_that_cannot_be_added_are_reported_with_their_file(output):
    output.mkdir()
    with refused(FileUnfit, "unwritable", path=output):
        append_scores(output, [])


def test_what_was_undefined_is_scored_anew_if_one_asks_for_it(items, output):
    class Recovered(Counting):
        def measure(self, examples):
            self.seen += [(example.item, example.system) for example in examples]
            return [dict.fromkeys(self.outputs, Score(7)) for _ in examples]

    score_file(path=items, scorers=[Counting()], output=output)
    scorer = Recovered()
    score_file(path=items, scorers=[scorer], output=output)
    assert scorer.seen == []
    score_file(path=items, scorers=[scorer], output=output, retry_undefined=True)
    assert scorer.seen == [("q,2", "a")]
    assert {
        row.value for row in read_scores(output) if row.item == "q,2" and row.system == "a"
    } == {7}


class Nosy(Counting):
    """It tries, while it scores, to score into the same file."""

    def measure(self, examples):
        with refused(FileUnfit, "busy"):
            score_file(path=self.items, scorers=[Counting()], output=self.output)
        return super().measure(examples)


def test_only_one_at_a_time_scores_into_a_file(items, output):
    scorer = Nosy()
    scorer.items, scorer.output = items, output
    score_file(path=items, scorers=[scorer], output=output)
    assert len(read_scores(output)) == 10
    assert sorted(path.name for path in output.parent.iterdir()) == ["items.csv", "scores.csv"]


HOLD = """
import sys, time
from pathlib import Path
from metrics.score_files import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_keeps_nobody_from_its_file(items, output):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, output], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with refused(FileUnfit, "busy"):
        score_file(path=items, scorers=[Counting()], output=output)
    holder.kill()
    holder.communicate()
    score_file(path=items, scorers=[Counting()], output=output)
    assert len(read_scores(output)) == 10
