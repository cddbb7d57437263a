import re
from dataclasses import replace
from decimal import Decimal
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from annotation.assignment_facts import AssignmentPrice
from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.inference.larger_studies import least_distinguishable
from stats.significance import holm
from tests.codes import codes_of
from validation.analysis import Settings, rated_systems, report_from_tables
from validation.analysis.records import RatedPairRecord, RatedSystemRecord
from validation.documents.purchases import price_sentence
from validation.documents.rated_systems import (
    is_told_apart,
    rated_systems_section,
    verdict_of,
    verdicts,
)
from validation.pages.result_sentences import Scale, Standing
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


def numbers_in(text):
    return re.findall(r"-?\$?\d[\d.,]*(?<=\d)", text)


def test_a_clear_winner_needs_no_purchase_and_chance_is_said_with_what_would_settle_it():
    results = results_of(1.0)
    [verdict] = verdicts(results)
    assert verdict.best.startswith("q: ")
    assert "good" in verdict.best
    assert (verdict.chance.code, verdict.purchase.code) == ("decided", "nothing")
    assert (verdict.others, verdict.n_more_items) == ("", 0)
    [priced_verdict] = verdicts(results, priced())
    assert priced_verdict.price == ""
    ranks = [(row.system, row.rank_low, row.rank_high) for row in results.rows(RatedSystemRecord)]
    assert ranks == [("good", 1, 1), ("fair", 2, 2), ("poor", 3, 3)]
    assert rated_systems_section(results).parts[0].startswith(verdict.best)
    results = results_of(3.0, n_items=4)
    systems, pairs = results.rows(RatedSystemRecord), results.rows(RatedPairRecord)
    assert max(row.p_adjusted for row in pairs) < 0.05
    assert {(row.rank_low, row.rank_high) for row in systems} == {(1, 3)}
    [verdict] = verdicts(results, AssignmentPrice(Decimal("0.10"), lambda _size: Decimal("0.12")))
    assert verdict.chance.code == verdict.purchase.code == "too_few_items"
    assert numbers_in(verdict.purchase) == ["10", "4"]
    assert verdict.n_more_items == 6
    assert numbers_in(verdict.price)[1] == "6"
    standing = Standing(Scale("mean", 0, 1), list(systems), list(pairs))
    decided = replace(standing, systems=[replace(row, n_items=40) for row in systems])
    assert standing.answer != decided.answer
    results = results_of(0.02, n_items=12, n_annotators=2)
    [verdict] = verdicts(results)
    assert verdict.chance.code == "undecided"
    assert verdict.purchase.code not in ("nothing", "too_few_items")
    assert codes_of(verdict.notes) == ["few_items", "few_annotators"]
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


def priced(reward="0.25", many=Decimal("0.40")):
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
    return RatedSystemRecord(
        question="q", system="A", mean=3.0, ci_low=2.8, ci_high=3.2, method="", rank_low=1,
        rank_high=2, n_items=40, n_annotators=6, n_ratings=120,
    )  # fmt: skip


