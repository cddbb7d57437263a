import json
import re
from html import escape
from itertools import combinations

import pytest
from django.urls import reverse
from django.utils.translation import gettext

from accounts.models import User
from accounts.roles import Role
from annotation import access, label_sets, models
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, REPORT, RESULTS, VALIDATION, Raters, simulation_notice
from results.models import Result
from tests.annotation import studies
from tests.annotation.test_disagreement import compare, compared_study
from tests.codes import codes_of
from tests.console import filled, pages
from validation.analysis.records import RatedPairRecord, RatedSystemRecord, plain
from validation.documents.terms import CUT, on_scale
from validation.result_kinds.report import ReportKind
from validation.result_kinds.validation import current_human_results
from validation.versions import StoredResults, list_validations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
N_ITEMS = 12


@pytest.fixture
def look(rosa):
    def page(study, name="results", **query):
        answer = rosa.get(reverse(f"console:{name}", args=[study.slug]), query)
        assert answer.status_code == 200
        return answer

    return page


def html(answer):
    return answer.content.decode()


def stored_rows(study, name):
    study.refresh_from_db()
    whole = [row for row in current_human_results(study).record[name] if row["scope"] == "all"]
    return [{name: row[name] for name in row if name not in ("scope", "by")} for row in whole]


def report_page(study):
    return ReportKind().list_results(study).get().parts.get(name="report.html").content.decode()


def view_of(answer):
    return answer.context["view"]


def leader(answer):
    return next((one for one in answer.context["figures"] if one.url.endswith("/results/")), None)


def clear_study(owner, **fields):
    """Beta is rated well above alpha by everybody, gamma a little above alpha by some."""
    names = ("alpha", "gamma", "beta")
    study = studies.rating_study("clear", owner=owner, systems=names, n_items=N_ITEMS, **fields)
    for person in range(3):
        for at in range(N_ITEMS):
            noise = (7 * at + 5 * person) % 9
            high = 80 + (3 * at + 4 * person) % 7
            values = {"alpha": 40 + noise, "gamma": 40.5 + (noise * 5) % 9, "beta": high}
            studies.rate(study, f"p{person}", f"d{at}", values)
    return study


def test_results_need_no_metric_and_begin_with_a_plain_answer(look, researcher):
    page = look(clear_study(researcher))
    view = view_of(page)
    assert (view.answer.code, view.standing.certainty.code) == ("best", "best")
    assert "beta" in view.answer
    better, undecided, brackets = view.standing.details
    assert codes_of([better, undecided, brackets]) == ["better", "undecided", "brackets"]
    number, limits = r"\d\d\.\d", r"\[\d\d\.\d, \d\d\.\d\]"
    assert re.search(rf"beta .*gamma .*38\.\d {limits}.*\balpha .*{number} {limits}", better)
    assert re.search(r"p < 0\.001\b.* 3 ", better)
    assert re.search(r"(alpha|gamma) .*\1 .*\d\.\d \[−\d\.\d, \d\.\d\]", undecided)
    assert [pair["is_decided"] for pair in view.pairs].count(True) == 2
    assert view.rows[0].record.system == "beta"
    assert [(row.record.rank_low, row.record.rank_high) for row in view.rows[1:]] == [(2, 3)] * 2
    for part in (view.answer, better, undecided):
        assert escape(part) in html(page)
    assert view.verdict.n_more_items == 0
    assert not Result.objects.filter(kind="validation").exists()


def test_the_stored_systems_and_pairs_are_those_of_a_validation(researcher):
    study = clear_study(researcher)
    filled.add_scores(study)
    for name in (RESULTS, VALIDATION):
        find_study_kind(name).compute_now(study)
    validation = StoredResults(list_validations(study).get())
    assert stored_rows(study, "systems") == list(map(plain, validation.rows(RatedSystemRecord)))
    assert stored_rows(study, "pairs") == list(map(plain, validation.rows(RatedPairRecord)))


def test_flagged_work_and_conditions_are_set_beside_the_whole(look, researcher):
    study = clear_study(researcher, conditions=("calm", "loud"))
    studies.doubt(studies.rate(study, "bot", "d0", {"alpha": 44, "gamma": 50, "beta": 0}))
    view = view_of(look(study))
    assert view.results.record["n_flagged"] == 1
    unflagged, by_condition = view.parts
    assert len(unflagged["columns"]) == 2
    assert by_condition["columns"][1:] == ["calm", "loud"]
    assert by_condition["rows"][0][0] == "beta"
    assert {row.system for row, _candidate in view.lowest} == {"alpha", "gamma", "beta"}


