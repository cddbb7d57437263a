"""The page of human results: it needs no metric, and begins with a sentence anybody understands."""

import re
from itertools import combinations

import pytest
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from annotation.access import set_study_role
from annotation.models import Study
from console.results import REPORT, RESULTS, VALIDATION, compute
from tests.annotation.studies import (
    doubt,
    make_simulated,
    rate,
    rated_study,
    rating_study,
    tick,
    ticked_study,
)
from tests.annotation.test_comparisons import compare, compared_study
from tests.console.filled import add_batch, add_scores
from tests.console.pages import words_of
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.documents.scale_limits import CUT, on_scale
from validation.models import (
    HumanResults,
    HumanResultsPair,
    HumanResultsSystem,
    ReportFile,
    ValidationVersion,
)
from validation.rows import StoredResults

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
N_ITEMS = 12


@pytest.fixture
def look(page_text):
    def page(study, **query):
        return page_text(study, "results", **query)

    return page


def clear_study(owner, **fields):
    """Beta is rated well above alpha by everybody, gamma a little above alpha by some."""
    names = ("alpha", "gamma", "beta")
    study = rating_study("clear", owner=owner, systems=names, n_items=N_ITEMS, **fields)
    for person in range(3):
        for at in range(N_ITEMS):
            noise = (7 * at + 5 * person) % 9
            high = 80 + (3 * at + 4 * person) % 7
            values = {"alpha": 40 + noise, "gamma": 40.5 + (noise * 5) % 9, "beta": high}
            rate(study, f"p{person}", f"d{at}", values)
    return study


def test_results_need_no_metric_and_begin_with_a_plain_sentence(look, researcher):
    page = look(clear_study(researcher))
    assert "System Place Mean" in page
    assert "Places come from tests on the same items" in page
    assert "People rate beta best. With other items and other annotators it would very" in page
    limits = r"\[\d\d\.\d, \d\d\.\d\]"
    better = rf"beta is better than gamma by 38\.\d {limits} and alpha by \d\d\.\d {limits}"
    assert re.search(rf"{better} \(largest p < 0\.001, adjusted for 3 comparisons\)", page)
    either = r"Not decided: (\w+) or \w+ \(\1 ahead by \d\.\d \[−\d\.\d, \d\.\d\]\)\."
    assert re.search(either, page)
    assert "95 of 100 studies such an interval holds what there is. Where a pair is not" in page
    assert "All 3 comparisons 2 told apart, 1 not" in page
    assert "2 to 3" in page
    assert "Buy next: nothing" in page
    assert not ValidationVersion.objects.exists()


def test_the_stored_systems_and_pairs_are_those_of_a_validation(researcher):
    study = clear_study(researcher)
    add_scores(study)
    for name in (RESULTS, VALIDATION):
        compute(study, name)
    validation = StoredResults(ValidationVersion.objects.get())
    for model, kind in (
        (HumanResultsSystem, RatedSystemRecord),
        (HumanResultsPair, RatedPairRecord),
    ):
        known = [(row.question, row.n_items) for row in validation.rows(kind)]
        stored = model.objects.filter(scope="all").values_list("question", "n_items")
        assert list(stored) == known
    means = HumanResultsSystem.objects.filter(scope="all").values_list("system", "mean", "ci_low")
    assert list(means) == [
        (row.system, row.mean, row.ci_low) for row in validation.rows(RatedSystemRecord)
    ]


def test_few_items_are_too_few_for_an_answer(look, researcher):
    page = look(rated_study(owner=researcher))
    assert "Too few items for an answer; so far people put beta first." in page


def test_flagged_work_and_conditions_are_set_beside_the_whole(look, researcher):
    study = clear_study(researcher, conditions=("calm", "loud"))
    doubt(rate(study, "bot", "d0", {"alpha": 44, "gamma": 50, "beta": 0}))
    page = look(study)
    assert "Without the 1 flagged submission" in page
    assert re.search(r"By condition .*System All calm loud", page)
    assert "alpha" in page[page.index("Where each system fails") :]


def test_results_of_new_judgments_replace_those_before(look, researcher):
    study = clear_study(researcher)
    look(study)
    look(study)
    assert HumanResults.objects.get().number == 1
    rate(study, "late", "d0", {"alpha": 1, "gamma": 1, "beta": 1})
    look(study)
    assert HumanResults.objects.get().number == 2


