from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.frames import judgment_frame
from annotation.models import Annotator, Judgment, Study, Upload, UploadPart
from annotation.result_kinds import agreement, base
from metrics.stored_scores import write_scores
from tests.annotation.importing import as_excel, as_zip
from tests.annotation.test_importing_annotations import EVERY_FORMAT, FOLDER, imported
from tests.annotation.test_importing_mturk_batches import POOLED_BATCH
from tests.codes import codes_on
from tests.console.work import work_off

pytestmark = pytest.mark.django_db
TABLE = (
    "doc;rater;criterion;rating;system;output\n"
    "d1;Ann Lee;style;4;alpha;Hello\nd1;Bob Ray;style;5;alpha;Hello\n"
    "d2;Ann Lee;style;2;beta;Bye\nd2;Bob Ray;style;2;beta;Bye\n"
)
# What the page is told of each file beyond what it finds out, by the options of the command.
USES = {
    "label_studio.json": {"dialogue": "item", "system": "system", "turns": "context"}
    | {"text": "response"},
    "argilla.json": {"prompt": "context", "reply": "response", "group": "condition"},
    "argilla_ranking.json": {"prompt": "context"},
    "doccano_by_user.jsonl": {},
    "mturk_system_in_a_column.csv": {"Input.dialogue": "item", "Input.system": "system"}
    | {"Input.turns": "context", "Input.reply": "response"},
    "mturk_form.csv": {"Input.text": "response"},
    "mturk_radio.csv": {"Input.text": "response"},
    "wide.csv": {"doc": "item", "reply_of": "system", "rater": "annotator", "text": "response"}
    | {"fluency": "value", "tone": "value"},
}
WRITTEN = {"argilla.json": ["why"], "mturk_system_in_a_column.csv": ["why"]}


def send(client: Client, content: str | bytes, name: str, **fields: Any) -> Upload:
    body = content.encode() if isinstance(content, str) else content
    form = {"title": "Elsewhere", "team": "", "begin": "labels", "template": "", "source": ""}
    file = SimpleUploadedFile(name, body)
    answer = client.post(reverse("console:new-study"), form | {"tool": "", "file": file} | fields)
    assert answer.status_code == 302, answer.content.decode()
    return Upload.objects.get()


def to(name: str, upload: Upload) -> str:
    return reverse(f"console:{name}", args=[upload.token])


def said_of(upload: Upload, uses: dict[str, str], **said: str) -> dict[str, str]:
    """The page's form with these uses, and what else is said."""
    names = [column["name"] for column in upload.columns]
    form = {f"use-{n}": uses.get(name, "") for n, name in enumerate(names)}
    return {"tool": upload.mapping["tool"]} | form | said


def page_of(client: Client, upload: Upload) -> Any:
    """What the upload's page shows, and the upload as it is stored."""
    answer = client.get(to("upload", upload))
    assert answer.status_code == 200
    upload.refresh_from_db()
    return answer


def say(client: Client, upload: Upload, uses: dict[str, str], **said: str) -> Any:
    """Send the page's form, and what the page shows then."""
    client.post(to("upload-map", upload), said_of(upload, uses, **said))
    return page_of(client, upload)


def as_rows(study: Study) -> list[Any]:
    columns = ["item", "condition", "candidate", "system", "question", "value"]
    return sorted(map(repr, judgment_frame(study)[columns].to_numpy().tolist()))


@pytest.mark.parametrize("name", USES)
def test_an_upload_makes_the_study_that_the_command_makes(rosa, name):
    upload = send(rosa, (FOLDER / name).read_bytes(), name)
    assert upload.mapping["tool"] == EVERY_FORMAT[name]["from"]
    say(rosa, upload, USES[name])
    names = [question["name"] for question in upload.summary["questions"]]
    words = {f"level-{names.index(each)}": "words" for each in WRITTEN.get(name, ())}
    form = said_of(upload, USES[name], **words)
    rosa.post(to("upload-map", upload), form)
    answer = rosa.post(to("upload-import", upload), form)
    upload.refresh_from_db()
    assert upload.result is not None, upload.faults
    assert rosa.get(answer.url).url == reverse("console:study", args=[upload.result.slug])
    imported(name, study="by-command", **EVERY_FORMAT[name])
    assert as_rows(upload.result) == as_rows(Study.objects.get(slug="by-command"))


def counts_of(upload: Upload) -> tuple[int, int, int, int]:
    """The answers, annotators, questions and items that a file holds."""
    summary = upload.summary
    sizes = (summary["n_answers"], summary["n_annotators"])
    return *sizes, len(summary["questions"]), summary["n_items"]


