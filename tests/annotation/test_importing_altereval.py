import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Judgment, Study, Submission
from tests.annotation.importing import (
    assert_imported_once,
    assert_refused,
    command_output,
    numbers_in,
)
from tests.annotation.studies import rated_study

pytestmark = pytest.mark.django_db

HEADER = "Input.target1,Input.top1,Input.top2,Input.top3,HITId,top1,top2,top3\n"
FILE = (
    HEADER
    + "boot.jpg,clog.jpg,pump.jpg,flat.jpg,H1,True,False,false\n"  # as it should be
    + "gown.jpg,coat.jpg,coat.jpg,skirt.jpg,H2,False,TRUE,False\n"  # one picture twice
    + "sock.jpg,sock.jpg,clog.jpg,pump.jpg,H3,True,False,False\n"  # the target itself
    + "belt.jpg,clog.jpg,pump.jpg,flat.jpg,H4,,,\n"  # nobody judged
    + "hat.jpg,hat.jpg,hat.jpg,cap.jpg,H5,False,True,True\n"  # twice, and the target itself
    + "vest.jpg,coat.jpg,skirt.jpg,coat.jpg,H6,True,False,False\n"  # ticked, then not
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    path = tmp_path / "judged_targets_all.csv"
    path.write_text(FILE)
    return path


def test_released_judgments_become_a_study_and_repairs_are_said(release: Path) -> None:
    output = command_output("import_altereval", release, study="s")
    assert [numbers_in(line) for line in output.splitlines()] == [[5, 5], [3, 3], [2], [1]]
    Study.objects.all().delete()
    assert_imported_once("import_altereval", release, [5, 5], study="shoes")
    values = Judgment.objects.order_by("candidate__item__position", "candidate__position")
    assert list(values.values_list("candidate__item__key", "candidate__key", "value")) == [
        ("boot.jpg", "clog.jpg", 1),
        ("boot.jpg", "pump.jpg", 0),
        ("boot.jpg", "flat.jpg", 0),
        ("gown.jpg", "coat.jpg", 1),
        ("gown.jpg", "skirt.jpg", 0),
        ("sock.jpg", "clog.jpg", 0),
        ("sock.jpg", "pump.jpg", 0),
        ("hat.jpg", "cap.jpg", 1),
        ("vest.jpg", "coat.jpg", 1),
        ("vest.jpg", "skirt.jpg", 0),
    ]
    assert Study.objects.get().kind == "alternatives"


def test_each_hit_has_an_assessor_and_its_answer_as_it_was(release: Path) -> None:
    command_output("import_altereval", release, study="shoes")
    names = Submission.objects.order_by("item__position").values_list(
        "annotator__pseudonym", "status", "round"
    )
    assert list(names) == [(f"assessor-H{n}", "approved", 1) for n in (1, 2, 3, 5, 6)]
    raw = json.loads(Submission.objects.get(item__key="gown.jpg").raw)
    assert (raw["Input.top1"], raw["Input.top2"], raw["top1"]) == ("coat.jpg", "coat.jpg", "False")


TWICE = "b,c,d,e,H1,True,True,True\nb,c,d,e,H2,True,True,True\n"
REFUSALS = [
    ("neither true nor false", "b,c,d,e,H1,True,1,\n", 2, "top2", "not_tick"),
    ("judged in part", "b,c,d,e,H1,True,,False\n", 2, "top2", "not_tick"),
    ("a slot without picture", "b,c,,e,H1,True,False,False\n", 2, "Input.top2", "empty"),
    ("no target", ",c,d,e,H1,True,False,False\n", 2, "Input.target1", "empty"),
    ("no HIT", "b,c,d,e,,True,False,False\n", 2, "HITId", "empty"),
    ("a long HIT", f"b,c,d,e,{'H' * 81},True,False,False\n", 2, "HITId", "too_long"),
    ("only the target itself", "b,b,b,b,H1,True,False,False\n", 2, None, "only_target"),
    ("none judged", "b,c,d,e,H1,,,\n", None, None, "no_judgments"),
    ("a target twice", TWICE, 3, "Input.target1", "repeated_target"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[0])
def test_rows_that_are_not_whole_are_refused(tmp_path: Path, case: Any) -> None:
    _name, rows, line, field, code = case
    path = tmp_path / "judged.csv"
    path.write_text(HEADER + rows)
    assert_refused("import_altereval", path, code, line=line, field=field)


def test_missing_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    for header, missing in (
        ("Input.target1,HITId", "Input.top1 and top1"),
        ("Input.target1,HITId,Input.top1,Input.top2,top1", "top2"),
        ("Input.target1,Input.top1,top1", "HITId"),
        ("HITId,Input.top1,top1", "Input.target1"),
    ):
        path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
        assert_refused("import_altereval", path, "missing_columns", line=1, value=missing)


def test_released_judgments_do_not_join_a_study_of_ratings(release: Path) -> None:
    rated_study("rated")
    assert_refused("import_altereval", release, "other_kind", study="rated")
    command_output("import_altereval", release, study="shoes")
    release.write_text(FILE.replace("H1,True,False", "H1,True,True"))
    options = {"value": "assessor-H1", "study": "shoes"}
    assert_refused("import_altereval", release, "other_submission", line=2, **options)
    # Without defects, nothing is repaired.
    release.write_text("".join(FILE.splitlines(keepends=True)[:2]))
    output = command_output("import_altereval", release, study="clean")
    assert [numbers_in(line) for line in output.splitlines()] == [[1, 1]]
