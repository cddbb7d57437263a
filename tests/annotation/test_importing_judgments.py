import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from annotation import exceptions, frames, imports
from annotation.models import Candidate, Item, Judgment, Question, Study, Submission
from annotation.readers.judgments import read_judgments
from annotation.readers.policies import Policies, Reading
from retrieval.exports.qrels import study_qrels
from tests.annotation import importing, studies
from tests.codes import codes_of, refused, refused_naming

pytestmark = pytest.mark.django_db

HEADER = "item,candidate,question,annotator,round,value,condition\n"
assert_file_refused = partial(importing.assert_refused, "import_judgments")
OF_CANDIDATES = "item,candidate,question,annotator,value"
FILE = (
    HEADER
    + "d0,alpha,wit,Ann,1,3,formal\n"
    + "d0,beta,wit,Ann,,5,formal\n"
    + "d0,alpha,wit,Bob,2,1.5,formal\n"
    + "d1,alpha,wit,Ann,1,4,casual\n"
    + "d0,alpha,tone,Ann,1,-2,formal\n"
)


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    return importing.write_file(tmp_path / "judgments.csv", FILE)


def test_a_long_file_becomes_a_study_of_its_own(judgments):
    importing.assert_imported_once("import_judgments", judgments, [2, 3], study="wits")
    study = Study.objects.named("wits")
    assert study.kind == "rating"
    frame = frames.judgment_frame(study)
    columns = ["question", "item", "condition", "candidate", "round", "annotator", "value"]
    assert frame[columns].to_numpy().tolist() == [
        ["wit", "d0", "formal", "alpha", 1, "Ann", 3.0],
        ["wit", "d0", "formal", "alpha", 2, "Bob", 1.5],
        ["wit", "d0", "formal", "beta", 1, "Ann", 5.0],
        ["wit", "d1", "casual", "alpha", 1, "Ann", 4.0],
        ["tone", "d0", "formal", "alpha", 1, "Ann", -2.0],
    ]
    assert json.loads(Submission.objects.get(annotator__pseudonym="Bob").raw) == [
        {
            **{"item": "d0", "candidate": "alpha", "question": "wit", "annotator": "Bob"},
            **{"round": "2", "value": "1.5", "condition": "formal"},
        }
    ]
    # A scale is what the values span.
    scales = Question.objects.values_list("name", "scale_min", "scale_max", "level")
    assert set(scales) == {("wit", 1.5, 5, "interval"), ("tone", -2, -1, "interval")}


def test_three_columns_are_enough_and_one_value_spans_a_scale(tmp_path):
    path = labels(tmp_path, "d0,Ann,1", "d0,Bob,2")
    importing.command_output("import_judgments", path, study="s")
    assert list(Candidate.objects.values_list("key", "system")) == [("item", "")]
    assert list(Question.objects.values_list("name", flat=True)) == ["value"]
    assert set(Submission.objects.values_list("annotator__pseudonym", "round", "status")) == {
        ("Ann", 1, "submitted"),
        ("Bob", 1, "submitted"),
    }
    for number, value in enumerate(("1e15", "-1e15", "0", "1e-300")):
        path = labels(tmp_path, f"d0,Ann,{value}")
        importing.command_output("import_judgments", path, study=f"one-{number}")
        assert Judgment.objects.latest("pk").value == float(value)
    # A candidate may be called a system.
    path = importing.write_file(
        tmp_path / "systems.jsonl", '{"item": "d0", "system": "alpha", "annotator": 7, "value": 1}'
    )
    importing.command_output("import_judgments", path, study="systems")
    candidates = Candidate.objects.filter(item__study__slug="systems")
    assert list(candidates.values_list("key", "system")) == [("alpha", "alpha")]
    assert Submission.objects.latest("pk").annotator.pseudonym == "7"


def labels(tmp_path: Path, *rows: str, header: str = "item,annotator,value") -> Path:
    return importing.write_file(tmp_path / "labels.csv", "\n".join([header, *rows, ""]))


