from pathlib import Path

import pytest

from annotation.exceptions import StudyUnfit
from annotation.models import Question, Study
from presentation.exceptions import PresentationError
from retrieval.exports.qrels import RULES, study_qrels
from tests.annotation.studies import (
    ACCEPTABLE,
    alternatives_study,
    rate,
    rated_study,
    tick,
    ticked_study,
)
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged_by_three() -> Study:
    """Clog ticked by three of three, pump by two, flat by one; of four, coat by two."""
    study = alternatives_study(pools={"boot": ("clog", "pump", "flat", "sole"), "gown": ("coat",)})
    tick(study, "Ann", "boot", {"clog", "pump", "flat"})
    tick(study, "Bob", "boot", {"clog", "pump"})
    tick(study, "Cyd", "boot", {"clog"})
    for person, ticked in (("Ann", {"coat"}), ("Bob", {"coat"}), ("Cyd", set()), ("Dee", set())):
        tick(study, person, "gown", ticked)
    return study


def test_votes_are_grades(judged_by_three: Study) -> None:
    assert list(study_qrels(judged_by_three, rule="votes").lines()) == [
        "boot 0 clog 3\n",
        "boot 0 pump 2\n",
        "boot 0 flat 1\n",
        "boot 0 sole 0\n",
        "gown 0 coat 2\n",
    ]


@pytest.mark.parametrize(
    ("rule", "relevant"),
    [("majority", {"clog", "pump"}), ("any", {"clog", "pump", "flat", "coat"}), ("all", {"clog"})],
)
def test_a_rule_makes_one_of_several_annotators(
    judged_by_three: Study, rule: str, relevant: set[str]
) -> None:
    qrels = study_qrels(judged_by_three, rule=rule)
    assert set(qrels.table.loc[qrels.table["relevance"] == 1, "docno"]) == relevant
    assert (qrels.n_topics, qrels.n_lines, qrels.n_relevant) == (2, 5, len(relevant))
    assert qrels.rule == rule


def test_one_annotator_is_the_same_under_every_rule() -> None:
    study = ticked_study()
    lines = {rule: list(study_qrels(study, rule=rule).lines()) for rule in RULES}
    assert lines["majority"] == lines["any"] == lines["all"]
    boot, gown = ["boot 0 clog 1\n", "boot 0 pump 1\n", "boot 0 flat 0\n"], ["skirt", "coat"]
    assert lines["majority"] == [*boot, *(f"gown 0 {docno} 0\n" for docno in gown)]


def test_each_round_has_its_own_qrels() -> None:
    study = ticked_study()
    tick(study, "Bob", "boot", {"flat"}, round=2)
    assert list(study_qrels(study, round=2).lines()) == [
        "boot 0 clog 0\n",
        "boot 0 pump 0\n",
        "boot 0 flat 1\n",
    ]
    assert study_qrels(study, round=1).n_lines == 5
    with refused(StudyUnfit, "no_judgments"):
        study_qrels(study, round=3)


def test_pairs_that_nobody_judged_and_rejected_ticks_do_not_count() -> None:
    study = alternatives_study()
    rate(study, "Ann", "boot", {"clog": 1, "pump": 0})
    assert [line.split()[2] for line in study_qrels(study).lines()] == ["clog", "pump"]
    other = alternatives_study("other")
    tick(other, "Ann", "boot", {"clog"}, status="rejected")
    tick(other, "Bob", "boot", {"pump"})
    assert next(study_qrels(other, rule="any").lines()) == "boot 0 clog 0\n"


def test_only_the_first_question_makes_qrels() -> None:
    study = ticked_study()
    Question.objects.create(study=study, name="beauty", wording="?", position=1)
    rate(study, "Ann", "gown", {"coat": 90}, question="beauty")
    assert study_qrels(study).n_relevant == 2
    assert study.questions.get(position=0).name == ACCEPTABLE


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u00a0"])
def test_a_key_with_a_blank_is_refused(blank: str) -> None:
    topic, docno = f"a{blank}boot", f"a{blank}clog"
    one = alternatives_study("one", pools={topic: ("clog",)})
    two = alternatives_study("two", pools={"boot": ("pump", docno)})
    tick(one, "Ann", topic, set())
    tick(two, "Ann", "boot", set())
    for study, name in ((one, topic), (two, docno)):
        with refused(StudyUnfit, "space_in_name") as error:
            study_qrels(study)
        assert name in str(error.value)


def test_a_study_of_ratings_and_an_unknown_rule_are_refused() -> None:
    with refused(StudyUnfit, "not_graded"):
        study_qrels(rated_study("rated"))
    with refused_naming(ValueError, "'most'", *RULES):
        study_qrels(ticked_study(), rule="most")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("something longer than before\n" * 100)
    study_qrels(ticked_study()).write(path)
    assert path.read_text().splitlines()[0] == "boot 0 clog 1"
    assert len(path.read_text().splitlines()) == 5
    assert [file.name for file in tmp_path.iterdir()] == ["qrels.txt"]


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    qrels = study_qrels(ticked_study())
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "nowhere" / "qrels.txt", folder, tmp_path / "file" / "qrels.txt"):
        with refused_naming(PresentationError, path):
            qrels.write(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]