def test_a_batch_of_targets_with_their_pools_becomes_a_study_of_alternatives(rosa):
    upload = send(rosa, POOLED_BATCH, "batch.csv")
    page = page_of(rosa, upload)
    assert counts_of(upload) == (7, 2, 1, 2)
    reading = upload.reading
    assert {each["code"] for each in reading["parts"]} == {"repeated_picture", "own_target"}
    assert page.context["is_of_pools"]
    rosa.post(to("upload-import", upload), said_of(upload, {}))
    assert Study.objects.get().kind == "alternatives"
    assert Judgment.objects.count() == 7
    assert Judgment.objects.accepted().count() == 4
    assert not Annotator.objects.filter(pseudonym__in=["W1", "W2"]).exists()


def test_what_will_be_read_is_shown_and_nothing_is_stored(rosa):
    upload = send(rosa, TABLE, "labels.csv")
    # Nothing in the names of the columns says what an item is.
    assert len(page_of(rosa, upload).context["problems"]) == 1
    uses = upload.mapping["uses"]
    assert uses == {"rater": "annotator", "criterion": "question", "rating": "value"} | {
        "system": "system",
        "output": "response",
    }
    page = say(rosa, upload, uses | {"doc": "item"})
    assert counts_of(upload) == (4, 2, 1, 2)
    assert upload.summary["systems"] == ["alpha", "beta"]
    [question] = page.context["questions"]
    assert question.scale == "2–5"
    assert page.context["annotators"] == [(1, 2), (2, 2)]
    assert page.content.decode().count("Ann Lee") == 1  # the first value of its column
    assert not Study.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_study_is_made_under_pseudonyms_with_agreement_and_asks_for_no_launch(rosa, page_text):
    upload = send(rosa, TABLE, "labels.csv", tool="csv")
    form = said_of(upload, upload.mapping["uses"] | {"doc": "item"})
    rosa.post(to("upload-map", upload), form)
    rosa.post(to("upload-import", upload), form)
    work_off()
    study = Study.objects.get()
    assert study.title == "Elsewhere"
    assert Judgment.objects.count() == 4
    assert not Annotator.objects.filter(pseudonym__contains=" ").exists()
    assert not UploadPart.objects.exists()
    assert agreement.AgreementKind().list_results(study).exists()
    overview = rosa.get(reverse("console:study", args=[study.slug])).content.decode()
    assert "btn-primary" not in overview or "launch/" not in overview.split("btn-primary")[1][:200]
    for name in ("launch", "answers"):
        page = rosa.get(reverse(f"console:{name}", args=[study.slug])).content.decode()
        assert "collected_elsewhere" in codes_on(page)
    # A metric's scores are validated against them as against any labels.
    values = {("d1", "alpha"): 1.0, ("d2", "beta"): 0.0}
    write_scores(study=study, metric="m", signature="m|version:1", values=values)
    base.find_study_kind("validation").compute_now(study)
    assert "style" in page_text(study, "validation")


def test_all_faults_are_shown_at_their_place_and_nothing_is_imported(rosa):
    content = TABLE + "d3;;style;3;alpha;Hi\nd1;Bob Ray;style;1;alpha;Hello\nd4;Cy;style;9\n"
    upload = send(rosa, content, "labels.csv")
    form = said_of(upload, upload.mapping["uses"] | {"doc": "item"})
    rosa.post(to("upload-map", upload), form)
    page = page_of(rosa, upload)
    places = {(fault.line, fault.column) for fault in page.context["faults"]}
    assert {line for line, _column in places} >= {6, 8}
    assert (6, "rater") in places
    assert upload.n_faults == len(places) == 3
    assert "--item" not in page.content.decode()
    rosa.post(to("upload-import", upload), form)
    assert not Study.objects.exists()


def test_answers_that_do_not_fit_are_said_to_be_words(rosa):
    upload = send(rosa, TABLE.replace(";5;", ";fine;"), "labels.csv")
    uses = upload.mapping["uses"] | {"doc": "item"}
    for _ in range(2):
        rosa.post(to("upload-map", upload), said_of(upload, uses, **{"level-0": "interval"}))
        upload.refresh_from_db()
    [fault] = page_of(rosa, upload).context["faults"]
    assert "'fine'" in fault.problem
    [question] = say(
        rosa, upload, uses, **{"level-0": "nominal", "wording-0": "How formal?"}
    ).context["questions"]
    assert question.scale == "2, 4, fine"