def test_nominal_values_are_categories(tmp_path):
    path = labels(tmp_path, "d0,Ann,yes", "d1,Ann,no", "d2,Ann,maybe")
    importing.command_output("import_judgments", path, study="s", level="nominal")
    question = Question.objects.get()
    assert (question.level, question.categories) == ("nominal", ["maybe", "no", "yes"])
    assert (question.scale_min, question.scale_max) == (0, 2)
    values = Judgment.objects.order_by("candidate__item__position").values_list("value", flat=True)
    assert list(values) == [2, 1, 0]
    # Each question has its own categories.
    path = labels(tmp_path, "d0,Ann,q1,b", "d0,Ann,q2,a", header="item,annotator,question,value")
    importing.command_output("import_judgments", path, study="two", level="nominal")
    questions = Question.objects.filter(study__slug="two").values_list("name", "categories")
    assert dict(questions) == {"q1": ["b"], "q2": ["a"]}


def test_a_study_of_alternatives_takes_its_categories_by_name(tmp_path):
    study = studies.alternatives_study("pools")
    path = labels(tmp_path, "boot,clog,acceptable,Ann,yes", header=OF_CANDIDATES)
    importing.command_output("import_judgments", path, study="pools", level="nominal")
    assert list(study_qrels(study).lines()) == ["boot 0 clog 1\n"]
    path = labels(tmp_path, "d0,clog,acceptable,Ann,yes", header=OF_CANDIDATES)
    options = {"study": "pools", "line": 2}
    assert_file_refused(path, "unknown_item", value="d0", level="nominal", field="item", **options)
    path = labels(tmp_path, "boot,clog,acceptable,Bob,0.5", header=OF_CANDIDATES)
    assert_file_refused(path, "between_categories", value="0.5", field="value", **options)


def test_a_later_file_has_the_categories_of_the_study(tmp_path):
    path = labels(tmp_path, "d0,Ann,yes", "d1,Ann,no")
    importing.command_output("import_judgments", path, study="s", level="nominal")
    labels(tmp_path, "d0,Bob,yes", "d1,Bob,perhaps")
    assert_file_refused(path, "unknown_category", value="perhaps", level="nominal")
    labels(tmp_path, "d0,Bob,yes", "d1,Bob,yes")
    importing.command_output("import_judgments", path, study="s", level="nominal")
    bob = Judgment.objects.filter(submission__annotator__pseudonym="Bob")
    assert Question.objects.get().categories == ["no", "yes"]
    assert list(bob.values_list("value", flat=True)) == [1, 1]


def test_categories_that_do_not_fit_are_refused(tmp_path):
    studies.rated_study("rated")
    path = labels(tmp_path, "d0,alpha,appropriateness,Cy,high", header=OF_CANDIDATES)
    assert_file_refused(path, "unknown_category", value="high", study="rated", level="nominal")
    labels(tmp_path, *(f"d{n},Ann,label {n}" for n in range(1001)))
    assert_file_refused(path, "too_many_categories", value="1001", level="nominal")


