"""Which system people rate higher: rows, sentences and what to buy."""

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from console.result_sentences import Scale, Standing
from stats.inference.larger_studies import least_distinguishable
from validation.analysis import Settings, report_from_tables
from validation.analysis.rated_systems import compare_rated_systems, comparison_sentence
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.documents.purchase_prices import AssignmentPrice, price_sentence
from validation.documents.rated_systems import (
    is_told_apart,
    rated_systems_section,
    verdict_of,
    verdicts,
)
from validation.results import TableResults

SETTINGS = Settings(levels=("system",), coefficients=("pearson",), n_resamples=50, n_splits=0)


def results_of(gap, n_items=40, n_annotators=6):
    rng = np.random.default_rng(0)
    quality = {"good": gap, "fair": 0.0, "poor": -gap}
    item = rng.normal(size=n_items)
    rows = [
        {"question": "q", "item": f"i{i}", "system": name, "annotator": f"a{a}",
         "value": value + item[i] + rng.normal()}
        for i in range(n_items) for name, value in quality.items() for a in range(n_annotators)
    ]  # fmt: skip
    human = pd.DataFrame(rows)
    cells = human.drop_duplicates(["item", "system"])[["item", "system"]]
    scores = cells.assign(metric="m", value=rng.normal(size=len(cells)))
    return TableResults("study", report_from_tables(human, scores, SETTINGS))


def test_a_clear_winner_is_named_and_nothing_more_need_be_bought():
    results = results_of(1.0)
    [verdict] = verdicts(results)
    assert verdict.best.startswith("q: people rate good highest")
    assert "hardly chance" in verdict.chance
    assert verdict.purchase.startswith("Buy next: nothing")
    ranks = [(row.system, row.rank_low, row.rank_high) for row in results.rows(RatedSystemRecord)]
    assert ranks == [("good", 1, 1), ("fair", 2, 2), ("poor", 3, 3)]
    assert rated_systems_section(results).parts[0].startswith("q: people rate good highest")


def test_four_items_give_no_answer_however_small_p_is_and_ten_are_to_be_bought():
    results = results_of(3.0, n_items=4)
    assert max(row.p_adjusted for row in results.rows(RatedPairRecord)) < 0.05
    price = AssignmentPrice(Decimal("0.10"), lambda _size: Decimal("0.12"))
    [verdict] = verdicts(results, price)
    assert verdict.chance.startswith("4 items are too few for an answer")
    assert verdict.purchase.startswith("Buy next: 10 items in all instead of 4")
    assert verdict.n_more_items == 6
    assert "6 more items" in verdict.price
    systems, pairs = results.rows(RatedSystemRecord), results.rows(RatedPairRecord)
    standing = Standing(Scale("mean", 0, 1), list(systems), list(pairs))
    assert standing.answer.startswith("Too few items for an answer")


def test_what_could_be_chance_is_said_with_what_would_settle_it():
    results = results_of(0.02, n_items=12, n_annotators=2)
    [verdict] = verdicts(results)
    assert "could be chance" in verdict.chance
    assert "no difference" not in " ".join(verdict.sentences)
    assert verdict.purchase.startswith("Buy next: ")
    assert verdict.notes == (
        "With 12 items only, this is a rough guide.",
        "With 2 annotators only, little can be said of others.",
    )
    best = results.rows(RatedSystemRecord)[0].system
    pairs = [row for row in results.rows(RatedPairRecord) if best in (row.a, row.b)]
    assert all(row.items_needed is None or row.items_needed > row.n_items for row in pairs)


