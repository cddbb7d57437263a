from math import log, sqrt
from statistics import fmean, pstdev

import numpy as np
import pytest

from error_codes import InvalidValue
from stats.ranking import graded_lists, judged_lists, measure
from stats.ranking.judged_lists import JudgedLists
from stats.ranking.query_difficulty import (
    n_sigma,
    nqc,
    query_difficulty,
    sigma_k,
    sigma_max,
    smv,
    wig,
)
from tests.codes import refused

Run = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]
N_TOPICS = 60
OF_PYTREC_EVAL = {
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "RR": "recip_rank",
    "Success@1": "success_1",
    "Success@5": "success_5",
    "P@5": "P_5",
    "P@30": "P_30",
    "R@10": "recall_10",
    "Rprec": "Rprec",
    "AP": "map",
    "AP@10": "map_cut_10",
    "Bpref": "bpref",
    "infAP": "infAP",
}


def collection(seed: int, *, lowest: int) -> tuple[Run, Grades]:
    """Topics with tied scores, unjudged documents, short lists, and some with nothing relevant."""
    rng = np.random.default_rng(seed)
    names = [f"{letter}{number}" for letter in "aBz" for number in range(40)]
    run: Run = {}
    grades: Grades = {}
    for number in range(N_TOPICS):
        topic = str(number)
        size = int(rng.integers(1, 60))
        listed = rng.choice(names, size, replace=False)
        run[topic] = {str(doc): round(float(rng.normal()), 1) for doc in listed}
        pooled = rng.choice(names, int(rng.integers(1, 50)), replace=False)
        highest = 0 if number % 9 == 0 else 3
        grades[topic] = {str(doc): int(rng.integers(lowest, highest + 1)) for doc in pooled}
    return run, grades


def as_lists(run: Run, grades: Grades, **options: object) -> JudgedLists:
    """The collection as numbers; documents in the order of their bytes."""
    names = sorted({doc for each in (*run.values(), *grades.values()) for doc in each})
    number = {name: position for position, name in enumerate(names)}
    of_topic = {topic: position for position, topic in enumerate(sorted(grades))}
    listed = [(of_topic[t], number[d], s) for t, docs in run.items() for d, s in docs.items()]
    judged = [(of_topic[t], number[d], g) for t, docs in grades.items() for d, g in docs.items()]
    topics, documents, scores = (np.array(column) for column in zip(*listed, strict=True))
    columns = (np.array(column) for column in zip(*judged, strict=True))
    return judged_lists(topics, documents, scores, *columns, n_topics=len(of_topic), **options)  # type: ignore[arg-type]


def of_ir_measures(run: Run, grades: Grades, name: str) -> np.ndarray:
    """Its values by topic; it is given ranks, since its providers break ties in two ways."""
    import ir_measures

    ranked = {
        topic: {
            doc: -float(rank)
            for rank, doc in enumerate(
                sorted(docs, key=lambda doc: (np.float32(docs[doc]), doc), reverse=True)
            )
        }
        for topic, docs in run.items()
    }
    values = ir_measures.iter_calc([ir_measures.parse_measure(name)], grades, ranked)
    by_topic = {each.query_id: each.value for each in values}
    return np.array([by_topic[topic] for topic in sorted(grades)])


WITH_LEVELS = {"RR", "P@5", "R@10", "AP", "Bpref", "infAP", "Success@5"}


@pytest.mark.parametrize("lowest", [0, -1])
@pytest.mark.parametrize("name", OF_PYTREC_EVAL)
def test_each_topic_has_the_value_that_pytrec_eval_gives_it_at_any_level(name: str, lowest: int):
    import pytrec_eval

    run, grades = collection(7, lowest=lowest)
    theirs = OF_PYTREC_EVAL[name]
    kind, at, cutoff = name.partition("@")
    of_levels = [(level, f"{kind}(rel={level}){at}{cutoff}") for level in (1, 2, 3)]
    for level, ours in [(1, name), *(of_levels if name in WITH_LEVELS else [])]:
        evaluator = pytrec_eval.RelevanceEvaluator(grades, {theirs}, relevance_level=level)
        values = evaluator.evaluate(run)
        expected = [values[topic][theirs] for topic in sorted(grades)]
        np.testing.assert_allclose(measure(ours).values(as_lists(run, grades)), expected, atol=1e-6)


@pytest.mark.parametrize("lowest", [0, -1])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("RR@10", "RR@10"),
        ("RR@1", "RR@1"),
        ("Pooled@10", "Judged@10"),
        ("nDCG(judged_only=True)@10", "nDCG(judged_only=True)@10"),
        ("P(judged_only=True)@5", "P(judged_only=True)@5"),
        ("AP(judged_only=True)", "AP(judged_only=True)"),
    ],
)
def test_each_topic_has_the_value_that_ir_measures_gives_it(ours: str, theirs: str, lowest: int):
    run, grades = collection(9, lowest=lowest)
    values = measure(ours).values(as_lists(run, grades))
    np.testing.assert_allclose(values, of_ir_measures(run, grades, theirs), atol=1e-6)


