"""Pay per hour, from what a page holds and from what was measured."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from annotation.models import Annotator, Submission
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion, Reason, Time
from annotation.protocols.versions import save_draft
from annotation.versions import count_judgments_change
from hits.texts import study_texts
from hits.wages import (
    QUICK,
    SLOW,
    TYPICAL,
    Duration,
    PageSize,
    duration_of,
    measured_duration,
    n_implausible,
    page_size,
    reward_for,
    wage_of,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_page_takes_its_opening_its_words_and_its_answers():
    page = PageSize(
        n_words=238, n_instruction_words=150, n_answers=8, n_ticks=0, n_typed_characters=0
    )
    # 10 s to open, a minute to read, 8 answers of 6 s.
    assert page.seconds(TYPICAL) == pytest.approx(10 + 60 + 48)
    # Who is slow reads the instructions as well: 388 words at 150 a minute, 8 answers of 10 s.
    assert page.seconds(SLOW) == pytest.approx(20 + 60 * 388 / 150 + 80)
    assert page.seconds(QUICK) == pytest.approx(5 + 60 * 238 / 350 + 24)
    page = PageSize(
        n_words=0, n_instruction_words=0, n_answers=0, n_ticks=5, n_typed_characters=100
    )
    assert page.seconds(TYPICAL) == pytest.approx(10 + 5 * 2 + 30)


def test_a_page_is_that_of_the_protocol_that_a_launch_would_freeze(study):
    before = page_size(study_texts(study))
    # Contexts "Context 0" are 9 characters, "alpha on d0" 11 and "beta on d0" 10; the wording.
    n_characters = 9 + 11 + 10 + len(study.questions.get().wording)
    assert before.n_words == pytest.approx(n_characters / 6)
    questions = (
        ProtocolQuestion("fit", "line", "Fit?", low_label="badly", high_label="well"),
        ProtocolQuestion("polite", "yes_no", "Polite?"),
        ProtocolQuestion("pace", "likert", "Pace?", about="item", points=("slow", "fast")),
        ProtocolQuestion("best", "preference", "Best?"),
        ProtocolQuestion("ends", "best_worst", "Ends?"),
        ProtocolQuestion("will_do", "selection", "Will do?"),
    )
    save_draft(
        study=study,
        document=ProtocolDocument(
            questions,
            title="Replies",
            instructions="Read. " * 50,
            reason=Reason(rule="page", least_length=40),
        ),
    )
    study.refresh_from_db()
    page = page_size(study_texts(study))
    # Of two responses: two lines, two times yes or no; one Likert point of the item, one best,
    # and a best with a worst; and two products to tick or to leave.
    assert (before.n_answers, page.n_answers, page.n_ticks) == (2, 4 + 1 + 1 + 2, 2)
    assert (page.n_instruction_words, page.n_typed_characters) == (50, 40)
    n_characters = sum(len(each.wording) for each in questions)
    assert page.n_words == pytest.approx((9 + 11 + 10 + n_characters) / 6)
    assert duration_of(study).typical_seconds == pytest.approx(page.seconds(TYPICAL))


def test_what_the_protocol_estimates_is_the_one_estimate(study):
    by_length = duration_of(study)
    assert not by_length.is_of_protocol
    line = ProtocolQuestion("fit", "line", "Fit?", low_label="badly", high_label="well")
    document = ProtocolDocument(questions=(line,), title="Replies", time=Time(estimate_seconds=300))
    save_draft(study=study, document=document)
    study.refresh_from_db()
    duration = duration_of(study)
    assert duration.is_of_protocol
    assert duration.typical_seconds == pytest.approx(300)
    page = page_size(study_texts(study))
    assert duration.quick_seconds == pytest.approx(
        300 * page.seconds(QUICK) / page.seconds(TYPICAL)
    )
    assert duration.slow_seconds == pytest.approx(300 * page.seconds(SLOW) / page.seconds(TYPICAL))


def test_a_reward_is_an_hourly_wage_and_back():
    duration = Duration(typical_seconds=160, quick_seconds=120, slow_seconds=204)
    wage = wage_of(Decimal("0.56"), duration)
    # 0.56 x 3600 / 160, / 204 and / 120.
    assert (wage.typical_usd, wage.least_usd, wage.most_usd) == (
        Decimal("12.60"),
        Decimal("9.88"),
        Decimal("16.80"),
    )
    # 12 x 160 / 3600 = 0.5333, up to the cent.
    assert reward_for(Decimal(12), duration) == Decimal("0.54")
    assert wage_of(Decimal("0.54"), duration).typical_usd >= 12


def add_submissions(study, *seconds, **fields):
    """One of another annotator for each time, and count the change."""
    items = list(study.items.all())
    for number, each in enumerate(seconds):
        Submission.objects.create(
            item=items[number % len(items)],
            annotator=Annotator.objects.create(study=study, pseudonym=f"A{number}"),
            submitted_at=NOON,
            seconds=each,
            **fields,
        )
    count_judgments_change(study_ids=[study.pk])
    study.refresh_from_db()


def test_measured_times_take_the_estimates_place(study):
    assert measured_duration([60.0] * 4) is None
    add_submissions(study, *[1] * 5, status=Submission.Status.REJECTED)
    assert not duration_of(study).is_measured
    Submission.objects.all().delete()
    Annotator.objects.all().delete()
    add_submissions(study, *range(60, 111, 10))
    duration = duration_of(study)
    # 60, 70, 80, 90, 100, 110
    assert (duration.n, duration.typical_seconds) == (6, 85)
    assert duration.quick_seconds < 70 < 100 < duration.slow_seconds


@pytest.mark.parametrize(
    ("seconds", "active_seconds"),
    [(0.11, None), (1.9, None), (3.0, 60.0)],
    ids=["at once", "in a second", "in less than the page says"],
)
def test_time_that_is_nobodys_measures_nothing(study, seconds, active_seconds):
    add_submissions(study, *[seconds] * 6, active_seconds=active_seconds)
    assert not duration_of(study).is_measured
    assert n_implausible(study) == 6
    # The page's own count may be longer by what a marketplace rounds.
    Submission.objects.update(seconds=60, active_seconds=61)
    count_judgments_change(study_ids=[study.pk])
    study.refresh_from_db()
    assert duration_of(study).typical_seconds == 60
    assert n_implausible(study) == 0