# name, row, field, code and, if it matters, data in the message
REFUSALS: list[tuple[str, ...]] = [
    ("no number", "d0,a,q,Ann,1,good,\n", "value", "not_number", "good"),
    ("infinity", "d0,a,q,Ann,1,-Infinity,\n", "value", "not_finite"),
    ("no annotator", "d0,a,q,,1,1,\n", "annotator", "empty"),
    ("no item", ",a,q,Ann,1,1,\n", "item", "empty"),
    ("round zero", "d0,a,q,Ann,0,1,\n", "round", "not_round"),
    ("round one and a half", "d0,a,q,Ann,1.5,1,\n", "round", "not_round"),
    ("a round beyond counting", "d0,a,q,Ann,1001,1,\n", "round", "not_round"),
    ("a round in words", "d0,a,q,Ann,first,1,\n", "round", "not_number", "first"),
    ("a long candidate", f"d0,{'c' * 101},q,Ann,1,1,\n", "candidate", "too_long", "101"),
    ("a long question", f"d0,a,{'q' * 65},Ann,1,1,\n", "question", "too_long", "65"),
    ("a long annotator", f"d0,a,q,{'A' * 101},1,1,\n", "annotator", "too_long", "101"),
    ("a long condition", f"d0,a,q,Ann,1,1,{'c' * 65}\n", "condition", "too_long", "65"),
    ("another condition", "d9,b,q,Ann,1,1,casual\n", "condition", "differs"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[0])
def test_a_judgment_that_is_not_whole_is_refused(tmp_path, case):
    _name, row, field, code, *values = case
    path = importing.write_file(tmp_path / "judgments.csv", HEADER + "d9,a,q,Ann,1,1,\n" + row)
    assert_file_refused(path, code, line=3, field=field, value="".join(values))


def test_a_judgment_twice_is_refused(tmp_path):
    path = tmp_path / "judgments.csv"
    for repeat in ("d0,alpha,wit,Ann,1,3,formal\n", "d0,alpha,wit,Ann,,4,formal\n"):
        path.write_text(FILE + repeat)
        assert_file_refused(path, "repeated_judgment", line=7, value="line 2")


def drafted(path: Path, *rows: str, level: str = "interval", **policies: Any) -> Any:
    """The judged values by item and annotator, and the report, of rows read by these policies."""
    draft = read_judgments(labels(path, *rows), level=level, reading=Reading(Policies(**policies)))
    return {
        (each.item, each.annotator): [judgment.value for judgment in each.judgments]
        for each in draft.submissions
    }, draft


@pytest.mark.parametrize("level", ["interval", "nominal"])
def test_a_missing_value_is_counted_and_left_out(tmp_path, level):
    rows = ("d0,Ann,1", "d0,Bob,", "d1,Ann,NaN", "d1,Bob,2", "d2,Ann,NA")
    values, draft = drafted(tmp_path, *rows, level=level)
    assert [*values] == [("d0", "Ann"), ("d1", "Bob")]
    assert draft.report.missing == {"": 1, "NaN": 1, "NA": 1}
    assert (draft.report.n_rows, draft.report.n_used) == (5, 2)
    assert draft.questions[0].categories == (("1", "2") if level == "nominal" else ())
    if level == "nominal":
        _values, draft = drafted(tmp_path, *rows, level=level, missing="empty")
        assert draft.questions[0].categories == ("1", "2", "NA", "NaN")
    with refused(exceptions.ImportRefused, "no_labels"):
        drafted(tmp_path, "d0,Ann,NA", level=level)


@pytest.mark.parametrize(
    ("repeats", "value", "n_used"), [("first", 1, 2), ("last", 3, 2), ("mean", 7 / 3, 4)]
)
def test_one_of_repeated_judgments_counts(tmp_path, repeats, value, n_used):
    rows = ("d0,Ann,1", "d0,Ann,3", "d0,Ann,3", "d0,Bob,2")
    values, draft = drafted(tmp_path, *rows, repeats=repeats)
    assert values == {("d0", "Ann"): [pytest.approx(value)], ("d0", "Bob"): [2]}
    assert draft.report.n_used == n_used
    assert len(draft.submissions) == 2
    assert draft.questions[0].scale_max == max(value, 2)
    values, _draft = drafted(tmp_path, *rows, level="nominal", repeats="majority")
    assert len(values["d0", "Ann"]) == 1
    with refused(exceptions.AnnotationError, "mean_of_categories"):
        drafted(tmp_path, *rows, level="nominal", repeats="mean")


def test_categories_and_names_that_look_alike_are_noted_or_merged(tmp_path):
    rows = ("d0,Ann,Yes", "d0,ann,yes", "d1,Ann,yes")
    _values, draft = drafted(tmp_path, *rows, level="nominal")
    assert codes_of(draft.report.notes) == ["look_alike_categories", "look_alike_annotators"]
    _values, draft = drafted(tmp_path, *rows, level="nominal", categories="merged")
    assert draft.questions[0].categories == ("yes",)
    assert "merged_categories" in codes_of(draft.report.notes)


def test_judgments_join_the_study_they_name(tmp_path):
    study = studies.rated_study("rated")
    rows = ("d0,alpha,appropriateness,Cyd,100", "d0,beta,appropriateness,Cyd,0")
    path = labels(tmp_path, *rows, header=OF_CANDIDATES)
    output = importing.command_output("import_judgments", path, study="rated")
    assert importing.numbers_in(output.splitlines()[0]) == [0, 1, 1]
    cyd = Judgment.objects.of(study).filter(submission__annotator__pseudonym="Cyd")
    assert sorted(cyd.values_list("candidate__key", "value")) == [("alpha", 100), ("beta", 0)]
    assert study.items.count() == 3
    assert study.questions.get().scale_max == 100


def test_a_second_round_joins_a_study_of_alternatives(tmp_path):
    study = studies.ticked_study("ticked")
    rows = ("boot,clog,acceptable,Bob,0,2", "boot,pump,acceptable,Bob,1,2")
    path = labels(tmp_path, *rows, header=f"{OF_CANDIDATES},round")
    importing.command_output("import_judgments", path, study="ticked")
    assert list(study_qrels(study, round=2).lines()) == ["boot 0 clog 0\n", "boot 0 pump 1\n"]
    assert study_qrels(study).n_relevant == 2


UNFIT = [
    ("an unknown item", "d7,alpha,appropriateness,Cyd,1", "item", "unknown_item", "d7"),
    ("an unknown candidate", "d1,gamma,appropriateness,Cyd,1", None, "other_candidate", "gamma"),
    ("too high", "d1,alpha,appropriateness,Cyd,101", "value", "off_scale", "101"),
]


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case[0])
def test_unfit_judgments_are_refused(tmp_path, case):
    _name, row, field, code, value = case
    studies.rated_study("rated")
    path = labels(tmp_path, "d0,alpha,appropriateness,Cyd,1", row, header=OF_CANDIDATES)
    assert_file_refused(path, code, line=3, field=field, value=value, study="rated")


