from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command

from annotation import evidence
from annotation.exceptions import AnnotationError, ImportRefused, StudyUnfit
from annotation.flags import (
    count_judgments_change,
    flag_submissions,
    flags_of,
    list_evidence,
    store_evidence,
    unflag_submissions,
)
from annotation.models import Judgment, Study, Submission, SubmissionEvidence
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
from tests.annotation.importing import command_output, numbers_in, write_file
from tests.annotation.studies import rate, rated_study, rating_study
from tests.codes import refused
from tests.metrics.counting import Counting

pytestmark = pytest.mark.django_db

FLAG = ("flag_submissions", "rated")


def flagged() -> set[tuple[str, str, int, str]]:
    fields = ("annotator__pseudonym", "item__key", "round", "flag_reason")
    return set(Submission.objects.flagged().values_list(*fields))


def test_a_flag_says_why_and_can_be_taken_away():
    one = Submission.objects.filter(pk__in=Submission.objects.of(rated_study())[:1])
    assert flag_submissions(submissions=one, reason=" too fast ") == 1
    assert [reason for *_, reason in flagged()] == ["too fast"]
    assert unflag_submissions(submissions=Submission.objects.all()) == 1
    assert not flagged()
    for reason in ("", "  ", "x" * 201):
        with refused(AnnotationError, "reason_length"):
            flag_submissions(submissions=one, reason=reason)
    assert not flagged()


def test_all_of_an_annotator_is_flagged_in_that_study_alone():
    rated_study()
    rated_study("other")
    assert numbers_in(command_output(*FLAG, "--annotator", "Ann", "--reason", "too fast")) == [3]
    assert flagged() == {("Ann", f"d{index}", 1, "too fast") for index in range(3)}
    assert Submission.objects.flagged().filter(item__study__slug="rated").count() == 3


def test_an_item_and_a_round_bound_what_is_flagged():
    rate(rated_study(), "Ann", "d0", {"alpha": 1}, round=2)
    command_output(*FLAG, "--item", "d0", "--round", "1", "--reason", "broken")
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1), ("Bob", "d0", 1)}
    assert numbers_in(command_output(*FLAG, "--annotator", "Bob", "--unflag")) == [1]
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1)}


@pytest.mark.parametrize(
    ("bounds", "code", "named"),
    [
        ([], "no_filter", "--annotator"),
        (["--annotator", "Zoe"], "no_submission", "'Zoe'"),
        (["--annotator", "Ann", "--round", "2"], "no_submission", "'2'"),
    ],
)
def test_a_flag_without_bounds_is_refused(bounds, code, named):
    rated_study()
    with refused(StudyUnfit, code, naming=(named,)):
        command_output(*FLAG, *bounds, "--reason", "too fast")
    assert not flagged()


ROWS = "item,candidate,annotator,value\nd0,alpha,Ann,3\nd0,beta,Ann,4\nd1,alpha,Bob,5\n"


def versions(study: Study) -> tuple[int, int]:
    study.refresh_from_db()
    return study.judgments_version, study.scores_version


def test_an_import_counts_once_and_the_same_again_not_at_all(tmp_path):
    judgments = write_file(tmp_path / "judgments.csv", ROWS)
    call_command("import_judgments", judgments, study="wits", scale=(1, 5))
    study = Study.objects.named("wits")
    assert versions(study) == (1, 0)
    # Nor does one that is refused count.
    judgments.write_text(ROWS + "d1,alpha,Cyd,9\n")
    with refused(ImportRefused, "off_scale", line=5):
        call_command("import_judgments", judgments, study="wits")
    judgments.write_text(ROWS)
    call_command("import_judgments", judgments, study="wits")
    assert versions(study) == (1, 0)
    judgments.write_text(ROWS + "d1,alpha,Cyd,4\n")
    call_command("import_judgments", judgments, study="wits")
    assert versions(study) == (2, 0)


def test_a_flag_and_its_removal_count():
    study, other = rated_study(), rated_study("other")
    before, others = versions(study), versions(other)
    flag_submissions(submissions=Submission.objects.of(study), reason="too fast")
    assert versions(study) == (before[0] + 1, 0)
    unflag_submissions(submissions=Submission.objects.of(study))
    assert versions(study) == (before[0] + 2, 0)
    # Nothing is flagged any more.
    unflag_submissions(submissions=Submission.objects.of(study))
    assert versions(study) == (before[0] + 2, 0)
    assert versions(other) == others


