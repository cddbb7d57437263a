import gzip
import re
from io import BytesIO

import pytest
from django.urls import reverse
from openpyxl import Workbook
from PIL import Image

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from presentation.row_files import row_csv
from retrieval.collections import create_collection
from retrieval.derived_files import OWN, request_study_qrels
from retrieval.exports.assessors import assessor_lines, provenance_rows
from retrieval.exports.qrels import judgment_source, qrel_rows, stream_qrels, study_qrels
from retrieval.models import Collection, CollectionFile, FilePart
from retrieval.pages.collections import list_stages
from retrieval.result_kinds.reuse import ReuseKind
from retrieval.stored_files import describe_file
from tests.annotation.studies import make_simulated, tick, ticked_study
from tests.codes import codes_on
from tests.console.addresses import address
from tests.console.pages import refused_fields, words_of
from tests.retrieval.collections import add_file, qrels_text, run_text, sent
from tests.retrieval.conftest import record_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def collection(empty_collection):
    return empty_collection


def test_collections_are_made_by_a_form_and_written_into_the_log(rosa, researcher, colleague):
    team = create_team(name="Lab", owner=researcher)
    answer = rosa.post("/new-collection/", {"name": "Shoes 2026", "team": team.pk})
    assert answer.url == "/collections/shoes-2026/files/"
    row = Collection.objects.get()
    assert (row.name, row.team, row.created_by.username) == ("Shoes 2026", team, "rosa")
    assert AuditEntry.objects.filter(action="collection.create", subject="shoes-2026").exists()
    # Another of the same name has another address.
    rosa.post("/new-collection/", {"name": "Shoes 2026", "team": team.pk})
    other = create_team(name="Other", owner=colleague)
    for form in ({"name": "", "team": team.pk}, {"name": "Shoes", "team": other.pk}):
        assert rosa.post("/new-collection/", form).status_code == 422
    assert set(Collection.objects.values_list("slug", flat=True)) == {"shoes-2026", "shoes-2026-2"}


def test_studies_of_the_team_are_linked_and_others_are_not(rosa, researcher, collection):
    ours = ticked_study(owner=researcher, team=collection.team)
    theirs = ticked_study("theirs", owner=researcher)
    rosa.post(address("collection-studies"), {"studies": [theirs.pk]})
    assert not collection.studies.exists()
    rosa.post(address("collection-studies"), {"studies": [ours.pk]})
    assert list(collection.studies.all()) == [ours]
    assert ours.title in words_of(rosa.get(address("collection")).content.decode())


def test_a_collection_is_deleted_when_its_short_name_is_typed(rosa, collection):
    assert rosa.post(address("collection-delete"), {"name": "track"}).status_code == 422
    assert Collection.objects.exists()
    assert rosa.post(address("collection-delete"), {"name": "tracks"}).url == "/collections/"
    assert not Collection.objects.exists()
    assert AuditEntry.objects.filter(action="collection.delete", subject="tracks").exists()


def next_step_of(rosa):
    step = rosa.get(address("collection")).context["step"]
    return step["url"].removeprefix("/collections/tracks/")


def test_the_overview_says_the_next_step_at_each_stage(rosa, researcher, collection):
    assert next_step_of(rosa) == "files/"
    for tag in ("dense", "bm25"):
        add_file(collection, f"{tag}.run", run_text(tag))
    assert next_step_of(rosa) == "pools/"
    add_file(collection, "bad.run", "t1 Q0 d1 1 high x\n", kind="run")
    assert next_step_of(rosa) == "files/"
    collection.files.filter(file_name="bad.run").delete()
    collection.studies.add(ticked_study(owner=researcher, team=collection.team))
    assert next_step_of(rosa) == "judgments/"
    add_file(collection, "q.txt", qrels_text())
    assert next_step_of(rosa) == "evaluation/"


def test_a_followed_job_says_of_no_slug_whether_a_collection_has_it(client, collection):
    client.force_login(User.objects.create_user("stranger"))
    for slug in ("tracks", "nothing"):
        where = f"/collections/{slug}/work/1/"
        answer = client.get(where, headers={"HX-Request": "true"})
        assert (answer.status_code, answer["HX-Redirect"]) == (200, "/collections/")
        assert client.get(where).status_code == 404


