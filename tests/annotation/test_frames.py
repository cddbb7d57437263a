from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.frames import candidate_frame, judgment_frame
from annotation.models import Judgment, Study
from tests.annotation.studies import (
    alternatives_study,
    doubt,
    rate,
    rated_study,
    rating_study,
    tick,
    ticked_study,
)

pytestmark = pytest.mark.django_db

COLUMNS = [
    *("study", "round", "item", "condition", "candidate", "system", "question", "annotator"),
    *("value", "position", "seconds"),
]
TEXTS = ("study", "item", "condition", "candidate", "system", "question", "annotator")


def _is_typed(frame: pd.DataFrame) -> bool:
    kinds = dict.fromkeys(TEXTS, "category") | {"round": "int64"}
    kinds |= dict.fromkeys(("value", "position", "seconds"), "float64")
    return {name: str(kind) for name, kind in frame.dtypes.items()} == kinds


def test_a_frame_has_a_row_for_each_judgment() -> None:
    empty = judgment_frame(rating_study())
    assert empty.empty
    assert list(empty.columns) == COLUMNS
    assert _is_typed(empty)
    study = rated_study("rated", conditions=("formal", "casual"))
    rated_study("another")
    frame = judgment_frame(study)
    assert list(frame.columns) == COLUMNS
    assert _is_typed(frame)
    assert len(frame) == Judgment.objects.of(study).count() == 12
    assert frame.iloc[0].to_dict() == {
        **{"study": "rated", "round": 1, "item": "d0", "condition": "formal"},
        **{"candidate": "alpha", "system": "alpha", "question": "appropriateness"},
        **{"annotator": "Ann", "value": 20.0, "position": 0.0, "seconds": 1.5},
    }
    means = frame.groupby("system", observed=True)["value"].mean()
    assert means.to_dict() == {"alpha": 23.5, "beta": 53.5}
    # An alternative that was not ticked is a judgment of 0.
    frame = judgment_frame(ticked_study())
    values = {"clog": 1, "pump": 1, "flat": 0, "skirt": 0, "coat": 0}
    assert dict(zip(frame["candidate"], frame["value"], strict=True)) == values


def test_rows_come_in_the_studys_order_however_they_were_written() -> None:
    study = rating_study(n_items=11, questions=("wit", "tone"))
    for question in ("tone", "wit"):
        for person in ("Bob", "Ann"):
            for number in (2, 1):
                for item in ("d10", "d9", "d0"):
                    values = {"beta": 1.0, "alpha": 2.0}
                    rate(study, person, item, values, question=question, round=number)
    frame = judgment_frame(study)
    keys = ["question", "item", "candidate", "round", "annotator"]
    wit = judgment_frame(study, question=study.question("wit"))
    assert (len(wit), set(wit["question"])) == (len(frame) / 2, {"wit"})
    assert frame[keys].to_numpy().tolist() == [
        [question, item, candidate, number, person]
        for question in ("wit", "tone")
        for item in ("d0", "d9", "d10")
        for candidate in ("alpha", "beta")
        for number in (1, 2)
        for person in ("Ann", "Bob")
    ]


def test_rejected_judgments_are_left_out_and_flagged_ones_where_asked() -> None:
    study = alternatives_study()
    tick(study, "Ann", "boot", {"clog"})
    tick(study, "Bob", "boot", {"clog"}, status="rejected")
    doubt(tick(study, "Cyd", "boot", {"clog"}, status="submitted"))
    assert set(judgment_frame(study)["annotator"]) == {"Ann", "Cyd"}
    assert set(judgment_frame(study, accepted=False)["annotator"]) == {"Ann", "Bob", "Cyd"}
    assert set(judgment_frame(study, with_flagged=False)["annotator"]) == {"Ann"}


def test_missing_values_are_nan_and_queries_do_not_grow(
    django_assert_num_queries: Any,
) -> None:
    study = rated_study()
    Judgment.objects.filter(value=20).update(position=None, seconds=None)
    frame = judgment_frame(study)
    unknown = frame[frame["value"] == 20]
    assert np.isnan(unknown[["position", "seconds"]].to_numpy(dtype=float)).all()
    assert frame["seconds"].notna().sum() == 11
    Judgment.objects.update(position=None, seconds=None)
    frame = judgment_frame(study)
    assert frame[["position", "seconds"]].isna().to_numpy().all()
    assert _is_typed(frame)
    short, long = rated_study("short", n_items=1), rated_study("long", n_items=12)
    for study in (short, long):
        # The judgments, and the texts of candidates, questions and annotators once for all.
        with django_assert_num_queries(4):
            judgment_frame(study)
        with django_assert_num_queries(1):
            candidate_frame(study)


def test_candidates_come_with_the_texts_a_metric_needs() -> None:
    study = rating_study(n_items=2, conditions=("formal",))
    rating_study("another")
    frame = candidate_frame(study)
    assert list(frame.columns) == [
        *("candidate_id", "item", "condition", "candidate", "system"),
        *("context", "response", "reference"),
    ]
    assert frame.drop(columns="candidate_id").to_numpy().tolist() == [
        ["d0", "formal", "alpha", "alpha", "Context 0", "alpha on d0", "Reference 0"],
        ["d0", "formal", "beta", "beta", "Context 0", "beta on d0", "Reference 0"],
        ["d1", "formal", "alpha", "alpha", "Context 1", "alpha on d1", "Reference 1"],
        ["d1", "formal", "beta", "beta", "Context 1", "beta on d1", "Reference 1"],
    ]
    assert candidate_frame(Study.objects.create(slug="empty", kind="rating")).empty
