from collections import Counter
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from accounts.teams import create_team
from annotation import label_sets, study_facts
from annotation.access import give_to_team
from annotation.disputes import decide
from annotation.result_kinds.base import find_study_kind
from benchmarks.big_study import build_study
from benchmarks.pages import addresses, require_all_known
from console.forms import WageFloorForm
from error_codes import InvalidValue
from hits.pages import changes, rules
from hits.pages.connections import BudgetForm
from hits.pages.terms import LaunchForm
from presentation.numbers import read_usd
from tests.annotation.studies import doubt, rate, rating_study
from tests.codes import refused
from tests.console import filled, work
from tests.console.addresses import API_OF_A_STUDY, PARTS, SHOWN_OF_A_STUDY, SIGNED_IN, address

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

MOST_STATEMENTS = 15
# The same statement about the same thing.
MOST_REPEATS = 2
SMALL, LARGE = 3, 30
VISITED = sorted({*SHOWN_OF_A_STUDY, *API_OF_A_STUDY} | SIGNED_IN - {"schema", "new-team"})
# These read a study in stretches, so their statements grow with it, slowly.
READ_IN_STRETCHES = {"download", "label-set"}


def judged_study(slug, owner, n_items):
    study = rating_study(
        slug, owner=owner, n_items=n_items, questions=("wit", "tone"), conditions=("calm", "loud")
    )
    for position in range(n_items):
        for person, less in (("Ann", 0), ("Bob", 40), ("Cyd", 70)):
            for question in ("wit", "tone"):
                values = {"alpha": 90 - less - position % 7, "beta": 20 + less % 50 + position % 11}
                submission = rate(study, person, f"d{position}", values, question=question)
        doubt(submission)
    for hit in filled.add_batch(study, n_published=n_items - 1).hits.all()[: n_items - 1]:
        filled.add_assignment(hit, problem="The answer names no candidate.")
        filled.add_assignment(hit, "A2WORKER")
    filled.add_scores(study)
    for page in (study_facts.AGREEMENT, study_facts.SCORES):
        find_study_kind(page).compute_now(study)
    filled.store_validation(study)
    question = study.question("wit")
    for item in study.items.all()[: n_items // 3]:
        decide(candidate=item.candidates.first(), question=question, value=5, decided_by=owner)
    label_sets.make_label_set(question=question, rule=label_sets.Rule("mean"))
    work.request_for_later(study=study, kind=study_facts.SCORE, names=["rouge1"])
    return study


@pytest.fixture(scope="module")
def studies(stored_for_module):
    owner = User.objects.create_user("rosa")
    return {n: judged_study(f"of-{n}", owner, n) for n in (SMALL, LARGE)}


@pytest.fixture
def researcher(studies):
    return studies[SMALL].owner


def where(name, study):
    rows = {"item_id": study.items.order_by("position")[1], "batch_id": study.batches.first()}
    rows["job_id"] = study_facts.jobs_of(study).first()
    own = {part: row.pk for part, row in rows.items() if part in PARTS.get(name, {})}
    return address(name, study.slug, **own)


def statements(browser, address, **query):
    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(address, query)
        assert answer.status_code == 200
        assert answer.getvalue() is not None
    return [row["sql"] for row in queries.captured_queries]


@pytest.mark.slow
def test_a_studys_first_page_with_every_result_costs_no_more(rosa, studies):
    study = studies[LARGE]
    for name in (study_facts.RESULTS, study_facts.AGREEMENT, study_facts.VALIDATION):
        find_study_kind(name).compute_now(study)
    address = reverse("console:study", args=[study.slug])
    rosa.get(address)
    assert len(statements(rosa, address)) <= MOST_STATEMENTS
    assert {reverse(f"console:{name}", args=[study.slug]) for name in ("results", "agreement")} <= {
        one.url for one in rosa.get(address).context["figures"]
    }


def test_the_benchmark_of_a_million_judgments_knows_every_address(researcher):
    study = build_study(researcher, n_items=2, n_annotators=2)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    study.refresh_from_db()
    require_all_known({name for name, _ in addresses(study).values()})


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITED)
def test_a_request_costs_as_little_in_a_large_study_as_in_a_small_one(rosa, studies, name):
    addresses = [where(name, studies[n_items]) for n_items in (SMALL, LARGE)]
    for one in addresses:
        rosa.get(one)
    small, large = (statements(rosa, one) for one in addresses)
    more = 5 if name in READ_IN_STRETCHES else 0
    assert len(large) <= MOST_STATEMENTS + more
    if name not in READ_IN_STRETCHES:
        assert len(small) == len(large)
    assert not {sql: n for sql, n in Counter(large).items() if n > MOST_REPEATS}


def test_sorting_filtering_and_turning_pages_cost_no_more(rosa, studies):
    for name, query in (
        ("items", {"sort": "-n_submissions", "q": "context"}),
        ("items", {"after": "1"}),
        ("disagreement", {"sort": "item", "q": "d1"}),
        ("disagreement", {"page": "2", "question": "tone"}),
        ("adjudication", {"threshold": "0", "decided": "1", "skip": "2"}),
        ("annotators", {"sort": "seconds"}),
    ):
        small, large = (statements(rosa, where(name, studies[n]), **query) for n in (SMALL, LARGE))
        assert len(small) <= len(large) <= MOST_STATEMENTS, name
        assert max(Counter(large).values()) <= MOST_REPEATS, name


def test_an_amount_is_plain_digits():
    named = [(BudgetForm, "cap_usd"), (LaunchForm, "reward_usd"), (LaunchForm, "budget_usd")]
    named += [(rules.BonusRuleForm, "amount_usd"), (rules.SendForm, "typed_usd")]
    named += [(changes.ConfirmationForm, "expected_usd"), (WageFloorForm, "wage_floor_usd")]
    fields = [form.base_fields[name] for form, name in named]
    for field in (*fields, rules.DecisionTextForm("bonus").fields["amount_usd"]):
        assert field.clean("3.50") == Decimal("3.50")
        for text in ("1e3", "٣", "５.00", "-1", "1,000", "NaN", "0.005", "9" * 13):
            with pytest.raises(ValidationError):
                field.clean(text)
    for text in ("1e3", "٣", "５.00", "-1", "", "1.", ".5", "1.000", "9" * 13):
        with refused(InvalidValue, "not_an_amount"):
            read_usd(text)