def test_a_zip_of_annotators_files_is_doccanos(rosa):
    names = ("doccano_ann.jsonl", "doccano_bob.jsonl")
    content = as_zip({name: (FOLDER / name).read_bytes() for name in names})
    upload = send(rosa, content, "labels.zip")
    assert upload.mapping["tool"] == "doccano"
    assert upload.summary["n_annotators"] == 2
    rosa.post(to("upload-import", upload), said_of(upload, {}))
    assert Annotator.objects.count() == 2


def test_a_table_may_be_an_excel_file(rosa):
    lines = TABLE.replace("doc;", "item;").splitlines()
    rows = [[int(c) if c.isdigit() else c for c in line.split(";")] for line in lines]
    upload = send(rosa, as_excel(rows), "labels.xlsx")
    assert upload.summary["n_answers"] == 4
    rosa.post(to("upload-import", upload), said_of(upload, upload.mapping["uses"]))
    assert Judgment.objects.count() == 4


def test_the_next_file_of_these_fields_is_read_as_the_last(rosa):
    upload = send(rosa, TABLE, "labels.csv")
    say(rosa, upload, (upload.mapping["uses"] | {"doc": "item"}))
    # What does not make a study yet is not kept.
    rosa.post(to("upload-map", upload), said_of(upload, {"doc": "item"}))
    Upload.objects.all().delete()
    again = send(rosa, TABLE.replace("d1", "d9"), "more.csv")
    assert again.is_mapping_known
    assert again.mapping["uses"]["doc"] == "item"


def test_another_tool_may_be_chosen(rosa):
    upload = send(rosa, TABLE, "labels.csv", tool="mturk")
    [fault] = page_of(rosa, upload).context["faults"]
    assert fault.column == "HITId"
    rosa.post(to("upload-map", upload), {"tool": "csv"})
    upload.refresh_from_db()
    assert upload.mapping["uses"]["rater"] == "annotator"


@pytest.mark.parametrize(
    ("content", "name"), [(b"\xd0\xcf\x11\xe0 and more", "old.xls"), (b"[]", "none.json")]
)
def test_a_file_that_cannot_be_read_is_refused(rosa, content, name):
    upload = send(rosa, content, name)
    page = page_of(rosa, upload)
    [fault] = upload.faults
    assert upload.n_rows is None
    assert fault["problem"] in unescape(page.content.decode())


REPEATED = "item,who,v\n1,ann,1\n1,ann,3\n1,bob,2\n2,bob,NA\n"


def test_repeated_and_missing_answers_follow_what_was_chosen(rosa):
    upload = send(rosa, REPEATED, "labels.csv")
    uses = {"item": "item", "who": "annotator", "v": "value"}
    say(rosa, upload, uses)
    assert [fault["code"] for fault in upload.faults] == ["repeated_answer"]
    chosen = said_of(upload, uses, repeats="mean", missing="words")
    rosa.post(to("upload-map", upload), chosen)
    page_of(rosa, upload)
    reading = upload.reading
    assert upload.faults == []
    assert (reading["n_rows"], reading["n_used"]) == (4, 2)
    assert reading["missing"] == {"NA": 1}
    assert reading["policies"] == {"missing": "words", "repeats": "mean"}
    assert "NA" in "".join(upload.reading_sentences)
    rosa.post(to("upload-import", upload), chosen)
    assert sorted(Judgment.objects.values_list("value", flat=True)) == [2, 2]


def test_categories_that_look_alike_are_noted_and_merged_on_request(rosa):
    upload = send(rosa, "item,annotator,label\n1,ann,yes\n1,bob,Yes\n2,ann,yes\n", "labels.csv")
    page = page_of(rosa, upload)
    assert [note["code"] for note in upload.reading["notes"]] == ["look_alike_categories"]
    assert "--" not in "".join(page.context["sentences"])
    page = say(rosa, upload, upload.mapping["uses"], **{"merge-categories": "on"})
    assert page.context["settings"].categories == "merged"
    assert upload.summary["questions"][0]["categories"] == ["yes"]
    assert upload.reading["policies"]["categories"] == "merged"


def test_a_question_may_be_left_out_and_taken_back(rosa):
    upload = send(rosa, "item,who,v,w\n1,ann,1,5\n1,bob,2,6\n", "labels.csv")
    uses = {"item": "item", "who": "annotator", "v": "value", "w": "value"}
    say(rosa, upload, uses)
    say(rosa, upload, uses, **{"level-0": "left_out"})
    assert [(q["name"], q["is_read"]) for q in upload.summary["questions"]] == [
        ("w", True), ("v", False),
    ]  # fmt: skip
    assert upload.reading["parts"][0]["code"] == "question_left_out"
    say(rosa, upload, uses, **{"level-1": ""})
    assert {q["name"] for q in upload.summary["questions"] if q["is_read"]} == {"v", "w"}
