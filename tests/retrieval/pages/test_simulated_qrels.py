"""Qrels of simulated answers keep their mark, in the file and in a collection."""

import pytest
from django.urls import reverse

from accounts.teams import create_team
from annotation.models import Study
from presentation.row_files import row_csv
from retrieval.collections import create_collection
from retrieval.derived_files import OWN, request_study_qrels
from retrieval.exports.assessors import assessor_lines, provenance_rows
from retrieval.exports.qrels import judgment_source, qrel_rows, stream_qrels, study_qrels
from retrieval.result_kinds.reuse import ReuseKind
from retrieval.stored_files import describe_file
from tests.annotation.studies import make_simulated, tick, ticked_study
from tests.codes import codes_on
from tests.retrieval.collections import add_file, sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
FILES = "/collections/tracks/files/"


@pytest.fixture
def study(researcher) -> Study:
    study = ticked_study(owner=researcher)
    item = study.items.first()
    key = item.candidates.first().key
    for person in ("ann", "bob"):
        tick(study, person, item.key, [key])
    return study


@pytest.fixture
def collection(researcher):
    team = create_team(name="Lab", owner=researcher)
    return create_collection(name="Tracks", team=team, actor=researcher)


def second_column(lines) -> set[str]:
    return {line.split()[1] for line in "".join(lines).splitlines()}


@pytest.mark.parametrize("n", [None, 1, 0])
def test_qrels_mark_simulated_answers_in_the_column_that_trec_eval_does_not_read(study, n):
    if n != 0:
        make_simulated(study, n)
    mark = "0" if n == 0 else "simulated"
    assert second_column(stream_qrels(study)) == {mark}
    qrels = study_qrels(study)
    assert second_column(qrels.lines()) == {mark}
    assert qrels.record()["simulated"] is (n != 0)
    source = judgment_source(study)
    assert {row.rsplit(",", 1)[1] for row in "".join(row_csv(qrel_rows(study))).split()[1:]} == {
        str(n != 0)
    }
    own = second_column(assessor_lines(source))
    assert sum(name.startswith("simulated-") for name in own) == {None: len(own), 1: 1, 0: 0}[n]
    names = list(provenance_rows(source).columns)
    rows = list(provenance_rows(source).rows)
    assert {row[names.index("simulated")] for row in rows} == {
        None: {True},
        1: {True, False},
        0: {False},
    }[n]


def test_downloaded_qrels_are_recognized_when_they_are_uploaded(rosa, study, collection):
    make_simulated(study, 1)
    for name in ("qrels.txt", "qrels_jg.txt"):
        answer = rosa.get(reverse("console:download", args=[study.slug, name]))
        rosa.post(FILES, {"uploads": [sent(name, answer.getvalue())], "made_by": "people"})
    assert list(collection.files.values_list("made_by", flat=True)) == ["simulated"] * 2
    assert codes_on(rosa.get(FILES).content.decode()) == ["simulated_judged"] * 2


@pytest.mark.parametrize("kind", ["qrels", "assessors"])
def test_a_mark_behind_the_part_that_an_upload_reads_counts(rosa, collection, monkeypatch, kind):
    monkeypatch.setattr("retrieval.stored_files._text_start", lambda start: start[:60])
    own = "A1" if kind == "assessors" else "0"
    people = "".join(f"t{n} {own} d1 1\n" for n in range(9))
    marked = people + f"t9 simulated{'-A2' if kind == 'assessors' else ''} d1 1\n"
    for name, lines in (("marked", marked), ("people", people.replace(own, "0"))):
        rosa.post(FILES, {"uploads": [sent(name, lines)], "made_by": "people"})
    rows = dict(collection.files.values_list("name", "made_by"))
    assert rows == {"marked": "simulated", "people": "people"}


def test_an_upload_that_nobody_described_asks_who_judged(rosa, collection):
    for number, made_by in enumerate(("", "people", "machine", "simulated")):
        lines = f"t{number} 0 d1 1\n"
        rosa.post(FILES, {"uploads": [sent(f"q{number}", lines)], "made_by": made_by})
    rows = dict(collection.files.values_list("name", "made_by"))
    assert list(rows.values()) == ["unknown", "people", "machine", "simulated"]
    page = rosa.get(FILES)
    assert sorted(codes_on(page.content.decode())) == ["judges_unknown", "simulated_judged"]
    assert [file.made_by for file in page.context["qrels"]] == [
        *("unknown", "people", "simulated", "machine"),
    ]
    file = collection.files.get(name="q0")
    where = reverse("console:collection-file", args=["tracks", file.pk])
    rosa.post(where, {"name": "q0", "made_by": "people"})
    assert codes_on(rosa.get(FILES).content.decode()) == ["simulated_judged"]


@pytest.mark.parametrize("is_simulated", [True, False])
@pytest.mark.parametrize("rule", ["majority", OWN])
def test_qrels_made_in_a_collection_say_who_judged(
    researcher, study, collection, rule, is_simulated
):
    if is_simulated:
        make_simulated(study)
    collection.studies.add(study)
    request_study_qrels(collection=collection, study=study, rule=rule, round=1, actor=researcher)
    [file] = collection.files.all()
    assert file.made_by == ("simulated" if is_simulated else "people")
    assert file.n_faults == 0


def test_merged_qrels_and_choices_of_files_keep_the_mark(rosa, researcher, collection, tmp_path):
    from django.core.management import call_command

    own = "t1 simulated-A1 d1 1\nt1 A2 d1 1\nt1 A2 d2 0\n"
    file = add_file(collection, "own.txt", own)
    assert (file.kind, file.made_by) == ("assessors", "simulated")
    rosa.post(reverse("console:collection-file-qrels", args=["tracks", file.pk]), {"rule": "any"})
    merged = collection.files.get(kind="qrels")
    assert merged.made_by == "simulated"
    name = ReuseKind().name_input(collection.files.get(kind="qrels"))
    assert name != merged.name
    describe_file(file=merged, actor=researcher, made_by="people")
    name = ReuseKind().name_input(collection.files.get(kind="qrels"))
    assert name == merged.name
    (tmp_path / "own.txt").write_text(own)
    output = tmp_path / "merged.txt"
    call_command("merge_assessors", tmp_path / "own.txt", output=output, json=True)
    assert second_column([output.read_text()]) == {"simulated"}
