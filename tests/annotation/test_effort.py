"""The times and events of a submission: what is read of them, and what they contradict."""

from datetime import UTC, datetime, timedelta

import pytest

from annotation.evidence import Effort, read_events, server_times

START = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "events",
        {"input": 1},
        [1, "input", None, [], [1.0], ["input", 1.0]],
        [[-1, "input"], [True, "input"], [10**9, "input"], [float("nan"), "input"]],
        [[1.0, "unknown"], [1.0, ["input"]], [1.0, "paste"], [1.0, "paste", "much"]],
    ],
)
def test_events_that_nobody_can_read_are_left_out(content):
    assert read_events(content) == []


def test_events_are_read_row_by_row_and_bounded():
    assert read_events([[0.5, "input"], "noise", [2, "seen", 3, 8]]) == [
        (0.5, "input"),
        (2, "seen", 3, 8),
    ]
    assert len(read_events([[1.0, "blur"]] * 10_000)) == 300


def test_the_events_are_summed_up():
    events = read_events(
        [
            [1.5, "input"],
            [3.0, "hide"], [5.0, "show"], [6.0, "hide"], [6.5, "show"], [9.0, "hide"],
            [7.0, "paste", 30], [8.0, "paste", 12],
            [2.0, "seen", 2, 8], [8.0, "seen", 8, 8],
            [9.0, "typing", 40, 38, 180, 90],
        ]
    )  # fmt: skip
    effort = Effort(60, 60, 55, events=events)
    assert effort.first_input_seconds == 1.5
    assert effort.hidden_seconds == 2.5
    assert (effort.n_typed, effort.n_pasted) == (40, 42)
    assert effort.typing_ms == (180, 90)
    assert effort.seen == (8, 8)
    assert effort.signs == []


@pytest.mark.parametrize(
    ("sign", "events", "n_characters"),
    [
        ("no_input", [(1.0, "seen", 8, 8)], 0),
        ("untyped", [(1.0, "input"), (9.0, "typing", 9, 8, 200, 80)], 40),
        ("fast_typing", [(1.0, "input"), (9.0, "typing", 40, 39, 2, 1)], 40),
        ("unseen", [(1.0, "input"), (1.0, "seen", 3, 8)], 0),
        ("mostly_hidden", [(1.0, "input"), (1.0, "hide"), (40.0, "show")], 0),
    ],
)
def test_unusual_work_has_a_sign(sign, events, n_characters):
    assert Effort(60, 60, 55, events=events, n_characters=n_characters).signs == [sign]


def test_nothing_recorded_is_no_sign():
    assert Effort(60, 60, 55, n_characters=200).signs == []


def test_the_shorter_of_the_measured_and_the_reported_time_counts():
    assert Effort(900, 900, 20).seconds == 20
    assert Effort(1.5, 1.5, 95).seconds == 1.5
    assert Effort(95, 0.5, 95).seconds == 0.5
    assert Effort(40, 40, None).seconds == 40
    assert Effort(None, None, 30).seconds == 30


@pytest.mark.parametrize(
    ("effort", "is_contradictory"),
    [
        (Effort(60, 60, 60), False),
        (Effort(60, 60, 61.5), False),  # marketplaces report whole seconds
        (Effort(60, 60, 63), True),
        (Effort(60, 60, 30, reported_seconds=70), True),
        (Effort(95, 1, 95), True),
        (Effort(95, 1, 8), False),
        (Effort(120, 60, 120), False),  # two windows side by side
        (Effort(None, None, 95), False),  # of a file: nobody measured it
        (Effort(1, 1, 95, is_simulated=True), False),
        (Effort(1, 1, 1, is_simulated=True, has_unproved_mark=True), True),
    ],
)
def test_which_times_contradict_each_other(effort, is_contradictory):
    assert effort.is_contradictory is is_contradictory


def row(pk, accepted, submitted, annotator=1):
    return {
        "pk": pk,
        "annotator": annotator,
        "accepted_at": None if accepted is None else START + timedelta(seconds=accepted),
        "submitted_at": None if submitted is None else START + timedelta(seconds=submitted),
        "seconds": None if accepted is None else submitted - accepted,
    }


def test_the_server_measures_from_accepting_or_from_the_submission_before():
    rows = [
        row(3, 0, 97),  # in any order
        row(1, 0, 95),
        row(2, 0, 96),
        row(4, 100, 130),
        row(5, 0, 98, annotator=2),
        row(6, None, 99, annotator=2),
        row(7, 0, 200, annotator=2),
    ]
    assert server_times(rows) == {1: 95, 2: 1, 3: 1, 4: 30, 5: 98, 6: None, 7: 101}
