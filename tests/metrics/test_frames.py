import math

import pytest

from metrics.frames import COLUMNS, score_frame
from metrics.stored_scores import write_scores
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


def test_rows_follow_the_runs_then_the_items_then_the_candidates():
    study = rating_study(n_items=2)
    candidates = [("d1", "beta"), ("d0", "beta"), ("d0", "alpha"), ("d1", "alpha")]
    for metric in ("zeta", "eta"):
        values = {key: float(number) for number, key in enumerate(candidates)}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    frame = score_frame(study)
    assert list(frame["metric"]) == ["zeta"] * 4 + ["eta"] * 4
    assert list(frame["item"][:4]) == ["d0", "d0", "d1", "d1"]
    assert list(frame["candidate"][:4]) == ["alpha", "beta", "alpha", "beta"]
    assert list(frame["value"][:4]) == [2, 1, 3, 0]


def test_an_undefined_score_is_nan_beside_its_reason():
    study = rating_study(n_items=1)
    assert list(score_frame(study).columns) == list(COLUMNS)
    assert score_frame(study).dtypes["value"] == "float64"
    values = {("d0", "alpha"): math.nan, ("d0", "beta"): 0.0}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    undefined, zero = score_frame(study).itertuples()
    assert math.isnan(undefined.value)
    assert undefined.reason
    assert (zero.value, zero.reason) == (0, "")


def test_reading_takes_one_query_however_many_scores(django_assert_num_queries):
    study = rating_study(n_items=9)
    values = {(f"d{number}", "alpha"): float(number) for number in range(9)}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    with django_assert_num_queries(1):
        assert len(score_frame(study)) == 9