FILES = "/collections/tracks/files/"


def refused_file(client, code, *files, **more):
    answer = client.post(FILES, {"uploads": [sent(*file) for file in files], **more})
    assert refused_fields(answer) == {"uploads": [code]}
    return answer.context["form"].errors["uploads"][0]


def test_several_files_are_taken_at_once_and_told_apart_by_their_columns(rosa, collection):
    files = [sent("q.txt", qrels_text()), sent("a.run", run_text("dense"))]
    files.append(sent("b.run.gz", gzip.compress(run_text("bm25", seed=2).encode())))
    assert rosa.post(FILES, {"uploads": files, "family": ""}).status_code == 302
    rows = dict(collection.files.values_list("name", "kind"))
    assert rows == {"q.txt": "qrels", "dense": "run", "bm25": "run"}
    run = collection.files.get(name="dense")
    assert (run.n_topics, run.n_lines, run.n_tied, run.tag) == (25, 500, 0, "dense")
    qrels = collection.files.get(name="q.txt")
    assert (qrels.n_topics, qrels.n_lines, qrels.n_relevant) == (25, 750, 125)
    page = rosa.get(FILES).context
    assert (len(page["runs"]), [one.name for one in page["qrels"]]) == (2, ["q.txt"])
    assert AuditEntry.objects.filter(action="collection.file", subject="tracks").count() == 3


def test_a_file_with_rows_left_out_is_used_once_somebody_confirms_them(rosa, collection):
    text = "# graded in May\n" + qrels_text(n_topics=2)
    rosa.post(FILES, {"uploads": [sent("q.txt", text)]})
    file = CollectionFile.objects.get()
    assert [group["code"] for group in file.reading["left_out"]] == ["comment"]
    page = rosa.get(FILES)
    assert "unconfirmed_file" in codes_on(page.content.decode())
    assert (list(page.context["qrels"]), file.is_usable) == ([], False)
    counts = list_stages(collection).counts
    assert (counts["qrels"], counts["unconfirmed"]) == (0, 1)
    confirm = reverse("console:collection-file-confirm", args=[collection.slug, file.pk])
    # A second press changes nothing.
    for n_messages in (1, 0):
        answer = rosa.post(confirm, follow=True)
        assert len(list(answer.context["messages"])) == n_messages
        assert list(answer.context["qrels"]) == [file]
    assert AuditEntry.objects.filter(action="collection.confirm").count() == 1
    # Blank lines are no reason to ask.
    rosa.post(FILES, {"uploads": [sent("blank.txt", "\n\n" + qrels_text(n_topics=3))]})
    assert CollectionFile.objects.usable().count() == 2


def test_every_fault_of_a_file_is_shown_with_its_line_and_nothing_of_it_is_kept(rosa, collection):
    lines = run_text("dense", n_topics=1).splitlines()
    lines[2] = "t0 Q0 d99 3 high dense"
    lines[4] = lines[3]
    lines[6] = "t0 Q0 d98 7"
    rosa.post(FILES, {"uploads": [sent("bad.run", "\n".join(lines))]})
    file = CollectionFile.objects.get()
    assert (file.n_faults, file.is_usable) == (3, False)
    assert not FilePart.objects.exists()
    assert [line for line, _text in file.faults] == [3, 5, 7]
    page = rosa.get(FILES)
    assert page.context["faulty"] == [file]
    assert words_of(page.content.decode()).count(file.faults[0][1]) == 1


def test_a_file_of_unknown_kind_is_refused_and_the_others_are_taken(rosa, collection):
    files = [("notes.txt", "five words in a line\n"), ("q.txt", qrels_text())]
    assert "notes.txt" in refused_file(rosa, "unknown_kind", *files)
    assert list(collection.files.values_list("name", flat=True)) == ["q.txt"]