def test_another_judgment_of_the_same_candidate_is_refused(judgments):
    importing.command_output("import_judgments", judgments, study="wits")
    judgments.write_text(FILE.replace("beta,wit,Ann,,5", "beta,wit,Ann,,4"))
    assert_file_refused(judgments, "other_submission", line=2, value="Ann", study="wits")
    # More rounds and annotators are added.
    judgments.write_text(FILE + "d1,alpha,wit,Cyd,1,2,casual\nd1,alpha,wit,Ann,2,2,casual\n")
    output = importing.command_output("import_judgments", judgments, study="wits")
    assert importing.numbers_in(output.splitlines()[0]) == [0, 2, 2, 3]
    assert Submission.objects.count() == 5


def test_the_number_of_queries_does_not_grow(tmp_path):
    counts: dict[str, list[int]] = {"first": [], "again": []}
    for slug, n_items in (("few", 2), ("many", 60)):
        rows = (f"d{n},{who},{n % 5}" for n in range(n_items) for who in ("Ann", "Bob"))
        path = labels(tmp_path, *rows)
        for time in ("first", "again"):
            counts[time].append(importing.queries_of("import_judgments", path, study=slug))
    assert Item.objects.count() == 62
    for few, many in counts.values():
        # SQLite takes at most 999 values in one statement, so more rows are written in parts.
        assert few <= many <= few + 2 <= 26
    of_questions = []
    for n_questions in (2, 40):
        rows = (f"d0,Ann,1,q{n}" for n in range(n_questions))
        path = labels(tmp_path, *rows, header="item,annotator,value,question")
        of_questions.append(
            importing.queries_of("import_judgments", path, study=f"of-{n_questions}")
        )
    assert of_questions[0] == of_questions[1]


def test_a_study_without_items_takes_them_from_the_judgments(judgments):
    studies.rating_study("wits", n_items=0, questions=())
    importing.command_output("import_judgments", judgments, study="wits")
    assert Item.objects.count() == 2
    importing.command_output("import_judgments", judgments, study="two")
    names: Any = Submission.objects.values_list("annotator__study__slug", "annotator__pseudonym")
    assert set(names) == {(slug, name) for slug in ("wits", "two") for name in ("Ann", "Bob")}
    assert len(set(Submission.objects.values_list("annotator", flat=True))) == 4


def test_more_than_a_position_can_count_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "MOST_POSITIONS", 50)
    for column, line in (("question", None), ("candidate", 2)):
        rows = (f"d0,Ann,1,{n}" for n in range(51))
        path = labels(tmp_path, *rows, header=f"item,annotator,value,{column}")
        assert_file_refused(path, f"too_many_{column}s", line=line, value="50")


def test_a_scale_that_is_none_is_refused(judgments):
    for scale in ((1, 1), (7, 1), (float("nan"), 1), (0, float("inf")), (0, 2e15)):
        with refused_naming(CommandError, "--scale"):
            importing.command_output("import_judgments", judgments, study="wits", scale=scale)
    assert not Study.objects.exists()


def test_a_scale_given_leaves_room_for_later_rounds(tmp_path):
    for row in ("a,Ann,3,1", "a,Ann,7,2"):
        path = labels(tmp_path, row, header="item,annotator,value,round")
        importing.command_output("import_judgments", path, study="votes", scale=(1, 7))
    assert list(Judgment.objects.order_by("pk").values_list("value", flat=True)) == [3, 7]