def test_a_report_says_what_to_buy_at_what_price_and_not_what_there_is_already(rated):
    for needed, numbers in (
        # 80 items more by three each; six annotators more do as much as the first six: 120
        ((120, 12), ["$0.25", "80", "3", "$72.00", "6", "$36.00"]),
        ((None, 7), ["$0.25", "1", "$6.00"]),
        # another 24 annotators put twelve on an item, for the higher fee
        ((None, 30), ["$0.25", "24", "$168.00"]),
        ((None, None), []),
    ):
        pair = pair_needing(*needed)
        assert numbers_in(price_sentence(pair, rated, priced())) == numbers
        assert price_sentence(pair, rated, None) == price_sentence(pair, rated, priced("0")) == ""
    results = results_of(0.2, n_items=30)
    [verdict] = verdicts(results, priced())
    assert verdict.purchase.code in ("items", "items_or_annotators")
    assert numbers_in(verdict.price)[0] == "$0.25"
    [text, _table] = rated_systems_section(results).parts
    assert verdict.purchase in text
    assert verdict.price not in text
    [unpriced] = verdicts(results)
    assert unpriced.price == ""
    pairs = {(row.a, row.b): row for row in results.rows(RatedPairRecord)}
    # Of three pairs the one with the largest p is tested at .05, the one with the least at a third.
    ordered = sorted(pairs.values(), key=lambda row: row.p)
    for row, n_others in zip(ordered, (3, 2, 1), strict=True):
        level = 0.05 / n_others
        assert row.least_shown == pytest.approx(
            least_distinguishable(row.se, row.freedom, alpha=level)
        )
        assert row.least_shown_of_twice < row.least_shown
    assert ordered[0].least_shown / ordered[0].se > ordered[2].least_shown / ordered[2].se
    few = replace(pair_needing(None, None), n_items=9, p_adjusted=0.001)
    enough = replace(few, n_items=10)
    assert not is_told_apart(few, "A")
    assert is_told_apart(enough, "A")
    assert not is_told_apart(replace(enough, p_adjusted=0.06), "A")
    rival = replace(rated, system="B", mean=2.8)
    open_pair = replace(pair_needing(1, 1), n_items=12, p_adjusted=0.2)
    stricter = verdict_of("q", [rated, rival], [open_pair], None)
    assert (stricter.purchase.code, stricter.n_more_items) == ("stricter_test", 0)
    more = verdict_of("q", [rated, rival], [replace(open_pair, items_needed=15)], None)
    assert (more.purchase.code, more.n_more_items) == ("items", 3)
    assert numbers_in(more.purchase)[:2] == ["3", "15"]
    known = {"least_shown": 0.28, "least_shown_of_twice": 0.2}
    pair = replace(pair_needing(79, None), n_items=40, p_adjusted=0.2, **known)
    purchase = verdict_of("q", [rated, rival], [pair], None).purchase
    assert numbers_in(purchase)[-4:] == ["0.28", "80", "40", "0.2"]


def test_of_many_systems_the_best_is_not_told_apart_because_it_was_picked_as_the_best():
    rng = np.random.default_rng(4)
    rows = [
        {"item": f"i{i}", "system": f"s{s:02}", "annotator": f"a{a}", "value": rng.normal()}
        for s in range(31) for i in range(10) for a in range(3)
    ]  # fmt: skip
    compared = rated_systems.compare_rated_systems(pd.DataFrame(rows), flips=False).comparisons
    assert len(compared) == 30
    least = min(compared, key=lambda row: row["p"])
    assert least["p_adjusted"] == pytest.approx(min(1.0, 465 * least["p"]))


def test_ratings_at_one_end_and_differences_too_small_for_any_purchase_are_said(rated):
    rival = replace(rated, system="B", mean=2.8, n_items_off_end=2)
    few = replace(rated, n_items=3, n_items_off_end=3)

    def notes(*systems):
        return verdict_of("q", list(systems), [pair_needing(79, None)], None).notes

    assert codes_of(notes(few, replace(rival, n_items=3))) == ["few_items"]
    [one] = notes(rated, rival)
    assert (one.code, numbers_in(one)) == ("few_items_off_end", ["2"])
    assert " B " in one
    [both] = notes(replace(rated, n_items_off_end=4), rival)
    assert (both.code, numbers_in(both)) == ("few_items_off_end", ["5"])
    assert "A and B" in both
    rival = replace(rated, system="B", mean=2.8)
    known = {"least_shown": 4.2, "least_shown_of_twice": 3.0, "ci_low": -5.0, "ci_high": 5.4}
    pair = replace(pair_needing(79, None), p_adjusted=0.2, **known)
    verdict = verdict_of("q", [rated, rival], [pair], None, scale=(1.0, 5.0))
    assert numbers_in(verdict.chance)[:3] == ["0.20", "-4.00", "4.00"]
    assert "4.2" not in numbers_in(verdict.purchase)
    wider = verdict_of("q", [rated, rival], [pair], None, scale=(1.0, 9.0))
    assert "4.2" in numbers_in(wider.purchase)
    near, far = replace(rated, system="B", mean=2.999), replace(rated, system="C", mean=2.8)
    minute = replace(pair_needing(784_000, 117_600), delta=0.001, p_adjusted=0.9)
    alone = verdict_of("q", [rated, near], [minute], priced())
    assert (alone.purchase.code, numbers_in(alone.purchase)) == (
        "out_of_reach",
        ["0.00", "780,000"],
    )
    assert (alone.n_more_items, alone.price) == (0, "")
    other = replace(pair_needing(90, None), b="C", p_adjusted=0.2)
    both = verdict_of("q", [rated, near, far], [minute, other], priced())
    assert (both.purchase.code, both.n_more_items) == ("items", 50)
    assert numbers_in(both.purchase)[:2] == ["50", "90"]
    assert re.findall(r"\b[BC]\b", both.purchase) == ["C", "B"]
    assert "50" in numbers_in(both.price)