def test_both_questions_stand_side_by_side_and_clusters_are_drawn_together():
    rng = np.random.default_rng(1)
    item, system = np.indices((24, 6)).reshape(2, -1)
    latent = rng.normal(size=6)[system] + rng.normal(size=6)[item // 4] + rng.normal(size=144)
    cells = pd.DataFrame({"item": item.astype(str), "system": system.astype(str)})
    human = cells.assign(question="q", annotator="a", value=latent, cluster=(item // 4).astype(str))
    scores = pd.concat(
        cells.assign(metric=name, value=latent + noise * rng.normal(size=144))
        for name, noise in (("good", 0.5), ("bad", 4.0))
    )
    rules = {"levels": ("pooled",), "coefficients": ("pearson",), "n_resamples": 200}
    alone, together = (
        report_from_tables(human, scores, Settings(cluster=cluster, **rules))
        for cluster in ("", "column")
    )
    [pair] = alone.comparisons
    assert pair.estimand == "these systems"
    assert pair.new_systems_low < pair.ci_low < pair.ci_high < pair.new_systems_high
    assert pair.new_systems_p_holm > pair.p_holm
    assert [row.n_units for row in alone.correlations] == [24, 24]
    assert [row.n_units for row in together.correlations] == [6, 6]
    assert alone.correlations[0].new_systems_low < alone.correlations[0].ci_low


def priced(results, reward="0.25", many=Decimal("0.40")):
    """What an assignment pays, 20 % on top, and more from ten assignments a HIT on."""

    def cost(size):
        return Decimal(reward) * (1 + (many if size >= 10 else Decimal("0.20")))

    return AssignmentPrice(Decimal(reward), cost)


def pair_needing(items, annotators):
    return RatedPairRecord(
        question="q", a="A", b="B", delta=0.2, se=0.1, ci_low=0.0, ci_high=0.4, test="quasi-f",
        freedom=20, p=0.05, p_adjusted=0.05, estimand="", n_items=40, n_annotators=6,
        items_needed=items, annotators_needed=annotators,
    )  # fmt: skip


@pytest.fixture
def rated():
    """40 items, each rated by three of six annotators."""
    return RatedSystemRecord(
        question="q", system="A", mean=3.0, ci_low=2.8, ci_high=3.2, method="", rank_low=1,
        rank_high=2, n_items=40, n_annotators=6, n_ratings=120,
    )  # fmt: skip


def test_what_to_buy_is_priced_with_fees(rated):
    # 80 items more by three each; six annotators more do as much as the first six: 120
    assert price_sentence(pair_needing(120, 12), rated, priced(rated)) == (
        "At $0.25 an assignment, with fees, buying costs: 80 more items, with 3 ratings "
        "each as now, about $72.00, or "
        "6 more annotators about $36.00."
    )
    only_one = price_sentence(pair_needing(None, 7), rated, priced(rated))
    assert only_one.endswith("buying costs: 1 more annotator about $6.00.")
    # another 24 annotators put twelve on an item, for the higher fee
    assert "24 more annotators about $168.00" in price_sentence(
        pair_needing(None, 30), rated, priced(rated)
    )


def test_what_nobody_knows_the_price_of_has_none(rated):
    assert price_sentence(pair_needing(120, 12), rated, None) == ""
    assert price_sentence(pair_needing(120, 12), rated, priced(rated, reward="0")) == ""
    assert price_sentence(pair_needing(None, None), rated, priced(rated)) == ""


def test_a_report_says_what_to_buy_and_no_price():
    results = results_of(0.2, n_items=30)
    [verdict] = verdicts(results, priced(results))
    assert verdict.purchase.startswith("Buy next: about")
    assert verdict.price.startswith("At $0.25 an assignment, with fees, buying costs: ")
    [text, _table] = rated_systems_section(results).parts
    assert verdict.purchase in text
    assert verdict.price not in text
    [unpriced] = verdicts(results)
    assert unpriced.price == ""
    [clear] = verdicts(results_of(1.0), priced(results))
    assert clear.price == ""


def test_a_pair_of_few_items_is_told_apart_nowhere_however_small_its_p():
    few = replace(pair_needing(None, None), n_items=9, p_adjusted=0.001)
    enough = replace(few, n_items=10)
    assert not is_told_apart(few, "A")
    assert is_told_apart(enough, "A")
    assert not is_told_apart(replace(enough, p_adjusted=0.06), "A")
    results = results_of(3.0, n_items=4)
    assert {(row.rank_low, row.rank_high) for row in results.rows(RatedSystemRecord)} == {(1, 3)}


def test_what_there_is_already_is_not_advised_to_buy(rated):
    rival = replace(rated, system="B", mean=2.8)
    open_pair = replace(pair_needing(1, 1), n_items=12, p_adjusted=0.2)
    purchase = verdict_of("q", [rated, rival], [open_pair], None).purchase
    assert purchase.startswith("Buy next: more items. How many cannot be said")
    assert "the 12 there are would commonly show a difference as large as that from B" in purchase
    more = replace(open_pair, items_needed=15)
    purchase = verdict_of("q", [rated, rival], [more], None).purchase
    assert purchase.startswith("Buy next: about 3 more items (15 in all). If the difference from B")


def test_what_more_items_would_show_is_said_beside_what_the_study_shows(rated):
    rival = replace(rated, system="B", mean=2.8)
    known = {"least_shown": 0.28, "least_shown_of_twice": 0.2}
    pair = replace(pair_needing(79, None), n_items=40, p_adjusted=0.2, **known)
    purchase = verdict_of("q", [rated, rival], [pair], None).purchase
    assert "the study shows differences from about 0.28 up; with 80 items instead of 40" in purchase
    assert purchase.endswith("from about 0.2 up.")


def test_what_to_buy_and_what_a_study_shows_go_by_the_level_to_which_p_is_adjusted():
    pairs = {(row.a, row.b): row for row in results_of(0.2, n_items=30).rows(RatedPairRecord)}
    # Of three pairs the one with the largest p is tested at .05, the one with the least at a third.
    ordered = sorted(pairs.values(), key=lambda row: row.p)
    for row, n_others in zip(ordered, (3, 2, 1), strict=True):
        level = 0.05 / n_others
        assert row.least_shown == pytest.approx(
            least_distinguishable(row.se, row.freedom, alpha=level)
        )
        assert row.least_shown_of_twice < row.least_shown
    assert ordered[0].least_shown / ordered[0].se > ordered[2].least_shown / ordered[2].se


def test_of_many_systems_the_best_is_not_told_apart_because_it_was_picked_as_the_best():
    rng = np.random.default_rng(4)
    rows = [
        {"item": f"i{i}", "system": f"s{s:02}", "annotator": f"a{a}", "value": rng.normal()}
        for s in range(31) for i in range(10) for a in range(3)
    ]  # fmt: skip
    compared = compare_rated_systems(pd.DataFrame(rows), flips=False).comparisons
    assert len(compared) == 30
    least = min(compared, key=lambda row: row["p"])
    assert least["p_adjusted"] == pytest.approx(min(1.0, 465 * least["p"]))


def test_where_a_study_can_show_nothing_that_the_scale_has_room_for_it_says_so(rated):
    rival = replace(rated, system="B", mean=2.8)
    known = {"least_shown": 4.2, "least_shown_of_twice": 3.0, "ci_low": -5.0, "ci_high": 5.4}
    pair = replace(pair_needing(79, None), p_adjusted=0.2, **known)
    verdict = verdict_of("q", [rated, rival], [pair], None, scale=(1.0, 5.0))
    assert "it is ahead of B by 0.20 [-4.00, 4.00]" in verdict.chance
    assert verdict.purchase.endswith(
        "As it stands, the study can show no difference that the scale has room for."
    )


def test_ratings_are_said_to_lie_at_one_end_only_where_most_items_do(rated):
    rival = replace(rated, system="B", mean=2.8, n_items_off_end=2)
    few = replace(rated, n_items=3, n_items_off_end=3)
    pair = pair_needing(79, None)
    assert verdict_of("q", [few, replace(rival, n_items=3)], [pair], None).notes == (
        "With 3 items only, this is a rough guide.",
    )
    one = verdict_of("q", [rated, rival], [pair], None).notes
    assert one == (
        "Most ratings of B lie at one end of the scale, and 2 items carry its mean: a test of "
        "means is a rough guide.",
    )
    both = verdict_of("q", [replace(rated, n_items_off_end=4), rival], [pair], None).notes
    assert both == (
        "Most ratings of A and B lie at one end of the scale, and fewer than 5 items carry each "
        "mean: a test of means is a rough guide.",
    )


def test_a_difference_too_small_for_any_purchase_is_not_advised_to_be_bought(rated):
    near, far = replace(rated, system="B", mean=2.999), replace(rated, system="C", mean=2.8)
    minute = replace(pair_needing(784_000, 117_600), delta=0.001, p_adjusted=0.9)
    price = priced(rated)
    alone = verdict_of("q", [rated, near], [minute], price)
    assert alone.purchase.startswith("Buy next: nothing. To show a difference as small as that")
    assert "would take about 780,000 items." in alone.purchase
    assert (alone.n_more_items, alone.price) == (0, "")
    other = replace(pair_needing(90, None), b="C", p_adjusted=0.2)
    both = verdict_of("q", [rated, near, far], [minute, other], price)
    assert both.purchase.startswith("Buy next: about 50 more items (90 in all). If the difference")
    assert "from C is as large as it looks" in both.purchase
    assert both.purchase.endswith("The difference from B is too small for a purchase within reach.")
    assert both.n_more_items == 50
    assert "50 more items" in both.price


def test_a_report_says_how_far_the_best_is_ahead_and_which_others_are_not_decided():
    results = results_of(0.02, n_items=30)
    [verdict] = verdicts(results)
    pairs = results.rows(RatedPairRecord)
    best, second, third = (row.system for row in results.rows(RatedSystemRecord))
    number = r"(-?\d\.\d\d)"
    lead = rf"({second}|{third}) by {number} \[{number}, {number}\]"
    said = re.findall(lead, verdict.chance)
    for rival, delta, low, high in said:
        pair = next(one for one in pairs if {one.a, one.b} == {best, rival})
        sign = 1 if pair.a == best else -1
        limits = sorted((sign * pair.ci_low, sign * pair.ci_high))
        assert [delta, low, high] == [f"{one:.2f}" for one in (sign * pair.delta, *limits)]
    assert [row[0] for row in said] == [second, third]
    assert verdict.others == f"Nor is it decided which is better of these: {second} or {third}."
    [clear] = verdicts(results_of(1.0))
    assert clear.others == ""
    assert re.search(r"ahead of fair by 1\.\d\d \[.+?\] and poor by", clear.chance)


def test_an_interval_beside_an_undecided_pair_is_said_to_be_of_the_pair_alone():
    row = {
        **{"a": "a", "b": "b", "delta": 0.4, "se": 0.17, "ci_low": 0.05, "ci_high": 0.75},
        **{"p": 0.03, "p_adjusted": 0.09, "n_items": 30, "estimand": "these systems"},
    }
    sentence = comparison_sentence(row)
    assert "not distinguished once p is adjusted for all pairs: 0.0900 after Holm" in sentence
    assert "an interval of this pair alone" in sentence
    plain = comparison_sentence(row | {"ci_low": -0.1, "p": 0.2})
    assert "alone" not in plain
    assert "too few items" in comparison_sentence(row | {"n_items": 9})


def ratings_at_the_floor(every: int) -> pd.DataFrame:
    """Of one system's items only one in so many is off the floor of the scale."""
    rng = np.random.default_rng(2)
    items, annotators = np.indices((24, 3)).reshape(2, -1)
    rows = [
        {
            "item": f"i{item}",
            "annotator": f"a{who}",
            "system": name,
            "question": "q",
            "value": value,
        }
        for item, who in zip(items, annotators, strict=True)
        for name, value in (
            ("floored", 1.0 if item % every else float(rng.integers(2, 6))),
            ("even", float(rng.integers(1, 6))),
        )
    ]
    return pd.DataFrame(rows)


def test_a_mean_that_fewer_than_five_items_carry_is_noted():
    ratings = ratings_at_the_floor(every=6)
    scores = ratings[ratings["annotator"] == "a0"].assign(metric="m")
    report = report_from_tables(ratings, scores, Settings(n_resamples=0))
    [verdict] = verdicts(TableResults("s", report))
    assert "4 items carry its mean" in " ".join(verdict.notes)
    assert "even" not in " ".join(verdict.notes)
    compared = compare_rated_systems(ratings.drop(columns="question"))
    assert any("ratings of floored lie at one end" in note for note in compared.notes)


def test_ratings_a_little_before_the_end_of_a_slider_are_taken_as_at_it():
    ratings = ratings_at_the_floor(every=6).drop(columns="question")
    slider = ratings["value"].sub(1) * 25
    short = slider.where(slider > 0, np.arange(len(slider)) % 4)
    for values in (slider, short):
        compared = compare_rated_systems(ratings.assign(value=values))
        assert compared.comparisons[0]["test"] == "quasi-f-hall"
        assert any("ratings of floored lie at one end" in note for note in compared.notes)


def test_where_many_ratings_lie_at_one_end_the_test_is_corrected_for_skewness():
    compared = compare_rated_systems(ratings_at_the_floor(every=4).drop(columns="question"))
    assert not compared.notes
    [pair] = compared.comparisons
    assert pair["test"] == "quasi-f-hall"
    assert compared.means["floored"].method == "quasi-f-hall"
    assert compared.means["even"].method == "quasi-f"