def test_the_same_file_twice_an_empty_one_and_one_that_is_too_large_are_refused(
    rosa, collection, settings
):
    rosa.post(FILES, {"uploads": [sent("a.run", run_text("dense"))]})
    assert "dense" in refused_file(rosa, "duplicate_file", ("again.run", run_text("dense")))
    assert "empty.run" in refused_file(rosa, "empty_file", ("empty.run", ""))
    assert refused_fields(rosa.post(FILES, {"family": ""})) == {"uploads": ["required"]}
    settings.UPLOAD_MAX_MEGABYTES = 0
    assert refused_fields(rosa.post(FILES, {"uploads": [sent("b.run", run_text("bm25"))]}))
    assert collection.files.count() == 1


def test_what_gzip_cannot_unpack_or_is_huge_unpacked_is_a_fault_of_the_file(collection, settings):
    settings.UPLOAD_MAX_MEGABYTES = 1
    file = add_file(collection, "huge.run.gz", gzip.compress(b"t1 Q0 d1 1 1.0 tag\n" * 800_000))
    [(line, text)] = file.faults
    assert line is None
    assert " 10 " in text
    packed = gzip.compress(run_text("dense").encode())
    file = add_file(collection, "a.run", packed[:40] + b"\0\xff" * 8 + packed[56:], kind="run")
    assert file.n_faults == 1


def test_files_of_a_kind_have_different_names(rosa, collection):
    for seed in (1, 2):
        add_file(collection, f"{seed}.run", run_text("dense", seed=seed))
    assert set(collection.files.values_list("name", flat=True)) == {"dense", "dense (2)"}
    other = add_file(collection, "b.run", run_text("bm25", seed=2))
    answer = rosa.post(f"{FILES}{other.pk}/", {"name": "dense", "family": ""})
    assert refused_fields(answer) == {"name": ["name_taken"]}
    other.refresh_from_db()
    assert other.name == "bm25"


def test_ties_and_topics_that_no_qrels_have_are_counted(rosa, collection):
    add_file(collection, "q.txt", "t1 0 a 1\nt1 0 b 0\n")
    tied = "t1 Q0 a 1 0.5 x\nt1 Q0 b 2 0.5 x\nt1 Q0 c 3 0.5 x\n"
    add_file(collection, "a.run", tied + "t2 Q0 a 1 0.5 x\nt3 Q0 a 1 inf x\n")
    run = collection.files.get(kind="run")
    assert (run.n_tied, run.n_infinite, run.n_topics) == (3, 1, 3)
    assert [row.n_foreign for row in rosa.get(FILES).context["runs"]] == [2]


def test_a_file_is_described_taken_away_and_removed(rosa, collection):
    file = add_file(collection, "a.run", run_text("dense"))
    where = f"{FILES}{file.pk}/"
    rosa.post(where, {"name": "Dense", "family": "bi-encoders"})
    file.refresh_from_db()
    assert (file.name, file.family) == ("Dense", "bi-encoders")
    assert b"".join(rosa.get(f"{where}content/")).decode() == run_text("dense")
    rosa.post(f"{where}remove/")
    assert not collection.files.exists()
    assert not FilePart.objects.exists()
    actions = list(AuditEntry.objects.values_list("action", flat=True))
    assert {"collection.describe", "export", "collection.remove"} <= set(actions)


def test_a_file_of_another_collection_is_not_there(rosa, collection, researcher):
    other = create_collection(name="Other", team=collection.team, actor=researcher)
    file = add_file(other, "a.run", run_text("dense"))
    assert rosa.get(f"{FILES}{file.pk}/").status_code == 404
    assert rosa.post(f"{FILES}{file.pk}/remove/").status_code == 404


def test_a_topic_that_no_index_holds_is_refused(collection):
    name = "é" * 501
    file = add_file(collection, "a.run", f"t1 Q0 d1 1 2.0 tag\n{name} Q0 d1 1 1.0 tag\n")
    assert not file.is_usable
    [(line, problem)] = file.faults
    assert line is None
    assert "1,002" in problem
    assert add_file(collection, "b.run", f"{'é' * 500} Q0 d1 1 1.0 tag\n").is_usable