def test_measures_of_small_lists_are_those_by_hand():
    lists = graded_lists([[1, -1, None, 0]], [[1, 0, -1]])
    assert measure("Judged@4").values(lists).tolist() == [0.5]
    assert measure("Pooled@4").values(lists).tolist() == [0.75]
    lists = graded_lists([[1, 3]], [[3, 1]])
    at_best = 7 + 1 / np.log2(3)
    value = measure("nDCG(dcg='exp-log2')").values(lists)
    assert value == pytest.approx((1 + 7 / np.log2(3)) / at_best)
    assert measure("nDCG").values(lists) != pytest.approx(value)
    lists = graded_lists([[1, None, 0]], [[1, 0]])
    low, more = (measure(name).values(lists) for name in ("RBP(p=0.5)", "RBPresidual(p=0.5)"))
    assert low == pytest.approx(0.5)
    assert more == pytest.approx(0.25 + 0.125)
    graded = graded_lists([[2, 1]], [[2, 1]])
    assert measure("RBP(p=0.5, max_rel=4)").values(graded) == pytest.approx(0.25 + 0.0625)
    # trec_eval's own example: one nonrelevant document above four of six relevant ones.
    lists = graded_lists([[0, 1, 1, 1, 1]], [[1] * 6 + [0] * 4])
    assert measure("Bpref").values(lists).tolist() == [0.5]
    lists = graded_lists([[], [0, None]], [[1], [0]])
    for name in ("nDCG@10", "RR", "AP", "R@5", "P@5", "Bpref", "infAP", "Rprec", "Success@1"):
        assert measure(name).values(lists).tolist() == [0.0, 0.0], name
    assert measure("Judged@5").values(lists).tolist() == [0.0, 0.5]


def test_grades_below_0_say_the_same_and_the_order_of_ties_can_be_chosen():
    """pytrec_eval itself ends with a fault of memory on grades below -1."""
    run, grades = collection(11, lowest=-3)
    level = {t: {d: max(g, -1) for d, g in docs.items()} for t, docs in grades.items()}
    for name in (*OF_PYTREC_EVAL, "RBP", "Judged@5"):
        ours, theirs = (measure(name).values(as_lists(run, each)) for each in (grades, level))
        np.testing.assert_array_equal(ours, theirs)
    run, grades = collection(10, lowest=0)
    lists = as_lists(run, grades)
    inferred, average = measure("infAP").values(lists), measure("AP").values(lists)
    # Documents in no pool count for the one and not for the other.
    pooled = as_lists(
        {t: {d: s for d, s in docs.items() if d in grades[t]} for t, docs in run.items()}, grades
    )
    np.testing.assert_allclose(
        measure("infAP").values(pooled), measure("AP").values(pooled), atol=1e-4
    )
    assert inferred.shape == average.shape == (N_TOPICS,)
    run = {"1": {"a": 1.0, "b": 1.0}}
    grades = {"1": {"a": 1}}
    assert measure("RR").values(as_lists(run, grades)).tolist() == [0.5]
    assert measure("RR").values(as_lists(run, grades, ties="rising")).tolist() == [1.0]
    close = {"1": {"a": 0.9000000002, "b": 0.9000000001}}
    assert measure("RR").values(as_lists(close, grades)).tolist() == [0.5]
    exact = as_lists(close, grades, single_precision=False)
    assert measure("RR").values(exact).tolist() == [1.0]


