"""Runs and qrels of a collection: sent, read, described, removed."""

import gzip
from io import BytesIO

import pytest
from django.urls import reverse
from openpyxl import Workbook
from PIL import Image

from accounts.models import AuditEntry
from accounts.teams import create_team
from retrieval.collections import create_collection
from retrieval.models import CollectionFile, FilePart
from tests.console.pages import words_of
from tests.retrieval.collections import add_file, qrels_text, run_text, sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
FILES = "/collections/tracks/files/"


@pytest.fixture
def collection(researcher):
    team = create_team(name="Lab", owner=researcher)
    return create_collection(name="Tracks", team=team, actor=researcher)


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
    page = words_of(rosa.get(FILES).content.decode())
    assert "2 runs" in page
    assert "q.txt" in page
    assert AuditEntry.objects.filter(action="collection.file", subject="tracks").count() == 3


def test_every_fault_of_a_file_is_shown_with_its_line_and_nothing_of_it_is_kept(rosa, collection):
    text = run_text("dense", n_topics=1)
    lines = text.splitlines()
    lines[2] = "t0 Q0 d99 3 high dense"
    lines[4] = lines[3]
    lines[6] = "t0 Q0 d98 7"
    rosa.post(FILES, {"uploads": [sent("bad.run", "\n".join(lines))]})
    file = CollectionFile.objects.get()
    assert (file.n_faults, file.is_usable) == (3, False)
    assert not FilePart.objects.exists()
    page = words_of(rosa.get(FILES).content.decode())
    assert "bad.run cannot be used: 3 faults" in page
    assert "Line 3: the score high is not a number." in page
    assert "Line 5: document" in page
    assert "Line 7: it has 4 columns" in page


def test_what_is_neither_a_run_nor_qrels_is_refused_and_the_others_are_taken(rosa, collection):
    files = [sent("notes.txt", "five words in a line\n"), sent("q.txt", qrels_text())]
    answer = rosa.post(FILES, {"uploads": files})
    assert answer.status_code == 422
    page = words_of(answer.content.decode())
    assert "notes.txt: It is neither a run, of six columns" in page
    assert list(collection.files.values_list("name", flat=True)) == ["q.txt"]


def test_the_same_file_twice_an_empty_one_and_one_that_is_too_large_are_refused(
    rosa, collection, settings
):
    rosa.post(FILES, {"uploads": [sent("a.run", run_text("dense"))]})
    answer = rosa.post(FILES, {"uploads": [sent("again.run", run_text("dense"))]})
    assert "The same file is here already, as dense." in words_of(answer.content.decode())
    answer = rosa.post(FILES, {"uploads": [sent("empty.run", "")]})
    assert "empty.run: The file is empty." in words_of(answer.content.decode())
    settings.UPLOAD_MAX_MEGABYTES = 0
    answer = rosa.post(FILES, {"uploads": [sent("b.run", run_text("bm25"))]})
    assert answer.status_code == 422
    assert collection.files.count() == 1


def test_what_gzip_made_small_and_is_huge_is_refused_unread(collection, settings):
    settings.UPLOAD_MAX_MEGABYTES = 1
    huge = gzip.compress(b"t1 Q0 d1 1 1.0 tag\n" * 800_000)
    file = add_file(collection, "huge.run.gz", huge)
    assert file.faults == [[None, "It has more than 10 MiB once unpacked. Split it by topic."]]


def test_two_runs_of_one_tag_have_two_names(collection):
    for seed in (1, 2):
        add_file(collection, f"{seed}.run", run_text("dense", seed=seed))
    assert set(collection.files.values_list("name", flat=True)) == {"dense", "dense (2)"}


def test_ties_and_topics_that_no_qrels_have_are_counted(rosa, collection):
    add_file(collection, "q.txt", "t1 0 a 1\nt1 0 b 0\n")
    add_file(
        collection,
        "a.run",
        "t1 Q0 a 1 0.5 x\nt1 Q0 b 2 0.5 x\nt1 Q0 c 3 0.5 x\nt2 Q0 a 1 0.5 x\nt3 Q0 a 1 inf x\n",
    )
    run = collection.files.get(kind="run")
    assert (run.n_tied, run.n_infinite, run.n_topics) == (3, 1, 3)
    rows = rosa.get(FILES).context["runs"]
    assert [row.n_foreign for row in rows] == [2]


def test_a_file_is_described_taken_away_and_removed(rosa, collection):
    file = add_file(collection, "a.run", run_text("dense"))
    where = reverse("console:collection-file", args=["tracks", file.pk])
    rosa.post(where, {"name": "Dense", "family": "bi-encoders"})
    file.refresh_from_db()
    assert (file.name, file.family) == ("Dense", "bi-encoders")
    content = rosa.get(f"{where}content/")
    assert b"".join(content).decode() == run_text("dense")
    rosa.post(f"{where}remove/")
    assert not collection.files.exists()
    assert not FilePart.objects.exists()
    actions = list(AuditEntry.objects.values_list("action", flat=True))
    assert {"collection.describe", "export", "collection.remove"} <= set(actions)


