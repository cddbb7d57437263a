import json

import numpy as np
import pytest

from accounts.models import User
from annotation.agreement_versions import compute_agreement
from annotation.disagreement import annotator_table, default_threshold, unit_table
from annotation.disputes import adjudication_queue, decide
from annotation.models import AgreementVersion, Candidate, Question, Study, UnitAgreement
from presentation.records import plain_records
from tests.annotation.studies import alternatives_study, doubt, rate, rating_study, tick

pytestmark = pytest.mark.django_db


TICKS = {
    "Ann": ({"clog", "pump"}, {"skirt"}),
    "Bob": ({"clog", "pump"}, {"skirt"}),
    "Cyd": ({"clog"}, {"skirt"}),
    "Odd": ({"flat"}, {"skirt", "coat"}),
}
RATINGS = {"Ann": [10, 50, 90, 30], "Bob": [12, 55, 80, 35], "Odd": [90, 20, 10, 70]}


@pytest.fixture
def ticked() -> Study:
    """Four people tick two pools; Odd ticks what nobody else does."""
    study = alternatives_study()
    for person, (boot, gown) in TICKS.items():
        tick(study, person, "boot", boot)
        tick(study, person, "gown", gown)
    return study


@pytest.fixture
def rated() -> Study:
    study = rating_study(n_items=4, systems=("alpha",))
    for person, values in RATINGS.items():
        for index, value in enumerate(values):
            rate(study, person, f"d{index}", {"alpha": value})
    return study


class TestUnits:
    def test_the_candidates_with_least_agreement_come_first_of_a_round(self, ticked: Study) -> None:
        records = plain_records(unit_table(ticked.question()))
        # Of the six pairs of four people, those with two ticks agree in two, with one in three.
        assert [(row["candidate"], round(row["agreement"], 4)) for row in records] == [
            ("pump", 0.3333),
            ("clog", 0.5),
            ("flat", 0.5),
            ("coat", 0.5),
            ("skirt", 1),
        ]
        assert records[0]["mean"] == 0.5
        assert (records[0]["n_judgments"], records[0]["low"], records[0]["high"]) == (4, 0, 1)
        pump = Candidate.objects.get(key="pump")
        assert (records[0]["candidate_id"], records[0]["item_id"]) == (pump.pk, pump.item_id)
        json.dumps(records[0], allow_nan=False)
        tick(ticked, "Dee", "boot", {"clog"}, status="rejected")
        tick(ticked, "Eve", "boot", {"clog"}, round=2)
        assert set(unit_table(ticked.question())["n_judgments"]) == {4}
        assert plain_records(unit_table(ticked.question(), round=2)) == []


class TestAnnotators:
    def test_who_pulls_agreement_down_comes_first(self, ticked: Study) -> None:
        first, *rest = plain_records(annotator_table(ticked.question()))
        assert first["annotator"] == "Odd"
        assert first["alpha_change"] > 0
        assert all(row["alpha_change"] < first["alpha_change"] for row in rest)
        assert first["loo_agreement"] < min(row["loo_agreement"] for row in rest)

    def test_a_person_is_compared_with_the_others(self, rated: Study) -> None:
        import krippendorff

        table = annotator_table(rated.question()).set_index("annotator")
        others = [RATINGS["Ann"], RATINGS["Bob"]]
        expected = krippendorff.alpha(others, level_of_measurement="interval")
        everyone = krippendorff.alpha([*RATINGS.values()], level_of_measurement="interval")
        assert table.loc["Odd", "alpha_without"] == pytest.approx(expected)
        assert table.loc["Odd", "alpha_change"] == pytest.approx(expected - everyone)
        mean = np.mean(others, axis=0)
        correlation = np.corrcoef(RATINGS["Odd"], mean)[0, 1]
        assert table.loc["Odd", "loo_correlation"] == pytest.approx(correlation)
        assert table.loc["Odd", "bias"] == pytest.approx(np.mean(RATINGS["Odd"] - mean))

    def test_volume_speed_and_flags_are_reported(self, ticked: Study) -> None:
        doubt(tick(ticked, "Odd", "boot", {"pump"}, round=2))
        odd = ticked.annotators.get(pseudonym="Odd")
        doubt(odd.submissions.get(item__key="gown"))
        records = {
            row["annotator"]: row for row in plain_records(annotator_table(ticked.question()))
        }
        assert (records["Odd"]["n_flagged"], records["Ann"]["n_flagged"]) == (1, 0)
        assert (records["Odd"]["n_judgments"], records["Odd"]["median_seconds"]) == (5, 1.5)
        json.dumps(records, allow_nan=False)

    def test_one_annotator_leaves_nulls_and_a_reason(self) -> None:
        study = alternatives_study()
        assert plain_records(annotator_table(study.question())) == []
        tick(study, "Ann", "boot", {"clog"})
        [record] = plain_records(annotator_table(study.question()))
        assert (record["alpha_without"], record["reason"]) == (None, "no_overlap")