def test_alternatives_without_systems_say_how_many_are_accepted(look, researcher):
    study = ticked_study(owner=researcher)
    tick(study, "Bob", "boot", {"clog"})
    tick(study, "Bob", "gown", set())
    page = look(study)
    assert "People say “yes” to 30 % of the candidates." in page
    assert "1 of 2 items have at least one candidate to which most annotators say “yes”." in page
    assert "What to buy next" not in page


def test_labels_of_texts_have_a_share_with_its_interval_and_no_places(look, researcher):
    study = rating_study(owner=researcher, systems=("",), level="nominal", n_items=N_ITEMS)
    study.questions.update(categories=["no", "yes"], scale_max=1)
    for number in range(3):
        for at in range(N_ITEMS):
            rate(study, f"p{number}", f"d{at}", {"": (at + number // 2) % 2})
    page = look(study)
    assert "Its 95 % interval is [" in page
    assert "which allows for the chance of other items and other annotators." in page
    assert "at least one candidate" not in page
    assert "all candidates" in page
    assert "Place" not in page
    assert "System" not in page.split("Share of “yes”")[1].split("judgments of")[0]


def test_results_of_simulated_answers_say_first_that_they_are(look, page_text, researcher):
    study = clear_study(researcher)
    assert "simulated" not in look(study)
    make_simulated(study)
    said = "Every answer of this study is simulated: the results are nobody's opinion."
    page = look(study).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    assert page.index(said) < page.index("Simulated workers rate beta best.")
    add_scores(study)
    assert said in page_text(study, "validation")


def test_a_result_says_whose_answers_it_is_of(look, page_text, researcher):
    study = clear_study(researcher)
    add_scores(study)
    make_simulated(study, 2)
    assert "People and simulated workers rate beta best." in look(study)
    assert "is the only metric to set against people and simulated workers." in page_text(
        study, "validation"
    )
    make_simulated(study)
    assert "is the only metric to set against simulated workers." in page_text(study, "validation")
    look(study)
    page = page_text(study, "study")
    assert page.index("Every answer of this study is simulated") < page.index("First, ")


def preferred_study(owner, systems=("a", "b")):
    """In 25 of 36 comparisons a is preferred, in the others b, which comes first of the rest."""
    study = compared_study("preference", systems, n_items=N_ITEMS)
    Study.objects.update(owner=owner)
    study.refresh_from_db()
    for at in range(N_ITEMS):
        for number, person in enumerate(("ann", "bob", "cyd")):
            values = dict.fromkeys(systems, 0.0)
            is_a = 7 * (3 * at + number) % 36 >= 11
            compare(study, person, f"d{at}", values | {"a" if is_a else "b": 1.0})
    return study


def test_of_two_systems_each_is_preferred_to_the_other(look, researcher):
    page = look(preferred_study(researcher))
    assert "How often each is preferred to the other" in page
    assert "middling" not in page
    a, b = HumanResultsSystem.objects.filter(scope="all")
    assert (a.system, a.mean) == ("a", pytest.approx(25 / 36))
    assert (b.mean, b.ci_low, b.ci_high) == pytest.approx((11 / 36, 1 - a.ci_high, 1 - a.ci_low))
    # The lead of wins over defeats, whose interval is reckoned without the model.
    lead = HumanResultsPair.objects.get(scope="all")
    assert 2 * a.mean - 1 == pytest.approx(lead.delta)
    limits = [2 * a.ci_low - 1, 2 * a.ci_high - 1]
    assert limits == pytest.approx([lead.ci_low, lead.ci_high], abs=0.15)
    assert f"{100 * a.mean:.0f} % [" in page


@pytest.mark.parametrize("kind", ["preference", "ranking", "best_worst"])
def test_comparisons_say_which_system_is_preferred(look, researcher, kind):
    study = compared_study(kind, n_items=N_ITEMS)
    Study.objects.update(owner=researcher)
    study.refresh_from_db()
    values = (1, 0, 0) if kind == "preference" else (1, 0.5, 0)
    turned = {"a": values[2], "b": values[1], "c": values[0]}
    for at in range(N_ITEMS):
        for number, person in enumerate(("ann", "bob", "cyd")):
            other = at == 4 * number
            straight = dict(zip(("a", "b", "c"), values, strict=True))
            compare(study, person, f"d{at}", turned if other else straight)
    page = look(study)
    assert re.search(r"People (prefer a\.|put a first so far)", page)
    if kind == "preference":  # b never won
        assert "no strengths follow while one group of systems never won" in page
    else:
        assert "Strengths by the Bradley–Terry model." in page
        assert "How often each would be preferred to a system of middling strength" in page


def test_categories_without_an_order_are_counted(look, researcher):
    study = rating_study(owner=researcher, systems=("alpha",), level="nominal")
    study.questions.update(categories=["dull", "fair", "funny"], scale_max=2)
    for item, value in (("d0", 2), ("d1", 2), ("d2", 0)):
        rate(study, "Ann", item, {"alpha": value})
    assert "People choose “funny” most often: in 67 % of 3 judgments." in look(study)


def test_without_judgments_there_is_a_way_on(look, researcher):
    page = look(rating_study(owner=researcher))
    assert "Results appear here with the first judgments; no metric is needed" in page


def test_a_question_that_is_not_there_is_not_found(rosa, researcher):
    study = rated_study(owner=researcher)
    where = reverse("console:results", args=[study.slug])
    assert rosa.get(where, {"question": "none"}).status_code == 404


def test_what_to_buy_next_has_its_price_for_those_who_may_see_money(rosa, researcher, signed_in):
    study = rating_study("close", owner=researcher)
    leads = {"Ann": (3, -1, 1), "Bob": (3, 0, 0), "Cat": (2, -1, 1)}
    for person, values in leads.items():
        for item, lead in zip(study.items.all(), values, strict=True):
            rate(study, person, item.key, {"alpha": 50, "beta": 50 + lead})
    add_scores(study)
    where = reverse("console:results", args=[study.slug])
    page = rosa.get(where).content.decode()
    assert "Buy next: about" in page
    assert "Whether alpha or beta is better" not in page  # under ten items there is no answer
    assert "an assignment, with fees" not in page
    add_batch(study)
    page = rosa.get(where).content.decode()
    assert "At $0.10 an assignment, with fees, buying costs: " in page
    [(n_more, wanted)] = re.findall(
        r"Buy next: about (\d+) more items \((\d+) in all\)", words_of(page)
    )
    assert int(n_more) == int(wanted) - 3  # three are rated
    # The study has no item left to launch, then seven, then enough.
    said = f"No item of the study is left to launch: add {n_more} items first."
    assert said in words_of(page)
    assert "?buy=" not in page
    for n_left in (7, int(n_more)):
        for position in range(study.items.count(), n_left + 3):
            study.items.create(key=f"d{position}", context="Context", position=position)
        page = rosa.get(where).content.decode()
        assert f'/launch/?buy={n_left}"' in page
        assert f"Launch {n_left} more items…" in page
        n_to_add = int(n_more) - n_left
        said = "7 items of the study are not launched yet; for all that are advised, add "
        said += f"{n_to_add} more first."
        assert (said in words_of(page)) is bool(n_to_add)
    analyst = User.objects.create_user("ana")
    set_study_role(study=study, user=analyst, role=Role.ANALYST, actor=None)
    page = signed_in(analyst).get(where).content.decode()
    assert "Buy next: about" in page
    assert "an assignment, with fees" not in page
    assert "?buy=" not in page
    compute(study, REPORT)  # whose files everybody in the study reads
    report = bytes(ReportFile.objects.get(name="report.html").content).decode()
    assert "Buy next: about" in report
    assert "an assignment, with fees" not in report


def test_ordinal_ratings_are_compared_by_who_is_rated_above(rosa, researcher):
    study = rating_study("close", owner=researcher)
    study.questions.update(level="ordinal")
    leads = {"Ann": (3, -1, 1), "Bob": (3, 0, 0), "Cat": (2, -1, 1)}
    for person, values in leads.items():
        for item, lead in zip(study.items.all(), values, strict=True):
            rate(study, person, item.key, {"alpha": 50, "beta": 50 + lead})
    compute(study, RESULTS)
    pair = HumanResultsPair.objects.get()
    assert (pair.test, pair.delta) == ("order-quasi-f", pytest.approx(-3 / 9))
    page = words_of(rosa.get(reverse("console:results", args=[study.slug])).content.decode())
    assert "(a net 33 in 100 answers)" in page


def test_an_ordinal_lead_is_said_in_answers_of_a_hundred(look, researcher):
    study = clear_study(researcher)
    study.questions.update(level="ordinal")
    page = look(study)
    assert re.search(r"beta is better than \w+ by a net \d+ in 100 answers", page)
    assert "Net: of 100 answers about both systems on the same item, how many more put the" in page
    assert "points of a hundred" not in page


def test_the_first_page_says_which_system_comes_first(page_text, researcher):
    study = clear_study(researcher)
    assert "First, appropriateness" not in page_text(study)
    compute(study, RESULTS)
    page = page_text(study)
    assert re.search(r"First, appropriateness beta 8\d\.\d \[.+?\]; ahead of every other", page)


def test_the_first_page_says_of_few_items_that_they_are_few(page_text, researcher):
    study = rated_study(owner=researcher)
    compute(study, RESULTS)
    page = page_text(study)
    assert re.search(r"First, appropriateness beta 53\.5.*?; 3 items, too few to be sure", page)


def test_near_systems_are_said_to_be_undecided_pair_by_pair(look, researcher):
    names = ("alpha", "beta", "gamma")
    study = rating_study("near", owner=researcher, systems=names, n_items=N_ITEMS)
    for person in range(3):
        for at in range(N_ITEMS):
            noise = [(at * k + person * (k + 2)) % 11 for k in (3, 5, 7)]
            rate(study, f"p{person}", f"d{at}", dict(zip(names, noise, strict=True)))
    page = look(study)
    assert "None of the 3 systems is shown to be better than another." in page
    [said] = re.findall(r"Not decided: (.+?)\. In brackets", page)
    pairs = {frozenset(re.match(r"(\w+) or (\w+) \(", one).groups()) for one in said.split("; ")}
    assert pairs == {frozenset(pair) for pair in combinations(names, 2)}
    assert said.count(" ahead by ") == said.count("[") == 3


def study_at_the_ends(owner):
    """Of four items: beta is rated nearly best, alpha nearly worst, with one rating off the end."""
    study = rating_study("ends", owner=owner, n_items=4)
    for person in ("Ann", "Bob"):
        for at in range(4):
            off = 12 if at == 3 else 0
            rate(study, person, f"d{at}", {"alpha": off, "beta": 100 - off})
    return study


def test_an_interval_ends_with_the_scale_and_says_so(look, page_text, researcher):
    study = study_at_the_ends(researcher)
    page = look(study)
    [beta] = HumanResultsSystem.objects.filter(scope="all", system="beta")
    [alpha] = HumanResultsSystem.objects.filter(scope="all", system="alpha")
    assert beta.ci_high > 100  # as it is computed, so that coverage is what was measured
    assert alpha.ci_low < 0
    assert f"97.0 [{beta.ci_low:.1f}, 100.0]" in page
    assert f"3.0 [0.0, {alpha.ci_high:.1f}]" in page
    assert CUT in page
    assert f"97.0 [{beta.ci_low:.1f}, 100.0]" in page_text(study)  # Overview
    assert CUT not in look(clear_study(researcher))


def test_intervals_of_a_report_end_with_the_scale(researcher):
    study = study_at_the_ends(researcher)
    add_scores(study)
    compute(study, REPORT)
    report = words_of(bytes(ReportFile.objects.get(name="report.html").content).decode())
    tables = set(re.findall(r"97\.00 \[\d\d\.\d\d, (\d+\.\d\d)\]", report))
    assert tables == {"100.00"}  # of every table that has the mean
    assert set(re.findall(r"3\.00 \[(-?\d+\.\d\d), \d\d\.\d\d\]", report)) == {"0.00"}
    assert CUT in report


def test_values_that_leave_the_scale_themselves_keep_their_interval():
    assert on_scale(101.0, (99.0, 103.0), (0.0, 100.0)) == (99.0, 103.0)
    assert on_scale(99.0, (95.0, 103.0), (0.0, 100.0)) == (95.0, 100.0)
    assert on_scale(99.0, (None, None), (0.0, 100.0)) == (None, None)
    assert on_scale(99.0, (95.0, 103.0), None) == (95.0, 103.0)