def test_scores_count_apart_from_judgments():
    study = rated_study()
    n_judgments = versions(study)[0]
    write_scores(study=study, metric="nll", signature="nll|v:1", values={("d0", "alpha"): 1.0})
    assert versions(study) == (n_judgments, 1)
    score_study(study=study, scorer=Counting())
    after = versions(study)
    assert after > (n_judgments, 1)
    # All is scored: nothing changes.
    score_study(study=study, scorer=Counting())
    assert versions(study) == after


SYSTEMS = ("a", "b", "c", "d")


@pytest.fixture
def study():
    """Ann and Bob agree on two items and take their time."""
    study = rating_study(n_items=2, systems=SYSTEMS)
    for person in ("Ann", "Bob"):
        for item in ("d0", "d1"):
            add(study, person, item, (10, 30, 60, 90), seconds=120)
    return study


def add(study, person, item, values, *, seconds, **fields):
    submission = rate(study, person, item, dict(zip(SYSTEMS, values, strict=True)))
    Submission.objects.filter(pk=submission.pk).update(seconds=seconds, **fields)
    study.refresh_from_db()
    return submission.pk


def flags(study, submission):
    """As they are stored."""
    store_evidence(study)
    return flags_of(Submission.objects.select_related("evidence__version").get(pk=submission))


def names(study, submission):
    return [flag.name for flag in flags(study, submission)]


def test_careful_or_lone_work_has_no_flag(study):
    for submission in Submission.objects.all():
        assert names(study, submission.pk) == []
    other = rating_study("lone", systems=SYSTEMS)
    assert names(other, add(other, "Ann", "d0", (10, 30, 60, 90), seconds=5)) == []


def test_a_submission_far_faster_than_the_median_is_flagged_with_both_times(study):
    [flag] = flags(study, add(study, "Eve", "d0", (10, 30, 60, 90), seconds=31))
    assert (flag.name, flag.value, flag.typical) == (evidence.FAST, 31, 120)
    assert flag.n_careful_hit == 0
    assert flag.n_careful >= 4
    # The time in sight counts where it was measured.
    idle = add(study, "Fay", "d0", (10, 30, 60, 90), seconds=900, active_seconds=20)
    assert names(study, idle) == [evidence.FAST]


def test_answers_unlike_those_of_others_are_flagged(study):
    flat = add(study, "Eve", "d0", (50, 50, 50, 50), seconds=120)
    [flag] = [one for one in flags(study, flat) if one.name == evidence.SAME]
    assert (flag.value, flag.typical) == (1, 0.25)
    Submission.objects.filter(pk=flat).delete()
    pasted = add(study, "Gus", "d0", (10, 30, 60, 90), seconds=120, pasted=True)
    assert names(study, pasted) == [evidence.PASTED]
    Submission.objects.filter(pk=pasted).delete()
    [flag] = flags(study, add(study, "Fay", "d0", (90, 60, 30, 10), seconds=120))
    assert flag.name == evidence.FAR
    assert flag.value == pytest.approx((80 + 30 + 30 + 80) / 400)


def test_a_later_version_replaces_the_one_before(study):
    first = store_evidence(study)
    add(study, "Eve", "d0", (50, 50, 50, 50), seconds=31)
    count_judgments_change(study_ids=[study.pk])
    second = store_evidence(study)
    assert (first.number, second.number) == (1, 2)
    assert list_evidence(study).get() == second
    assert (second.facts["n_submissions"], second.facts["typical_seconds"]) == (5, 120)
    assert SubmissionEvidence.objects.filter(is_flagged=True).count() == 1
    # What was measured of an earlier state does not replace a later one.
    later = second.facts | {"judgments_version": study.judgments_version + 2}
    list_evidence(study).update(facts=later)
    assert store_evidence(study).number == 2


def test_judgments_of_an_item_as_a_whole_are_compared_within_the_item():
    study = rating_study(n_items=2, systems=SYSTEMS)
    question = study.questions.get()
    for annotator in ("Ann", "Bob"):
        for item, value in (("d0", 0), ("d1", 100)):
            submission = rate(study, annotator, item, {})
            Judgment.objects.create(submission=submission, question=question, value=value)
    store_evidence(study)
    assert set(SubmissionEvidence.objects.values_list("distance", flat=True)) == {0}


START = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [1, "input", None, [], [1.0], ["input", 1.0]],
        [[-1, "input"], [True, "input"], [10**9, "input"], [float("nan"), "input"]],
        [[1.0, "unknown"], [1.0, ["input"]], [1.0, "paste"], [1.0, "paste", "much"]],
    ],
)
def test_events_are_bounded_and_those_that_nobody_can_read_left_out(content):
    assert evidence.read_events(content) == []
    expected = [(0.5, "input"), (2, "seen", 3, 8)]
    assert evidence.read_events([[0.5, "input"], "noise", [2, "seen", 3, 8]]) == expected
    assert len(evidence.read_events([[1.0, "blur"]] * 10_000)) == 300


def test_the_events_are_summed_up():
    events = evidence.read_events(
        [
            [1.5, "input"],
            [3.0, "hide"], [5.0, "show"], [6.0, "hide"], [6.5, "show"], [9.0, "hide"],
            [7.0, "paste", 30], [8.0, "paste", 12],
            [2.0, "seen", 2, 8], [8.0, "seen", 8, 8],
            [9.0, "typing", 40, 38, 180, 90],
        ]
    )  # fmt: skip
    effort = evidence.Effort(60, 60, 55, events=events)
    assert effort.first_input_seconds == 1.5
    assert effort.hidden_seconds == 2.5
    assert (effort.n_typed, effort.n_pasted) == (40, 42)
    assert effort.typing_ms == (180, 90)
    assert effort.seen == (8, 8)
    assert effort.signs == []


@pytest.mark.parametrize(
    ("signs", "events", "n_characters"),
    [
        ([], [], 200),
        (["no_input"], [(1.0, "seen", 8, 8)], 0),
        (["untyped"], [(1.0, "input"), (9.0, "typing", 9, 8, 200, 80)], 40),
        (["fast_typing"], [(1.0, "input"), (9.0, "typing", 40, 39, 2, 1)], 40),
        (["unseen"], [(1.0, "input"), (1.0, "seen", 3, 8)], 0),
        (["mostly_hidden"], [(1.0, "input"), (1.0, "hide"), (40.0, "show")], 0),
    ],
)
def test_unusual_work_alone_has_a_sign(signs, events, n_characters):
    assert evidence.Effort(60, 60, 55, events=events, n_characters=n_characters).signs == signs


def test_the_shorter_of_the_measured_and_the_reported_time_counts():
    assert evidence.Effort(900, 900, 20).seconds == 20
    assert evidence.Effort(1.5, 1.5, 95).seconds == 1.5
    assert evidence.Effort(95, 0.5, 95).seconds == 0.5
    assert evidence.Effort(40, 40, None).seconds == 40
    assert evidence.Effort(None, None, 30).seconds == 30


@pytest.mark.parametrize(
    ("effort", "is_contradictory"),
    [
        (evidence.Effort(60, 60, 60), False),
        (evidence.Effort(60, 60, 61.5), False),  # marketplaces report whole seconds
        (evidence.Effort(60, 60, 63), True),
        (evidence.Effort(60, 60, 30, reported_seconds=70), True),
        (evidence.Effort(95, 1, 95), True),
        (evidence.Effort(95, 1, 8), False),
        (evidence.Effort(120, 60, 120), False),  # two windows side by side
        (evidence.Effort(None, None, 95), False),  # of a file: nobody measured it
        (evidence.Effort(1, 1, 95, is_simulated=True), False),
        (evidence.Effort(1, 1, 1, is_simulated=True, has_unproved_mark=True), True),
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
    assert evidence.server_times(rows) == {1: 95, 2: 1, 3: 1, 4: 30, 5: 98, 6: None, 7: 101}


def test_the_effort_of_one_submission_needs_only_the_one_before():
    study = rating_study()
    for item in study.items.all():
        for person in ("Ann", "Bob"):
            rate(study, person, item.key, {"alpha": 50})
    submissions = Submission.objects.order_by("pk")
    for position, one in enumerate(submissions):
        one.accepted_at, one.seconds = START, 60.0 + position
        one.submitted_at = START + timedelta(seconds=one.seconds) if position else None
        one.save()
    efforts = evidence.measured_efforts(study)
    assert len({effort.server_seconds for effort in efforts.values()}) > 2
    for one in submissions:
        keys = evidence.with_preceding(one)
        assert len(keys) <= 2
        assert evidence.measured_efforts(study, pk__in=keys)[one.pk] == efforts[one.pk]
