import pytest
from django.urls import reverse

from accounts.models import User
from annotation import label_sets, study_facts
from annotation.exports import judgment_rows, labels_csv
from annotation.models import LabelSet, Study, Submission
from annotation.study_files import row_downloads
from presentation.row_files import row_csv, row_jsonl
from retrieval.exports.qrels import judgment_source
from retrieval.study_files import write_released_layout
from tests.annotation import importing, studies

pytestmark = pytest.mark.django_db
OF_ANSWERS = (
    *("judgments", "submissions", "written", "missing", "checks", "labels"),
    *("sampled", "qrels", "provenance"),
)


def marks_of(study):
    rows = Submission.objects.of(study)
    names = ("item__key", "annotator__pseudonym", "is_simulated")
    return {(item, annotator): mark for item, annotator, mark in rows.values_list(*names)}


@pytest.fixture
def study():
    study = studies.rated_study()
    studies.make_simulated(study, 1)
    return study


def test_every_table_of_answers_has_the_mark(study):
    for name in OF_ANSWERS:
        source = ticked_with_answers() if name in ("qrels", "provenance") else study
        assert "simulated" in row_downloads()[name].rows(source).columns, name
    assert set(row_downloads()) - set(OF_ANSWERS) == {"practice", "comments", "items", "scores"}
    label_sets.make_label_set(question=study.questions.get(), rule=label_sets.Rule("mean"))
    header, *rows = "".join(labels_csv(LabelSet.objects.get())).split()
    assert header.endswith(",simulated")
    assert {row.rsplit(",", 1)[1] for row in rows} == {"True"}


def ticked_with_answers():
    study = Study.objects.filter(kind="alternatives").first() or studies.ticked_study()
    if not Submission.objects.of(study).filter(is_simulated=True).exists():
        Submission.objects.of(study).delete()
        item = study.items.get(position=0)
        for person in ("ann", "bob"):
            studies.tick(study, person, item.key, [])
        studies.make_simulated(study, 1)
    return study


def test_the_api_has_the_mark(rosa):
    study = studies.rated_study(owner=User.objects.get(username="rosa"))
    studies.make_simulated(study, 1)
    counts = {}
    for name in ("submissions", "judgments"):
        rows = rosa.get(f"/api/v1/studies/{study.slug}/{name}/").json()["results"]
        marks = [row["simulated"] for row in rows]
        counts[name] = (marks.count(True), len(marks))
    assert counts["submissions"] == (1, Submission.objects.of(study).count())
    assert counts["judgments"][0] == Submission.objects.get(is_simulated=True).judgments.count()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("command", ["import_judgments", "import_annotations"])
def test_an_imported_download_has_the_marks(study, tmp_path, command, form):
    path = tmp_path / f"judgments.{form}"
    path.write_text("".join({"csv": row_csv, "jsonl": row_jsonl}[form](judgment_rows(study))))
    options = {} if command == "import_judgments" else {
        **{"tool": "csv", "item": ["item"], "annotator": "annotator", "value": ["value"]},
        **{"system": "system", "question": "question", "keep_names": True},
    }  # fmt: skip
    importing.command_output(command, path, study="again", **options)
    again = Study.objects.get(slug="again")
    assert study_facts.raters_of(again) is study_facts.Raters.BOTH
    assert marks_of(again) == marks_of(study)


def test_the_released_layout_marks_simulated_answers_and_other_columns_mark_nothing(tmp_path):
    study = ticked_with_answers()
    first, *_rest = write_released_layout(judgment_source(study), tmp_path)
    header, *rows = first.read_text().split()
    assert header.endswith(",simulated")
    assert sorted(row.rsplit(",", 1)[1] for row in rows) == ["False", "True"]
    importing.command_output("import_annotations", first, study="again", tool="mturk-pools")
    assert sorted(marks_of(Study.objects.get(slug="again")).values()) == [False, True]
    Submission.objects.of(study).update(is_simulated=False)
    first, *_rest = write_released_layout(judgment_source(study), tmp_path / "people")
    assert "simulated" not in first.read_text()
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,value,simulated\ni,ann,1,by design\ni,bob,2,\n")
    importing.command_output("import_judgments", path, study="third")
    assert set(marks_of(Study.objects.get(slug="third")).values()) == {False}


def test_uploaded_labels_keep_the_mark_and_say_so(study, rosa):
    from tests.annotation.pages.test_label_uploads import said_of, send, to

    content = "".join(row_csv(judgment_rows(study)))
    Study.objects.all().delete()
    upload = send(rosa, content, "judgments.csv")
    uses = {"item": "item", "annotator": "annotator", "value": "value", "question": "question"}
    uses |= {"system": "system"}
    rosa.post(to("upload-map", upload), said_of(upload, uses))
    upload.refresh_from_db()
    assert [note["code"] for note in upload.reading["notes"]] == ["simulated"]
    rosa.post(to("upload-import", upload), said_of(upload, uses))
    again = Study.objects.get()
    assert sorted(marks_of(again).values()).count(True) == 1
    assert study_facts.raters_of(again) is study_facts.Raters.BOTH
    assert rosa.get(reverse("console:study", args=[again.slug])).status_code == 200
