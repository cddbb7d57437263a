import pytest

from accounts.models import User
from accounts.teams import create_team
from annotation.models import Candidate, Study
from metrics.models import Score
from metrics.score_plans import plan_scoring
from metrics.scorers.scorer import Score as Value
from metrics.scorers.scorer import undefined
from metrics.study_scores import score_study
from tests.annotation.studies import rating_study
from tests.metrics.counting import Counting

pytestmark = pytest.mark.django_db


def twins(**fields):
    """Two studies with the same texts, the first of them scored."""
    first, second = rating_study("first", **fields), rating_study("second", **fields)
    score_study(study=first, scorer=Counting())
    return first, second


def by_candidate(study):
    rows = Score.objects.filter(run__study=study)
    return sorted(
        rows.values_list(
            "run__metric", "candidate__item__key", "candidate__key", "value", "reason", "raw"
        )
    )


def test_texts_that_another_study_had_scored_are_not_computed_again():
    first, second = twins()
    scorer = Counting()
    result = score_study(study=second, scorer=scorer)
    assert (result.n_scored, result.n_reused, scorer.seen) == (6, 6, [])
    assert str(result).count("6 ") == 2
    assert by_candidate(first) == by_candidate(second)
    # Only what no study had, and nothing of another signature.
    third = rating_study("third")
    Candidate.objects.filter(item__study=third, item__key="d1", key="beta").update(text="new")
    result = score_study(study=third, scorer=scorer)
    assert (result.n_reused, scorer.seen) == (5, [("d1", "beta")])

    class Later(Counting):
        signature = "counting|version:2"

    assert score_study(study=second, scorer=Later()).n_reused == 0


@pytest.mark.parametrize("field", ["context", "reference", "condition"])
def test_the_same_response_to_something_else_is_another_text(field):
    _, second = twins(n_items=1)
    second.items.update(**{field: "something else"})
    scorer = Counting()
    score_study(study=second, scorer=scorer)
    assert len(scorer.seen) == 2


def test_equal_texts_are_computed_once_and_the_longest_first():
    study = rating_study(n_items=2)
    Candidate.objects.update(text="the same")
    study.items.update(context="", reference="")
    scorer = Counting()
    assert score_study(study=study, scorer=scorer).n_scored == 4
    assert len(scorer.seen) == 1
    assert set(Score.objects.filter(run__metric="counting").values_list("value")) == {(8,)}


@pytest.mark.parametrize(
    ("value", "stored"),
    [(Value(3, None, '["3"]'), ("", '["3"]')), (undefined("E17", "As an AI"), ("E17", "As an AI"))],
)
def test_what_a_judge_replied_is_kept_beside_the_reason_and_reused(value, stored):
    class Replying(Counting):
        def measure(self, examples):
            return [dict.fromkeys(self.outputs, value) for _ in examples]

    for slug in ("first", "second"):
        study = rating_study(slug, n_items=1)
        score_study(study=study, scorer=Replying())
        assert {row[-2:] for row in by_candidate(study)} == {stored}


def test_the_longest_texts_are_scored_first():
    study = rating_study(n_items=3)
    Candidate.objects.filter(item__key="d1", key="alpha").update(text="long " * 50)
    Candidate.objects.filter(item__key="d2", key="beta").update(text="longer " * 50)
    scorer = Counting(batch_size=1)
    score_study(study=study, scorer=scorer)
    assert scorer.seen[:2] == [("d2", "beta"), ("d1", "alpha")]


def test_a_plan_says_what_would_be_computed_and_computes_nothing():
    _, second = twins()
    Candidate.objects.filter(item__study=second, item__key="d1").update(text="the same")
    before = Score.objects.count()
    plan = plan_scoring(study=second, scorer=Counting())
    assert (plan.n_candidates, plan.n_known, plan.n_reusable) == (6, 0, 4)
    assert [example.response for example in plan.examples] == ["the same"]
    assert Score.objects.count() == before

    score_study(study=second, scorer=Counting())
    plan = plan_scoring(study=second, scorer=Counting())
    assert (plan.n_known, plan.n_reusable, plan.examples) == (6, 0, ())


def test_the_number_of_queries_grows_with_batches_and_not_with_candidates(
    django_assert_max_num_queries,
):
    study = rating_study(n_items=100)
    with django_assert_max_num_queries(40):
        score_study(study=study, scorer=Counting(batch_size=100))


def test_what_was_undefined_is_scored_anew_in_another_study_or_if_one_asks_for_it():
    class Recovered(Counting):
        def measure(self, examples):
            self.seen += [(example.item, example.system) for example in examples]
            return [dict.fromkeys(self.outputs, Value(7)) for _ in examples]

    study, other = rating_study(n_items=2), rating_study("other", n_items=2)
    Candidate.objects.filter(item__key="d1", key="beta").update(text="")
    for scored, expected in ((study, 4), (other, 1)):
        scorer = Counting()
        score_study(study=scored, scorer=scorer)
        assert len(scorer.seen) == expected
    assert score_study(study=study, scorer=Recovered()).n_scored == 0
    scorer = Recovered()
    result = score_study(study=study, scorer=scorer, retry_undefined=True)
    assert (result.n_scored, result.n_known, scorer.seen) == (1, 3, [("d1", "beta")])
    assert Score.objects.filter(run__study=study, value=None).count() == 0
    assert Score.objects.filter(run__study=study).count() == 8


class Judge(Counting):
    """Named as one that asks an endpoint, whose replies are stored with its scores."""

    name = "geval"
    outputs = ("counting", "counting_words")


@pytest.mark.parametrize("same", ["team", "owner", ""])
def test_a_judges_replies_are_reused_by_the_same_people_alone(same):
    rosa, carl = User.objects.create_user("rosa"), User.objects.create_user("carl")
    first, second = rating_study("first", owner=rosa), rating_study("second", owner=carl)
    if same == "team":
        team = create_team(name="Lab", owner=rosa)
        Study.objects.update(team=team)
    elif same == "owner":
        Study.objects.update(owner=rosa)
    score_study(study=first, scorer=Judge())
    second.refresh_from_db()
    assert plan_scoring(study=second, scorer=Judge()).n_reusable == (6 if same else 0)
    assert score_study(study=second, scorer=Judge()).n_reused == (6 if same else 0)