def test_two_files_of_a_kind_do_not_have_one_name(rosa, collection):
    add_file(collection, "a.run", run_text("dense"))
    other = add_file(collection, "b.run", run_text("bm25", seed=2))
    where = reverse("console:collection-file", args=["tracks", other.pk])
    answer = rosa.post(where, {"name": "dense", "family": ""})
    assert answer.status_code == 422
    other.refresh_from_db()
    assert other.name == "bm25"


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
    assert "too long: 1,002 bytes, where 1,000 are the most" in problem
    assert add_file(collection, "b.run", f"{'é' * 500} Q0 d1 1 1.0 tag\n").is_usable


def test_what_gzip_cannot_unpack_is_a_fault_of_the_file(collection):
    packed = gzip.compress(run_text("dense").encode())
    file = add_file(collection, "a.run", packed[:40] + b"\0\xff" * 8 + packed[56:], kind="run")
    assert file.n_faults == 1


def test_sending_no_file_is_refused(rosa, collection):
    answer = rosa.post(FILES, {"family": "", "kind": ""})
    assert answer.status_code == 422
    assert "This field is required." in words_of(answer.content.decode())


def _binary(kind: str) -> bytes:
    if kind == "xlsx":
        content = BytesIO()
        Workbook().save(content)
        return content.getvalue()
    content = BytesIO()
    Image.effect_noise((64, 64), 60).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "kind", "problem"),
    [
        ("a.png", _binary("png"), "", "It is a picture (PNG), and not text."),
        ("a.png", _binary("png"), "run", "It is a picture (PNG), and not text."),
        ("a.xlsx", _binary("xlsx"), "", "It is an Excel workbook, and not text."),
        ("a.xlsx", _binary("xlsx"), "qrels", "It is an Excel workbook, and not text."),
        ("a.run", run_text("dense"), "qrels", "It has six columns, as a run has"),
        ("q.txt", qrels_text(), "run", "It has four columns, as qrels have"),
        ("a.bin", bytes(range(256)) * 9, "", "It is not text"),
    ],
)
def test_the_wrong_kind_of_file_is_refused_in_a_sentence(
    rosa, collection, name, content, kind, problem
):
    answer = rosa.post(FILES, {"uploads": [sent(name, content)], "kind": kind})
    assert answer.status_code == 422
    page = words_of(answer.content.decode())
    assert f"{name}: {problem}" in page
    assert "\ufffd" not in page
    assert not collection.files.exists()


@pytest.mark.parametrize(
    ("content", "kind", "problem"),
    [
        (_binary("png"), "catalogue", "It is a picture (PNG), and not a table."),
        (_binary("png"), "embeddings", "It is a picture (PNG). Vectors are Parquet"),
        (_binary("xlsx"), "embeddings", "It is an Excel workbook. Vectors are Parquet"),
        (run_text("dense"), "embeddings", "It is text. Vectors are Parquet"),
        (bytes(range(256)) * 9, "embeddings", "It is another kind of file. Vectors are Parquet"),
    ],
)
def test_the_wrong_kind_of_source_is_refused_in_a_sentence(
    rosa, collection, content, kind, problem
):
    data = {"kind": kind, "file": sent("a.file", content), "name": ""}
    answer = rosa.post("/collections/tracks/pools/sources/", data)
    assert answer.status_code == 422
    assert problem in words_of(answer.content.decode())
    assert not collection.files.exists()


def test_ranks_that_contradict_scores_are_shown_by_line_and_the_run_is_used(rosa, collection):
    lines = [f"t1 Q0 d{n} {n} {n / 10} x" for n in range(1, 31)]
    run = add_file(collection, "a.run", "\n".join(lines))
    assert (run.is_usable, run.n_warnings, len(run.warnings)) == (True, 29, 20)
    assert "29 ranks contradict their scores" in words_of(rosa.get(FILES).content.decode())
    page = words_of(rosa.get(f"{FILES}{run.pk}/").content.decode())
    assert "The rank and the score contradict each other in 29 lines." in page
    assert "Line 2: document d2 of topic t1 has rank 2 and score 0.2" in page
    assert "The first 20 are listed." in page


def test_more_files_than_one_form_can_send_are_refused_in_a_sentence(rosa, collection, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 3

    def send(n_files):
        files = [sent(f"{n}.run", run_text(f"s{n}", n_topics=1)) for n in range(n_files)]
        return rosa.post(FILES, {"uploads": files})

    answer = send(4)
    page = words_of(answer.content.decode())
    assert (answer.status_code, collection.files.count()) == (400, 0)
    assert "At most 3 files can be sent at a time, and none of these is stored." in page
    assert "To the first page" in page
    assert send(3).status_code == 302


def test_the_page_says_how_many_files_one_form_can_send(rosa, collection):
    assert "up to 100 at once" in words_of(rosa.get(FILES).content.decode())