def test_alternatives_without_systems_say_how_many_are_accepted(look, researcher):
    study = studies.ticked_study(owner=researcher)
    studies.tick(study, "Bob", "boot", {"clog"})
    studies.tick(study, "Bob", "gown", set())
    view = view_of(look(study))
    assert view.answer.code == "one_system"
    assert "30 %" in view.answer
    assert re.findall(r"\d+", view.items_with) == ["1", "2"]
    assert view.verdict is None


def test_labels_of_texts_have_a_share_with_its_interval_and_no_places(look, researcher):
    study = studies.rating_study(owner=researcher, systems=("",), level="nominal", n_items=N_ITEMS)
    study.questions.update(categories=["no", "yes"], scale_max=1)
    for number in range(3):
        for at in range(N_ITEMS):
            studies.rate(study, f"p{number}", f"d{at}", {"": (at + number // 2) % 2})
    view = view_of(look(study))
    assert codes_of(view.standing.details) == ["interval"]
    [row] = view.rows
    assert row.interval in view.standing.details[0]
    assert (row.record.system, view.is_ranked, view.items_with) == ("", False, "")


@pytest.mark.slow
def test_results_of_simulated_answers_begin_with_a_notice(look, researcher):
    study = clear_study(researcher)
    filled.add_scores(study)
    assert look(study).context["simulated"] == ""
    for n_simulated, raters in ((2, Raters.BOTH), (None, Raters.SIMULATED)):
        studies.make_simulated(study, *filter(None, [n_simulated]))
        page = look(study)
        notice = escape(simulation_notice(study))
        assert html(page).index(notice) < html(page).index(escape(view_of(page).answer))
        assert str(raters.subject) in view_of(page).answer
        metrics = look(study, "validation")
        assert notice in html(metrics)
        assert str(raters.named) in view_of(metrics).best.answer
    overview = look(study, "study")
    assert html(overview).index(notice) < html(overview).index(escape(leader(overview).label))


def preferred_study(owner, systems=("a", "b")):
    """In 25 of 36 comparisons a is preferred, in the others b, which comes first of the rest."""
    study = compared_study("preference", systems, n_items=N_ITEMS)
    models.Study.objects.update(owner=owner)
    study.refresh_from_db()
    for at in range(N_ITEMS):
        for number, person in enumerate(("ann", "bob", "cyd")):
            values = dict.fromkeys(systems, 0.0)
            is_a = 7 * (3 * at + number) % 36 >= 11
            compare(study, person, f"d{at}", values | {"a" if is_a else "b": 1.0})
    return study


def test_of_two_systems_each_is_preferred_to_the_other(look, researcher):
    study = preferred_study(researcher)
    page = look(study)
    a, b = (RatedSystemRecord(**row) for row in stored_rows(study, "systems"))
    assert a.method == "bradley-terry-pair"
    assert (a.system, a.mean) == ("a", pytest.approx(25 / 36))
    assert (b.mean, b.ci_low, b.ci_high) == pytest.approx((11 / 36, 1 - a.ci_high, 1 - a.ci_low))
    # The lead of wins over defeats, whose interval is reckoned without the model.
    [lead] = (RatedPairRecord(**row) for row in stored_rows(study, "pairs"))
    assert 2 * a.mean - 1 == pytest.approx(lead.delta)
    limits = [2 * a.ci_low - 1, 2 * a.ci_high - 1]
    assert limits == pytest.approx([lead.ci_low, lead.ci_high], abs=0.15)
    row = view_of(page).rows[0]
    assert (row.value, row.interval[0]) == (f"{100 * a.mean:.0f} %", "[")


@pytest.mark.parametrize("kind", ["preference", "ranking", "best_worst"])
def test_comparisons_say_which_system_is_preferred(look, researcher, kind):
    study = compared_study(kind, ("a", "b", "c"), n_items=N_ITEMS)
    models.Study.objects.update(owner=researcher)
    study.refresh_from_db()
    values = (1, 0, 0) if kind == "preference" else (1, 0.5, 0)
    turned = {"a": values[2], "b": values[1], "c": values[0]}
    for at in range(N_ITEMS):
        for number, person in enumerate(("ann", "bob", "cyd")):
            other = at == 4 * number
            straight = dict(zip(("a", "b", "c"), values, strict=True))
            compare(study, person, f"d{at}", turned if other else straight)
    view = view_of(look(study))
    assert view.answer.code in ("best", "rivals")
    assert view.standing.systems[0].system == "a"
    # Of a preference b never won, so that no strengths follow.
    method = "wins" if kind == "preference" else "bradley-terry"
    assert {one.method for one in view.standing.systems} == {method}


def test_categories_without_an_order_are_counted(look, rosa, researcher):
    study = studies.rating_study(owner=researcher, systems=("alpha",), level="nominal")
    page = look(study)  # without judgments there is a way on
    assert "view" not in page.context
    assert reverse("console:answers", args=[study.slug]) in html(page).split("<main")[1]
    study.questions.update(categories=["dull", "fair", "funny"], scale_max=2)
    for item, value in (("d0", 2), ("d1", 2), ("d2", 0)):
        studies.rate(study, "Ann", item, {"alpha": value})
    answer = view_of(look(study)).answer
    assert answer.code == "most_chosen"
    for part in ("funny", "67 %", "3"):
        assert part in answer
    where = reverse("console:results", args=[study.slug])
    assert rosa.get(where, {"question": "none"}).status_code == 404


def close_study(owner, **question):
    study = studies.rating_study("close", owner=owner)
    study.questions.update(**question)
    for person, values in {"Ann": (3, -1, 1), "Bob": (3, 0, 0), "Cat": (2, -1, 1)}.items():
        for item, lead in zip(study.items.all(), values, strict=True):
            studies.rate(study, person, item.key, {"alpha": 50, "beta": 50 + lead})
    return study


@pytest.mark.slow
def test_what_to_buy_next_has_its_price_for_those_who_may_see_money(look, researcher, signed_in):
    study = close_study(researcher, level="interval")
    filled.add_scores(study)
    view = view_of(look(study))
    assert view.answer.code == "too_few_items"  # under ten items there is no answer
    assert (view.verdict.n_more_items > 0, view.verdict.price) == (True, "")
    filled.add_batch(study)
    page = look(study)
    verdict = view_of(page).verdict
    assert "$0.10" in verdict.price
    assert escape(verdict.price) in html(page)
    n_more = verdict.n_more_items
    # Three of all that are wanted are rated.
    assert [str(n_more), str(n_more + 3)] == re.findall(r"\d+", verdict.purchase)[:2]
    # The study has no item left to launch, then seven, then enough.
    for n_left in (0, 7, n_more):
        for position in range(study.items.count(), n_left + 3):
            study.items.create(key=f"d{position}", context="Context", position=position)
        page = look(study)
        counts = (page.context["n_to_launch"], page.context["n_to_add"])
        assert counts == (n_left, n_more - n_left)
        assert (f'/launch/?buy={n_left}"' in html(page)) is bool(n_left)
    analyst = User.objects.create_user("ana")
    access.set_study_role(study=study, user=analyst, role=Role.ANALYST, actor=None)
    page = signed_in(analyst).get(reverse("console:results", args=[study.slug]))
    shown = view_of(page).verdict
    assert (shown.purchase, shown.price) == (verdict.purchase, "")
    assert "?buy=" not in html(page)
    find_study_kind(REPORT).compute_now(study)  # whose files everybody in the study reads
    report = report_page(study)
    assert escape(verdict.purchase) in report
    assert "$0.10" not in report


def test_ordinal_ratings_are_compared_by_who_is_rated_above(look, researcher):
    study = close_study(researcher, level="ordinal")
    page = look(study)
    [pair] = (RatedPairRecord(**row) for row in stored_rows(study, "pairs"))
    assert (pair.test, pair.delta) == ("order-quasi-f", pytest.approx(-3 / 9))
    [row] = view_of(page).pairs
    assert re.search(r"\b33\b", row["difference"])
    assert re.search(r"\b33\b", " ".join(view_of(page).verdict.sentences))
    study = clear_study(researcher)
    study.questions.update(level="ordinal")
    details = view_of(look(study)).standing.details
    assert codes_of(details) == ["better", "undecided", "brackets", "net"]
    assert re.search(r"beta .* \d+ ", details[0])


def test_the_overview_shows_which_system_leads_if_there_are_enough_items(look, researcher):
    study, few = clear_study(researcher), studies.rated_study(owner=researcher)
    assert leader(look(study, "study")) is None
    for one, codes, state in ((study, ["best"], "shown"), (few, ["too_few_items"], "few")):
        look(one)
        page = look(one, "study")
        [ranking] = [each for each in page.context["panels"] if each.panel.name == "ranking"]
        assert (codes_of(ranking.view["sentences"]), ranking.state) == (codes, state)
        figure = leader(page)
        assert (figure and (figure.value, "appropriateness" in figure.label)) == (
            ("beta", True) if state == "shown" else None
        )
        assert all((row.span is None) == (state == "few") for row in ranking.view["charts"][0].rows)


def test_near_systems_are_undecided_pair_by_pair(look, researcher):
    names = ("alpha", "beta", "gamma")
    study = studies.rating_study("near", owner=researcher, systems=names, n_items=N_ITEMS)
    for person in range(3):
        for at in range(N_ITEMS):
            noise = [(at * k + person * (k + 2)) % 11 for k in (3, 5, 7)]
            studies.rate(study, f"p{person}", f"d{at}", dict(zip(names, noise, strict=True)))
    view = view_of(look(study))
    assert view.answer.code == "none_better"
    [undecided] = [one for one in view.standing.details if one.code == "undecided"]
    pairs = {frozenset(re.findall("alpha|beta|gamma", one)) for one in undecided.split("; ")}
    assert pairs == {frozenset(pair) for pair in combinations(names, 2)}
    assert undecided.count("; ") == 2
    assert len(re.findall(r" \[[^]]*\]", undecided)) == 3


def test_intervals_on_the_page_and_in_the_report_end_with_the_scale_unless_the_value_leaves_it(
    look, researcher
):
    assert on_scale(101.0, (99.0, 103.0), (0.0, 100.0)) == (99.0, 103.0)
    assert on_scale(99.0, (95.0, 103.0), (0.0, 100.0)) == (95.0, 100.0)
    assert on_scale(99.0, (None, None), (0.0, 100.0)) == (None, None)
    assert on_scale(99.0, (95.0, 103.0), None) == (95.0, 103.0)
    # Of four items: beta is rated nearly best, alpha nearly worst, with one rating off the end.
    study = studies.rating_study("ends", owner=researcher, n_items=4)
    for person in ("Ann", "Bob"):
        for at in range(4):
            off = 12 if at == 3 else 0
            studies.rate(study, person, f"d{at}", {"alpha": off, "beta": 100 - off})
    page = look(study)
    systems = {row["system"]: RatedSystemRecord(**row) for row in stored_rows(study, "systems")}
    alpha, beta = systems["alpha"], systems["beta"]
    assert beta.ci_high > 100  # as it is computed, so that coverage is what was measured
    assert alpha.ci_low < 0
    rows = {row.record.system: f"{row.value} {row.interval}" for row in view_of(page).rows}
    shown = f"97.0 [{beta.ci_low:.1f}, 100.0]"
    assert rows == {"beta": shown, "alpha": f"3.0 [0.0, {alpha.ci_high:.1f}]"}
    assert view_of(page).note_of_cuts
    assert view_of(look(clear_study(researcher))).note_of_cuts == ""
    filled.add_scores(study)
    find_study_kind(REPORT).compute_now(study)
    report = pages.words_of(report_page(study))
    tables = set(re.findall(r"97\.00 \[\d\d\.\d\d, (\d+\.\d\d)\]", report))
    assert tables == {"100.00"}  # of every table that has the mean
    assert set(re.findall(r"3\.00 \[(-?\d+\.\d\d), \d\d\.\d\d\]", report)) == {"0.00"}
    assert gettext(CUT) in report


def test_pages_of_a_preference_count_one_choice_of_an_item(look, researcher):
    study = preferred_study(researcher)
    find_study_kind(AGREEMENT).compute_now(study)
    results, agreement = view_of(look(study)), view_of(look(study, "agreement"))
    shown = results.displayed
    assert (shown.n_judgments, shown.n_items, shown.n_annotators) == (36, 12, 3)
    assert results.study_question.is_one_choice
    for alpha in (results.alphas[0], agreement.coefficients[0].all):
        assert alpha.name == "krippendorff_alpha"
        assert (alpha.n_items, alpha.n_annotators, alpha.n_labels) == (12, 3, 36)
    disagreement = look(study, "disagreement")
    for view in (agreement, view_of(disagreement)):
        assert view.study_question.is_one_choice
    assert "<table" not in html(disagreement)  # no candidate is in dispute
    page = look(study, "adjudication")
    assert page.context["question"].is_one_choice
    assert 'name="threshold"' not in html(page)
    filled.add_batch(study)
    verdict = view_of(look(study)).verdict
    assert re.search(r"\b\d+ \S+ 100\b", verdict.chance + verdict.purchase)
    assert re.search(r"\b3\b", verdict.purchase)
    assert "%" not in verdict.purchase.replace("95 %", "")


@pytest.fixture
def reasoned(researcher):
    study = studies.ticked_study(owner=researcher)
    models.Submission.objects.filter(item__key="boot").update(justification="Same heel and colour")
    models.Submission.objects.filter(item__key="gown").update(justification="Another colour")
    submission = models.Submission.objects.get(item__key="boot")
    for docno, text in (("clog", "striped as well"), ("flat", "<b>too</b> flat")):
        candidate = submission.item.candidates.get(key=docno)
        models.WrittenAnswer.objects.create(
            submission=submission, candidate=candidate, question="reason", text=text
        )
    return study


def test_reasons_are_counted_by_term_chosen_by_the_address_and_linked_from_labels(
    look, reasoned, researcher
):
    page = look(reasoned, "reasons")
    view = view_of(page)
    assert (view["counts"]["n_relevant"], view["counts"]["n_other"]) == (2, 2)
    rows = {row["term"]: row for row in view["counts"]["terms"]}
    assert (rows["colour"]["share_relevant"], rows["colour"]["share_other"]) == (0.5, 0.5)
    of_pages = [len(one.relevant or ()) for one in view["reasons"] if not one.docno]
    assert sorted(of_pages) == [0, 2]
    assert {one.docno for one in view["reasons"] if one.docno} == {"clog", "flat"}
    content = html(page)
    assert ">price<" not in content  # nobody mentions it
    assert content.count('class="said-of"') == 4
    assert "&lt;b&gt;too&lt;/b&gt; flat" in content
    heel, another = "Same heel and colour", "Another colour"
    clog, flat = "striped as well", "&lt;b&gt;too&lt;/b&gt; flat"
    for query, reasons in (
        ({"term": "colour"}, [heel, another]),
        ({"about": "other"}, [flat, another]),
        ({"term": "colour", "about": "relevant"}, [heel]),
        ({"q": "STRIPED"}, [clog]),
        ({"q": "velvet"}, []),
        ({"term": "nothing", "round": "9"}, [heel, clog, flat, another]),
    ):
        content = html(look(reasoned, "reasons", **query))
        cells = [part.partition("</td>")[0] for part in content.split('class="said-of">')[1:]]
        assert cells == reasons, query
    rated = studies.rated_study("rated", owner=researcher)
    where = reverse("console:reasons", args=[reasoned.slug])
    assert where in html(look(reasoned, "labels"))
    for one in (rated, studies.ticked_study("silent", owner=researcher)):
        answer = look(one, "reasons")
        assert (view_of(answer), 'class="empty"' in html(answer)) == (None, True)


def test_pages_files_and_the_api_say_whether_answers_are_simulated(look, rosa, researcher):
    notice = ""
    for is_simulated in (True, False):
        study = filled.scored_study(f"simulated-{is_simulated}".lower(), owner=researcher)
        models.Submission.objects.of(study).update(is_simulated=is_simulated)
        filled.store_validation(study)
        for name in (AGREEMENT, RESULTS):
            find_study_kind(name).compute_now(study)
        label_sets.make_label_set(question=study.questions.first(), rule=label_sets.Rule("mean"))
        notice = escape(simulation_notice(study)) or notice
        for name in (
            *("study", "results", "agreement", "annotators", "disagreement", "adjudication"),
            *("labels", "validation", "downloads"),
        ):
            assert html(look(study, name)).count(notice) == is_simulated, name
        for name, *parts in (
            ("download", "agreement.json"),
            ("download", "validation.json"),
            ("label-set", 1, "json"),
        ):
            answer = rosa.get(reverse(f"console:{name}", args=[study.slug, *parts]))
            assert json.loads(answer.getvalue())["simulated"] is is_simulated
        for path in (
            *("agreement", "validation", "validation/best", "validation/correlations"),
            *("results", "disputes", "label-sets", "label-sets/1"),
        ):
            answer = rosa.get(f"/api/v1/studies/{study.slug}/{path}/")
            assert answer.status_code == 200, answer.content
            content = answer.json()
            rows = content if isinstance(content, list) else content.get("results", [content])
            assert {row["simulated"] for row in rows} == {is_simulated}, path