def test_a_report_says_how_far_the_best_is_ahead_and_which_others_are_not_decided():
    results = results_of(0.02, n_items=30)
    [verdict] = verdicts(results)
    pairs = results.rows(RatedPairRecord)
    best, second, third = (row.system for row in results.rows(RatedSystemRecord))
    number = r"(-?\d\.\d\d)"
    said = re.findall(rf"({second}|{third}) \w+ {number} \[{number}, {number}\]", verdict.chance)
    for rival, delta, low, high in said:
        pair = next(one for one in pairs if {one.a, one.b} == {best, rival})
        sign = 1 if pair.a == best else -1
        limits = sorted((sign * pair.ci_low, sign * pair.ci_high))
        assert [delta, low, high] == [f"{one:.2f}" for one in (sign * pair.delta, *limits)]
    assert [row[0] for row in said] == [second, third]
    assert re.findall(f"{best}|{second}|{third}", verdict.others) == [second, third]
    [clear] = verdicts(results_of(1.0))
    assert re.search(rf"fair \w+ {number} \[.+?\] and poor", clear.chance)


def test_conclusions_go_by_adjusted_p_and_claims_state_the_share_of_who_rated_most(rated):
    for changes, code in (
        ({}, "undecided_after_adjustment"),
        ({"ci_low": -0.1, "p": 0.2}, "undecided"),
        ({"n_items": 9}, "too_few_items"),
        ({"p_adjusted": 0.01}, "better"),
        ({"p": None}, "too_little_data"),
    ):
        row = {
            **{"a": "a", "b": "b", "delta": 0.4, "se": 0.17, "ci_low": 0.05, "ci_high": 0.75},
            **{"p": 0.03, "p_adjusted": 0.09, "n_items": 30, "estimand": "these systems"},
        }
        assert rated_systems.comparison_sentence(row | changes).code == code
    row = {
        **{"a": "a", "b": "b", "delta": 0.4, "se": 0.1, "ci_low": 0.2, "ci_high": 0.6},
        **{"p": 0.01, "p_adjusted": 0.01, "n_items": 30, "n_annotators": 18},
        "estimand": rated_systems.ESTIMANDS["two-way-clusters"],
    }
    assert numbers_in(rated_systems.comparison_sentence(row | {"busiest_share": 0.43}))[-2:] == [
        "18",
        "43",
    ]
    assert "18" not in numbers_in(rated_systems.comparison_sentence(row | {"busiest_share": 0.1}))
    rival, busy = replace(rated, system="B", mean=2.8), replace(rated, busiest_share=0.43)
    [note] = verdict_of("q", [busy, rival], [pair_needing(1, 1)], None).notes
    assert (note.code, numbers_in(note)) == ("uneven_annotators", ["6", "43"])
    standing = Standing(Scale("mean", 1, 5), [busy, rival], [pair_needing(1, 1)])
    assert "uneven_annotators" in codes_of(standing.details)