def test_the_wrong_kind_of_file_is_refused(rosa, collection):
    numbers, png, xlsx = bytes(range(256)) * 9, BytesIO(), BytesIO()
    Workbook().save(xlsx)
    Image.effect_noise((64, 64), 60).save(png, "PNG")
    for name, content, kind in (
        ("a.png", png.getvalue(), ""),
        ("a.png", png.getvalue(), "run"),
        ("a.xlsx", xlsx.getvalue(), "qrels"),
        ("a.run", run_text("dense"), "qrels"),
        ("q.txt", qrels_text(), "run"),
        ("a.bin", numbers, ""),
    ):
        message = refused_file(rosa, "wrong_content", (name, content), kind=kind)
        assert name in message
        assert "\ufffd" not in message
    for content, kind in (
        (png.getvalue(), "catalogue"),
        (xlsx.getvalue(), "embeddings"),
        (run_text("dense"), "embeddings"),
        (numbers, "embeddings"),
    ):
        data = {"kind": kind, "file": sent("a.file", content), "name": ""}
        answer = rosa.post("/collections/tracks/pools/sources/", data)
        assert refused_fields(answer, "source_form") == {"file": ["wrong_content"]}
    assert not collection.files.exists()


def test_ranks_that_contradict_scores_are_shown_by_line_and_the_run_is_used(rosa, collection):
    lines = [f"t1 Q0 d{n} {n} {n / 10} x" for n in range(1, 31)]
    run = add_file(collection, "a.run", "\n".join(lines))
    assert (run.is_usable, run.n_warnings, len(run.warnings)) == (True, 29, 20)
    line, text = run.warnings[0]
    assert line == 2
    assert {"d2", "t1", "0.2"} <= set(re.findall(r"[\w.]*\w", text))
    assert text in words_of(rosa.get(f"{FILES}{run.pk}/").content.decode())


def test_more_files_than_one_form_can_send_are_refused_in_a_sentence(rosa, collection, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 3

    def send(n_files):
        files = [sent(f"{n}.run", run_text(f"s{n}", n_topics=1)) for n in range(n_files)]
        return rosa.post(FILES, {"uploads": files})

    answer = send(4)
    assert (answer.status_code, collection.files.count()) == (400, 0)
    assert " 3 " in words_of(answer.content.decode())
    assert send(3).status_code == 302


@pytest.fixture
def study(researcher):
    study = ticked_study(owner=researcher)
    item = study.items.first()
    key = item.candidates.first().key
    for person in ("ann", "bob"):
        tick(study, person, item.key, [key])
    return study


def second_column(lines):
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
    rows = "".join(row_csv(qrel_rows(study))).split()[1:]
    assert {row.rsplit(",", 1)[1] for row in rows} == {str(n != 0)}
    own = second_column(assessor_lines(source))
    assert sum(name.startswith("simulated-") for name in own) == {None: len(own), 1: 1, 0: 0}[n]
    provenance = provenance_rows(source)
    at = list(provenance.columns).index("simulated")
    expected = {None: {True}, 1: {True, False}, 0: {False}}[n]
    assert {row[at] for row in provenance.rows} == expected


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
        *("unknown", "people", "simulated", "machine")
    ]
    file = collection.files.get(name="q0")
    rosa.post(f"{FILES}{file.pk}/", {"name": "q0", "made_by": "people"})
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
    own = "t1 simulated-A1 d1 1\nt1 A2 d1 1\nt1 A2 d2 0\n"
    file = add_file(collection, "own.txt", own)
    assert (file.kind, file.made_by) == ("assessors", "simulated")
    rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "any"})
    merged = collection.files.get(kind="qrels")
    assert merged.made_by == "simulated"
    assert ReuseKind().name_input(merged) != merged.name
    describe_file(file=merged, actor=researcher, made_by="people")
    merged = collection.files.get(kind="qrels")
    assert ReuseKind().name_input(merged) == merged.name
    (tmp_path / "own.txt").write_text(own)
    output = tmp_path / "merged.txt"
    record_of("merge_assessors", tmp_path / "own.txt", "--output", output)
    assert second_column([output.read_text()]) == {"simulated"}