class TestQueue:
    @pytest.fixture
    def senior(self) -> User:
        return User.objects.create_user("senior")

    def keys(self, study: Study, **options: object) -> list[str]:
        compute_agreement(study)
        return [row.candidate for row in adjudication_queue(study.question(), **options).disputes]

    def test_what_is_agreed_upon_is_not_in_the_queue(self, ticked: Study) -> None:
        assert self.keys(ticked) == ["pump", "clog", "flat", "coat"]
        assert self.keys(ticked, most=2) == ["pump", "clog"]
        assert self.keys(ticked, skip=1, most=2) == ["clog", "flat"]
        assert adjudication_queue(ticked.question(), most=2).n_disputed == 4

    def test_each_dispute_shows_who_gave_what_and_why(self, ticked: Study) -> None:
        submission = ticked.annotators.get(pseudonym="Odd").submissions.get(item__key="boot")
        submission.justification = "flat is flat"
        submission.save()
        doubt(submission)
        compute_agreement(ticked)
        first = adjudication_queue(ticked.question()).disputes[0]
        assert [(o.annotator, o.value, o.category) for o in first.opinions] == [
            ("Ann", 1, "yes"),
            ("Bob", 1, "yes"),
            ("Cyd", 0, "no"),
            ("Odd", 0, "no"),
        ]
        last = first.opinions[-1]
        assert (last.justification, last.flag_reason) == ("flat is flat", "too fast")

    def test_what_was_decided_leaves_the_queue(self, ticked: Study, senior: User) -> None:
        pump = Candidate.objects.get(key="pump")
        decide(candidate=pump, question=ticked.question(), value=1, decided_by=senior, note="why")
        assert self.keys(ticked) == ["clog", "flat", "coat"]
        queue = adjudication_queue(ticked.question(), with_decided=True)
        assert (queue.n_disputed, queue.n_decided) == (4, 1)
        record = queue.disputes[0].record()
        assert record["decision"]["value"] == 1
        assert (record["decision"]["decided_by"], record["decision"]["note"]) == ("senior", "why")
        json.dumps(record, allow_nan=False)

    def test_a_decision_in_another_round_does_not_count(self, ticked: Study, senior: User) -> None:
        tick(ticked, "Ann", "boot", set(), round=2)
        pump = Candidate.objects.get(key="pump")
        decide(candidate=pump, question=ticked.question(), value=1, decided_by=senior, round=2)
        assert self.keys(ticked)[0] == "pump"

    def test_a_study_nobody_judged_has_an_empty_queue(self) -> None:
        queue = adjudication_queue(alternatives_study().question())
        assert (queue.disputes, queue.n_disputed, queue.n_decided) == ((), 0, 0)

    def test_ratings_nearby_are_no_dispute_unless_the_threshold_says_so(self, rated: Study) -> None:
        # The four candidates' ratings span 80, 35, 80 and 40 of the scale's 100.
        assert self.keys(rated, threshold=0.5) == ["alpha", "alpha"]
        assert adjudication_queue(rated.question()).n_disputed == 4
        assert adjudication_queue(rated.question(), threshold=0.375).n_disputed == 3
        assert adjudication_queue(rated.question(), threshold=0.8).n_disputed == 0
        for level in ("ordinal", "interval", "ratio"):
            assert default_threshold(Question(level=level)) == 0.25

    def test_only_two_steps_or_more_than_a_quarter_of_the_scale_are_a_dispute(self) -> None:
        for n_steps in (2, 3, 4, 5):
            study = rating_study(f"of-{n_steps}", n_items=2, systems=("alpha",), level="ordinal")
            study.questions.update(scale_min=1, scale_max=n_steps)
            for person, first, second in (("Ann", 1, 1), ("Bob", 2, min(3, n_steps))):
                rate(study, person, "d0", {"alpha": first})
                rate(study, person, "d1", {"alpha": second})
            compute_agreement(study)
            disputes = [row.item for row in adjudication_queue(study.question()).disputes]
            assert disputes == (["d0", "d1"] if n_steps == 2 else ["d1"])
        for number, (low, high, first, second) in enumerate(
            ((0, 1, 0.3, 0.55), (0, 10, 1.9, 4.4), (1, 9, 2.4, 4.4), (0, 0.2, 0.15, 0.2))
        ):
            study = rating_study(f"quarter-{number}", n_items=1, systems=("alpha",))
            study.questions.update(scale_min=low, scale_max=high)
            rate(study, "Ann", "d0", {"alpha": first})
            rate(study, "Bob", "d0", {"alpha": second})
            compute_agreement(study)
            assert adjudication_queue(study.question()).n_disputed == 0

    def test_the_spread_of_categories_is_the_minoritys_share(self, ticked: Study) -> None:
        compute_agreement(ticked)
        spreads = UnitAgreement.objects.values_list("candidate__key", "spread")
        assert dict(spreads) == {"pump": 0.5, "clog": 0.25, "flat": 0.25, "coat": 0.25, "skirt": 0}
        assert adjudication_queue(ticked.question(), threshold=0.25).n_disputed == 1
        assert default_threshold(ticked.question()) == 0

    def test_a_new_computation_takes_the_place_of_the_one_before(self, ticked: Study) -> None:
        first = compute_agreement(ticked)
        tick(ticked, "Ann", "boot", {"clog"}, round=2)
        tick(ticked, "Bob", "boot", {"pump"}, round=2)
        second = compute_agreement(ticked)
        assert (second.version, first.n_disputed, second.n_disputed) == (2, 4, 6)
        assert second.judgments_version == first.judgments_version + 2
        assert list(AgreementVersion.objects.all()) == [second]
        assert UnitAgreement.objects.count() == 5 + 3

    def test_queries_of_the_queue_do_not_grow(self, django_assert_max_num_queries: object) -> None:
        for n_items in (5, 20):
            study = rating_study(f"of-{n_items}", n_items=n_items)
            for index in range(n_items):
                rate(study, "Ann", f"d{index}", {"alpha": 0, "beta": 100})
                rate(study, "Bob", f"d{index}", {"alpha": 90, "beta": 10})
            compute_agreement(study)
            question = study.question()
            with django_assert_max_num_queries(7):
                assert adjudication_queue(question, most=5).n_disputed == 2 * n_items