def ratings_at_the_floor(every: int) -> pd.DataFrame:
    """Of one system's items only one in so many is off the floor of the scale."""
    rng = np.random.default_rng(2)
    items, annotators = np.indices((24, 3)).reshape(2, -1)
    rows = [
        {"item": f"i{item}", "annotator": f"a{who}", "system": name, "question": "q",
         "value": value}
        for item, who in zip(items, annotators, strict=True)
        for name, value in (
            ("floored", 1.0 if item % every else float(rng.integers(2, 6))),
            ("even", float(rng.integers(1, 6))),
        )
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_ratings_near_one_end_are_noted_or_the_test_is_corrected_for_skewness():
    ratings = ratings_at_the_floor(every=6)
    scores = ratings[ratings["annotator"] == "a0"].assign(metric="m")
    report = report_from_tables(ratings, scores, Settings(n_resamples=0))
    [verdict] = verdicts(TableResults("s", report))
    [note] = [note for note in verdict.notes if note.code == "few_items_off_end"]
    assert numbers_in(note) == ["4"]
    assert re.findall("floored|even", note) == ["floored"]
    ratings = ratings.drop(columns="question")
    # A little before the end of a slider is taken as at it.
    slider = ratings["value"].sub(1) * 25
    for values in (ratings["value"], slider, slider.where(slider > 0, np.arange(len(slider)) % 4)):
        compared = rated_systems.compare_rated_systems(ratings.assign(value=values))
        assert compared.comparisons[0]["test"] == "quasi-f-hall"
        [note] = [note for note in compared.notes if note.code == "few_items_off_end"]
        assert re.findall("floored|even", note) == ["floored"]
    compared = rated_systems.compare_rated_systems(
        ratings_at_the_floor(every=4).drop(columns="question")
    )
    assert not compared.notes
    [pair] = compared.comparisons
    assert pair["test"] == "quasi-f-hall"
    assert compared.means["floored"].method == "quasi-f-hall"
    assert compared.means["even"].method == "quasi-f"


def equal_systems(rng, n_systems, n_annotators):
    """Ratings, shape (n_systems, n_items, n_annotators), of systems that differ in nothing."""
    shape = (n_systems, 50, n_annotators)
    of_items = 0.3 * rng.normal(size=(n_systems, 50, 1))
    of_annotators = 0.5 * rng.normal(size=(n_systems, 1, n_annotators))
    return of_items + of_annotators + rng.normal(size=shape)


def frame_of(ratings):
    system, item, annotator = np.indices(ratings.shape).reshape(3, -1)
    columns = {"system": system, "item": item, "annotator": annotator, "value": ratings.ravel()}
    return pd.DataFrame(columns).astype({"system": str})


def pairs_of(ratings):
    item, annotator = np.indices(ratings.shape[1:]).reshape(2, -1)
    for a, b in combinations(range(len(ratings)), 2):
        lead = mean_over_items_and_annotators(item, annotator, (ratings[a] - ratings[b]).ravel())
        yield {"a": str(a), "b": str(b), "p": lead.p}, lead


def test_p_of_a_pair_is_that_of_its_family_and_a_study_goes_by_the_test():
    [(row, lead)] = pairs_of(equal_systems(np.random.default_rng(0), 2, 4))
    [adjusted] = rated_systems.adjusted_in_family([(row, lead)], 0)
    assert adjusted["p_adjusted"] == adjusted["p_of_family"] == lead.p
    assert adjusted["freedom_of_family"] == pytest.approx(lead.freedom)
    frame = frame_of(equal_systems(np.random.default_rng(1), 5, 4))
    rows = rated_systems.compare_rated_systems(frame, flips=False).comparisons
    assert all(row["freedom_of_family"] <= row["freedom"] for row in rows)
    assert all(row["p_of_family"] >= row["p"] for row in rows)
    assert any(row["p_of_family"] > row["p"] for row in rows)
    adjusted = holm([row["p_of_family"] for row in rows]).tolist()
    assert [row["p_adjusted"] for row in rows] == pytest.approx(adjusted)
    pairs = list(pairs_of(equal_systems(np.random.default_rng(1), 5, 4)))
    rows = rated_systems.adjusted_in_family(pairs, 0)
    least_freedom = min(row["freedom_of_family"] for row in rows)
    assert least_freedom < max(lead.freedom for _row, lead in pairs)
    for row, (_, lead) in zip(rows, pairs, strict=True):
        level = 0.05 / sum(one["p_of_family"] >= row["p_of_family"] for one in rows)
        least = least_distinguishable(lead.se, row["freedom_of_family"], alpha=level)
        assert row["least_shown"] == pytest.approx(least)
        # twice the items say no more of annotators than as many do
        assert row["least_shown_of_twice"] > least / np.sqrt(2)
    frame = frame_of(equal_systems(np.random.default_rng(2), 4, 5))
    frame = frame[(frame["item"] + frame["annotator"]) % 3 > 0]
    rows = rated_systems.compare_rated_systems(frame, flips=False).comparisons
    assert {row["test"] for row in rows} == {"two-way-clusters"}
    assert all(row["freedom_of_family"] == row["freedom"] for row in rows)
    assert all(row["p_of_family"] == row["p"] for row in rows)
    frame = pd.DataFrame(
        {"system": list("aabb"), "item": [1, 2, 3, 4], "annotator": "x", "value": [1.0, 2, 3, 4]}
    )
    [row] = rated_systems.compare_rated_systems(frame, flips=False).comparisons
    assert row["p"] is row["p_of_family"] is row["p_adjusted"] is None