def test_a_measure_is_named_as_people_know_it_and_what_is_none_is_refused():
    for text, name in (
        ("map", "AP"),
        ("map_cut_10", "AP@10"),
        ("recip_rank", "RR"),
        ("P_5", "P@5"),
        ("success_1", "Success@1"),
        ("recall_100", "R@100"),
        ("infAP", "infAP"),
        ("ndcg@20", "nDCG@20"),
        ("nDCG(dcg=exp-log2)@5", "nDCG(dcg='exp-log2')@5"),
        ("RBP(p=0.8)", "RBP"),
        ("RBP( p = .95 , rel=2)", "RBP(p=0.95, rel=2)"),
        ("AP(judged_only=false)", "AP"),
    ):
        assert measure(text).name == name
        assert measure(measure(text).name) == measure(text)
    for text, code in (
        ("ERR@20", "unknown_measure"),
        ("P", "cutoff_missing"),
        ("P@0", "cutoff_out_of_range"),
        ("Bpref@10", "cutoff_unused"),
        ("nDCG(rel=2)@10", "unknown_setting"),
        ("P(rel=0)@5", "rel_out_of_range"),
        ("RBP(p=1)", "p_out_of_range"),
        ("RBP(rel=2, max_rel=3)", "rel_and_max_rel"),
        ("nDCG(dcg='log10')@5", "unknown_dcg"),
        ("AP(judged_only=maybe)", "unknown_judged_only"),
        ("nDCG@\N{ARABIC-INDIC DIGIT ONE}", "unknown_measure"),
        ("P(rel=\N{ARABIC-INDIC DIGIT TWO})@5", "rel_out_of_range"),
        ("RBP(p=.\N{ARABIC-INDIC DIGIT FIVE})", "p_out_of_range"),
        ("", "unknown_measure"),
    ):
        with refused(InvalidValue, code):
            measure(text)
    for changed, code in (
        ({"scores": np.array([1.0, np.nan])}, "scores_missing"),
        ({"documents": np.array([1, 1])}, "repeated_documents"),
        ({"judged_documents": np.array([0, 0])}, "repeated_documents"),
        ({"grades": np.array([1, 128])}, "grades_out_of_range"),
        ({"topics": np.array([0, 1])}, "topics_out_of_range"),
        ({"documents": np.array([0.0, 1.0])}, "documents_not_whole"),
        ({"ties": "random"}, "unknown_ties"),
    ):
        zeros, both = np.zeros(2, dtype=int), np.array([0, 1])
        columns = {"topics": zeros, "documents": both, "scores": np.array([1.0, 2.0])}
        columns |= {"judged_topics": zeros, "judged_documents": both, "grades": both}
        with refused(InvalidValue, code):
            judged_lists(**columns | changed, n_topics=1)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lists():
    """Lists of 3 to 60 positive scores, in no order, and what the corpus scores."""
    rng = np.random.default_rng(3)
    lists = [rng.gamma(2, 3, size=int(n)) for n in rng.integers(3, 61, size=40)]
    return lists, rng.uniform(0.2, 2, size=40) * rng.choice([-1, 1], size=40)


def padded(lists):
    table = np.full((len(lists), max(map(len, lists))), np.nan)
    for row, scores in zip(table, lists, strict=True):
        row[: len(scores)] = scores
    return table


def test_each_predictor_is_its_formula_and_missing_without_a_list_or_a_divisor(lists):
    scores, corpus = lists
    table, k = padded(scores), 10
    falling = [sorted(each.tolist(), reverse=True) for each in scores]
    expected = {
        "max": [each[0] for each in falling],
        "mean": [fmean(each[:k]) for each in falling],
        "sigma_k": [pstdev(each[:k]) for each in falling],
        "sigma_max": [max(pstdev(each[:n]) for n in range(1, len(each) + 1)) for each in falling],
        "n_sigma": [pstdev([s for s in each if s >= 0.3 * each[0]]) / sqrt(2) for each in falling],
        "nqc": [pstdev(e[:k]) / abs(c) for e, c in zip(falling, corpus, strict=True)],
        "wig": [
            fmean([s - c for s in e[:k]]) / sqrt(2) for e, c in zip(falling, corpus, strict=True)
        ],
        "smv": [
            fmean([s * abs(log(s / fmean(e[:k]))) for s in e[:k]]) / abs(c)
            for e, c in zip(falling, corpus, strict=True)
        ],
    }
    for name, values in expected.items():
        found = query_difficulty(
            name, table, corpus_score=corpus, cutoff=k, share=0.3, query_terms=2
        )
        np.testing.assert_allclose(found, values, rtol=1e-10, err_msg=name)
    table = np.array([[1.0, 2.0], [np.nan, np.nan]])
    for name in ("nqc", "wig", "smv", "sigma_k", "sigma_max", "n_sigma", "max", "mean"):
        found = query_difficulty(name, table, corpus_score=[1.0, 1.0])
        assert np.isnan(found).tolist() == [False, True], name
    assert np.isnan(nqc([[1.0, 2.0]], [0.0])).all()
    assert np.isnan(smv([[1.0, 2.0]], [0.0])).all()
    assert wig([[1.0, 2.0]], [0.0]).tolist() == [1.5]
    small = np.array([[0.3, 0.2, 0.1, 0.0]])
    np.testing.assert_allclose(sigma_max(small + 1e6), sigma_max(small), rtol=1e-8)


def test_arguments_out_of_range_are_refused():
    for call, code in (
        (lambda: n_sigma([[1.0, -1.0]]), "scores_not_positive"),
        (lambda: smv([[-1.0, -4.0]], [1.0]), "scores_not_positive"),
        (lambda: n_sigma([[1.0]], share=0), "share_out_of_range"),
        (lambda: sigma_k([1.0, 2.0]), "scores_shape"),
        (lambda: sigma_k([[1.0, np.inf]]), "scores_not_finite"),
        (lambda: sigma_k([[1.0]], cutoff=0), "cutoff_out_of_range"),
        (lambda: wig([[1.0]], [0.0], query_terms=0), "query_terms_out_of_range"),
        (lambda: query_difficulty("nqc", [[1.0]]), "corpus_score_missing"),
        (lambda: query_difficulty("clarity", [[1.0]]), "unknown_predictor"),
    ):
        with refused(InvalidValue, code):
            call()
