import json
from pathlib import Path

import pytest

from annotation.exceptions import AnnotationError
from annotation.models import Judgment, Study, Submission
from tests.annotation.importing import assert_refused, command_output, everything
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
    output = command_output("import_altereval", release, study="shoes")
    assert output.splitlines() == [
        "Study 'shoes': 5 items and 5 submissions imported.",
        "Repaired: 3 rows showed a picture more than once: 3 surplus slots merged, "
        "relevant if ticked in either.",
        "Repaired: 2 rows listed the target among its own candidates: dropped.",
        "Repaired: 1 row without judgments: left out.",
    ]
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


def test_a_release_without_defects_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "clean.csv"
    path.write_text("".join(FILE.splitlines(keepends=True)[:2]))
    assert command_output("import_altereval", path, study="s") == (
        "Study 's': 1 item and 1 submission imported.\n"
    )


def test_each_hit_has_an_assessor_of_its_own(release: Path) -> None:
    command_output("import_altereval", release, study="shoes")
    names = Submission.objects.order_by("item__position").values_list(
        "annotator__pseudonym", "status", "round"
    )
    assert list(names) == [(f"assessor-H{n}", "approved", 1) for n in (1, 2, 3, 5, 6)]


def test_a_row_is_kept_as_it_was_before_repair(release: Path) -> None:
    command_output("import_altereval", release, study="shoes")
    raw = json.loads(Submission.objects.get(item__key="gown.jpg").raw)
    assert (raw["Input.top1"], raw["Input.top2"], raw["top1"]) == ("coat.jpg", "coat.jpg", "False")


REFUSALS = [
    ("neither true nor false", "b,c,d,e,H1,True,1,\n", 2, "top2", "'1' is neither True nor False"),
    ("judged in part", "b,c,d,e,H1,True,,False\n", 2, "top2", "'' is neither True nor False"),
    ("a slot without picture", "b,c,,e,H1,True,False,False\n", 2, "Input.top2", "be empty"),
    ("no target", ",c,d,e,H1,True,False,False\n", 2, "Input.target1", "be empty"),
    ("no HIT", "b,c,d,e,,True,False,False\n", 2, "HITId", "be empty"),
    ("a long HIT", f"b,c,d,e,{'H' * 81},True,False,False\n", 2, "HITId", "81 characters"),
    ("only the target itself", "b,b,b,b,H1,True,False,False\n", 2, None, "its own only candidate"),
    ("none judged", "b,c,d,e,H1,,,\n", None, None, "none of its rows holds judgments"),
    (
        "a target twice",
        "b,c,d,e,H1,True,True,True\nb,c,d,e,H2,True,True,True\n",
        3,
        "Input.target1",
        "this target is on line 2 already",
    ),
]


@pytest.mark.parametrize(
    ("rows", "line", "field", "problem"),
    [case[1:] for case in REFUSALS],
    ids=[case[0] for case in REFUSALS],
)
def test_rows_that_are_not_whole_are_refused(
    tmp_path: Path, rows: str, line: int | None, field: str | None, problem: str
) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(HEADER + rows)
    assert_refused("import_altereval", path, problem, line=line, field=field)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("Input.target1,HITId", "columns are missing: Input.top1 and top1"),
        ("Input.target1,HITId,Input.top1,Input.top2,top1", "columns are missing: top2"),
        ("Input.target1,Input.top1,top1", "columns are missing: HITId"),
        ("HITId,Input.top1,top1", "columns are missing: Input.target1"),
    ],
)
def test_a_release_without_its_columns_is_refused(
    tmp_path: Path, header: str, problem: str
) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
    assert_refused("import_altereval", path, problem, line=1)


def test_the_same_release_again_changes_nothing(release: Path) -> None:
    command_output("import_altereval", release, study="shoes")
    before = everything()
    output = command_output("import_altereval", release, study="shoes")
    assert output.startswith(
        "Study 'shoes': 0 items (5 more were there already) and 0 submissions "
        "(5 more were there already) imported.\nRepaired: 3 rows"
    )
    assert everything() == before


def test_another_tick_of_the_same_assessor_is_refused(release: Path) -> None:
    command_output("import_altereval", release, study="shoes")
    release.write_text(FILE.replace("H1,True,False", "H1,True,True"))
    problem = "annotator 'assessor-H1' has another submission for item 'boot.jpg'"
    assert_refused("import_altereval", release, problem, line=2, study="shoes")


def test_released_judgments_do_not_join_a_study_of_ratings(release: Path) -> None:
    rated_study("rated")
    before = everything()
    with pytest.raises(AnnotationError, match="'rated' is a study of rating; this file holds alte"):
        command_output("import_altereval", release, study="rated")
    assert everything() == before
