"""Comparisons in the long frame: wins, strengths, and agreement on what was chosen."""

import json

import numpy as np
import pytest

from annotation.agreement import study_agreement
from annotation.agreement_versions import agreement_records, compute_agreement
from annotation.exceptions import StudyUnfit
from annotation.frames import judgment_frame
from annotation.models import Annotator, Judgment, Protocol, Study, Submission
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import freeze, save_draft
from annotation.units import system_strengths, wins
from stats.agreement import krippendorff_alpha
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.codes import refused

pytestmark = pytest.mark.django_db


def compared_study(kind: str, systems: tuple[str, ...], n_items: int = 3) -> Study:
    study = rating_study(n_items=n_items, systems=systems, questions=())
    question = ProtocolQuestion(name="q", kind=kind, wording="Which?", ties=kind != "best_worst")
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(question,)))
    freeze(study=study)
    return study


def compare(study: Study, person: str, item: str, values: dict[str, float]) -> Submission:
    annotator = Annotator.objects.get_or_create(study=study, pseudonym=person)[0]
    row = study.items.get(key=item)
    submission = Submission.objects.create(
        item=row, annotator=annotator, raw="", protocol=study.protocols.get()
    )
    for name, value in values.items():
        candidate = row.candidates.get(key=name)
        question = study.questions.get()
        Judgment.objects.create(
            submission=submission, candidate=candidate, question=question, value=value
        )
    return submission


def pairs_of(study: Study) -> list[tuple[str, str, float]]:
    table = wins(study.questions.get(), judgment_frame(study))
    return sorted(zip(table["winner"], table["loser"], table["weight"], strict=True))


@pytest.mark.parametrize(
    ("kind", "values", "pairs"),
    [
        ("preference", {"a": 1, "b": 0, "c": 0}, [("a", "b", 1), ("a", "c", 1)]),
        ("preference", {"a": 0.5, "b": 0.5}, [("a", "b", 0.5), ("b", "a", 0.5)]),
        (
            "best_worst",
            {"a": 1, "b": 0.5, "c": 0.5, "d": 0},
            [(*pair, 1) for pair in ("ab", "ac", "ad", "bd", "cd")],
        ),
        (
            "ranking",
            {"a": 1, "b": 0.25, "c": 0.25},
            [("a", "b", 1), ("a", "c", 1), ("b", "c", 0.5), ("c", "b", 0.5)],
        ),
    ],
)
def test_comparisons_become_wins(
    kind: str, values: dict[str, float], pairs: list[tuple[str, str, float]]
) -> None:
    study = compared_study(kind, tuple(values))
    compare(study, "ann", "d0", values)
    assert pairs_of(study) == pairs


def test_strengths_are_those_of_an_independent_library() -> None:
    import choix

    study = compared_study("preference", ("a", "b"), n_items=5)
    for person, item, winner in [
        *(("ann", f"d{n}", "a") for n in range(3)),
        *(("ann", f"d{n}", "b") for n in (3, 4)),
        ("bob", "d0", "a"),
        ("bob", "d1", "b"),
    ]:
        compare(study, person, item, {name: float(name == winner) for name in ("a", "b")})
    labels = system_strengths(study, question=study.questions.get()).labels.set_index("item")
    theirs = choix.ilsr_pairwise(2, [(0, 1)] * 4 + [(1, 0)] * 3)
    assert np.allclose(labels.loc[["a", "b"], "label"], theirs - theirs.mean(), atol=1e-6)
    record = json.loads(command_output("rank_systems", study.slug, json=True))
    assert {one["item"] for one in record["systems"]} == {"a", "b"}
    ratings = rating_study("ratings-alone")
    with refused(StudyUnfit, "no_comparison"):
        system_strengths(ratings, question=ratings.questions.get())


def test_agreement_on_a_preference_is_nominal_and_of_the_choice() -> None:
    study = compared_study("preference", ("a", "b"), n_items=4)
    choices = {"ann": "aabt", "bob": "abbt", "cat": "aab-"}
    units, people, values = [], [], []
    for person, said in choices.items():
        for number, choice in enumerate(said):
            if choice == "-":
                continue
            tied = dict.fromkeys(("a", "b"), 0.5)
            given = tied if choice == "t" else {name: float(name == choice) for name in ("a", "b")}
            compare(study, person, f"d{number}", given)
            units.append(number)
            people.append(person)
            values.append(choice)
    question = study_agreement(study).questions[0]
    expected = krippendorff_alpha(units, people, values, level="nominal")
    assert question.level == "nominal"
    assert question.alpha.value == pytest.approx(expected.value)
    assert question.alpha.n_items == expected.n_items == 4


def test_what_is_asked_of_the_item_has_no_candidate_in_the_frame() -> None:
    study = rating_study(n_items=2, questions=())
    clear = ProtocolQuestion(name="clear", kind="yes_no", wording="Clear?", about="item")
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(clear,)))
    freeze(study=study)
    question = study.questions.get()
    for number, item in enumerate(study.items.all()):
        for person in ("ann", "bob"):
            annotator = Annotator.objects.get_or_create(study=study, pseudonym=person)[0]
            submission = Submission.objects.create(item=item, annotator=annotator, raw="")
            Judgment.objects.create(submission=submission, question=question, value=number)
    frame = judgment_frame(study)
    columns = [frame[name] for name in ("item", "candidate", "system", "value")]
    rows = list(zip(*columns, strict=True))
    assert rows == [("d0", "", "", 0)] * 2 + [("d1", "", "", 1)] * 2
    assert study_agreement(study).questions[0].alpha.value == pytest.approx(1)


def test_agreement_is_split_by_the_version_it_was_judged_under() -> None:
    study = compared_study("preference", ("a", "b"), n_items=2)
    first = study.protocols.get()
    for person, name in (("ann", "a"), ("bob", "a"), ("cat", "b")):
        compare(study, person, "d0", {each: float(each == name) for each in ("a", "b")})
    question = ProtocolQuestion(name="q", kind="preference", wording="Better?", ties=True)
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(question,)))
    second = freeze(study=study)
    Submission.objects.filter(annotator__pseudonym="cat").update(protocol=second)
    assert len(judgment_frame(study)) == 6
    assert len(judgment_frame(study, protocol=first)) == 4
    assert study_agreement(study, protocol=first).questions[0].alpha.n_items == 1
    assert Protocol.objects.of(study).count() == 2
    version = compute_agreement(study)
    rows = version.protocol_coefficients.filter(name="krippendorff_alpha")
    assert list(rows.values_list("protocol", "n_labels")) == [(1, 2), (2, 1)]
    assert {row["protocol"] for row in agreement_records(version)["by_protocol"]} == {1, 2}
    options = {"protocol": 1, "json": True}
    content = json.loads(command_output("study_agreement", study.slug, **options))
    assert {row["n_items"] for row in content["coefficients"] if row["n_items"]} == {1}
