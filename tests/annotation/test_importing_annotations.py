"""Labels collected in other tools. The files in `tool_exports/` are written by hand in the
schemas that each tool documents:

- label_studio.json: https://labelstud.io/guide/task_format.html
- argilla.json, argilla_ranking.json: `Record.to_dict` as written by `dataset.records.to_json`,
  https://docs.argilla.io/latest/reference/argilla/records/records/
- doccano_*.jsonl: "Export the dataset" of https://doccano.github.io/doccano/tutorial/, one file
  an annotator; doccano_by_user.jsonl is the JSONL of doccano up to 1.2
- mturk_*.csv: the results file of a batch, "Review results" in
  https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/
"""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.core.management import CommandError, call_command

from annotation import agreement, exports, plain_labels
from annotation.exceptions import AnnotationError, FileFaults, ImportRefused, TableRefused
from annotation.frames import judgment_frame
from annotation.models import Annotator, Item, Study, Submission, WrittenAnswer
from annotation.readers.shapes import Columns
from presentation.row_files import row_csv
from tests.annotation.importing import command_output, everything, numbers_in, write_file
from tests.codes import refused

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).parent / "tool_exports"
LABEL_STUDIO: dict[str, Any] = {
    "from": "label-studio", "item": ["dialogue"], "system": "system", "context": "turns",
    "response": "text",
}  # fmt: skip
ARGILLA: dict[str, Any] = {
    "from": "argilla", "context": "prompt", "response": "reply", "condition": "group",
    "written": ["why"],
}  # fmt: skip
BY_SYSTEM: dict[str, Any] = {
    "from": "mturk", "item": ["dialogue"], "system": "system", "context": "turns",
    "response": "reply", "written": ["why"],
}  # fmt: skip
SEVERAL: dict[str, Any] = {
    "from": "mturk", "answers": "Answer.{question}_{system}", "context": "turns",
    "response": "Input.{system}",
}  # fmt: skip
WIDE: dict[str, Any] = {
    "from": "csv", "item": ["doc"], "system": "reply_of", "annotator": "rater",
    "response": "text", "value": ["fluency", "tone"],
}  # fmt: skip
PLAIN: dict[str, Any] = {"from": "csv", "item": ["item"], "annotator": "who", "value": ["v"]}
EVERY_FORMAT = {
    "label_studio.json": LABEL_STUDIO,
    "argilla.json": ARGILLA,
    "argilla_ranking.json": {"from": "argilla", "context": "prompt"},
    "doccano_by_user.jsonl": {"from": "doccano"},
    "mturk_system_in_a_column.csv": BY_SYSTEM,
    "mturk_several_answers.csv": SEVERAL,
    "mturk_form.csv": {"from": "mturk", "response": "text"},
    "mturk_radio.csv": {"from": "mturk", "response": "text"},
    "wide.csv": WIDE,
}


LEFT_OPEN = """\
HITId,WorkerId,AssignmentStatus,Input.text,Answer.tone,Answer.fit.no,Answer.fit.yes,Answer.ease
H1,A1,Approved,Hello.,,,,3
H1,A2,Approved,Hello.,2,false,true,4
H2,A1,Approved,Bye.,1,true,false,
"""


def imported(name: str | Path, study: str = "s", **options: Any) -> str:
    """Import a file of the folder by its options, and return what the command says."""
    options = dict(options)
    return command_output(
        "import_annotations", FOLDER / name, study=study, tool=options.pop("from"), **options
    )


def tried(path: Path, **options: Any) -> Any:
    return json.loads(imported(path, dry_run=True, json=True, **PLAIN, **options))


def rows_of(study: Study, *columns: str) -> list[list[Any]]:
    return [list(row) for row in judgment_frame(study)[list(columns)].to_numpy()]


def pseudonyms(study: Study) -> set[str]:
    return set(Annotator.objects.filter(study=study).values_list("pseudonym", flat=True))


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_each_format_is_imported_and_exported(name, tmp_path):
    before = everything()
    tried = json.loads(imported(name, dry_run=True, json=True, **EVERY_FORMAT[name]))
    assert everything() == before
    done = json.loads(imported(name, json=True, **EVERY_FORMAT[name]))
    assert (tried.pop("is_dry_run"), done.pop("is_dry_run")) == (True, False)
    assert tried == done
    assert done["n_submissions"] == Submission.objects.count() > 0
    before = everything()
    assert numbers_in(imported(name, **EVERY_FORMAT[name]))[0] == 0
    assert everything() == before
    for identity in ("A1WORKER", "A2WORKER", "ann@example", "bo@example", "5e0c3f0a-0001"):
        assert identity not in repr(before)
    first = Study.objects.get()
    assert all(len(name) == 11 and name.startswith("A") for name in pseudonyms(first))
    # The exported judgments import to the same study.
    path = write_file(tmp_path / "judgments.csv", "".join(row_csv(exports.judgment_rows(first))))
    options = {
        "item": ["item"], "candidate": "candidate", "system": "system", "annotator": "annotator",
        "question": "question", "value": ["value"], "condition": "condition", "round": "round",
    }  # fmt: skip
    imported(path, study="again", keep_names=True, **{"from": "csv"}, **options)
    again = Study.objects.named("again")
    columns = ["item", "condition", "candidate", "question", "annotator", "value"]
    rows = [sorted(map(repr, rows_of(study, *columns))) for study in (first, again)]
    assert rows[0] == rows[1]
    assert pseudonyms(again) <= pseudonyms(first)


def test_label_studio_tasks_of_one_dialogue_are_the_candidates_of_an_item():
    output = json.loads(imported("label_studio.json", json=True, **LABEL_STUDIO))
    study = Study.objects.get()
    assert (output["n_items"], output["n_submissions"]) == (2, 5)
    tone, fit = study.question("tone"), study.question("fit")
    assert (tone.level, tone.categories) == ("nominal", ["friendly", "neutral", "rude"])
    assert (fit.level, fit.scale_min, fit.scale_max) == ("ordinal", 1, 5)
    assert {each["code"]: each["n"] for each in output["reading"]["parts"]} == {"skipped": 1}
    item = Item.objects.get(key="d0")
    assert item.context.endswith("station?")
    texts = dict(item.candidates.values_list("system", "text"))
    assert texts.keys() == {"alpha", "beta"}
    assert (texts["alpha"][-5:], texts["beta"][-5:]) == ("down.", "know.")
    by_candidate = judgment_frame(study, question=fit).groupby(["item", "system"], observed=True)
    assert by_candidate["value"].apply(sorted).to_dict() == {
        ("d0", "alpha"): [4, 5], ("d0", "beta"): [1, 2],
        ("d1", "alpha"): [3, 4, 5], ("d1", "beta"): [1, 2],
    }  # fmt: skip
    # Several choices are a question of yes and no each.
    assert [question.name for question in study.questions.all()] == [
        "tone", "fit", "faults:no greeting", "faults:off topic", "faults:terse", "faults:wrong",
    ]  # fmt: skip
    # A user given as an object is the same as by number.
    assert Annotator.objects.count() == 3
    # Words are written answers and no categories.
    answer = WrittenAnswer.objects.get()
    assert (answer.question, answer.text) == ("why", "Short and right.")
    assert answer.candidate is not None
    assert answer.candidate.system == "alpha"
    submission = Submission.objects.filter(item__key="d0").first()
    assert submission is not None
    assert submission.submitted_at is not None
    assert submission.submitted_at.isoformat() == "2026-03-09T22:16:08.728353+00:00"
    assert submission.seconds == 8.5
    frame = judgment_frame(study)
    terse = frame[frame["question"] == "faults:terse"]
    by_candidate = terse.groupby(["item", "system"], observed=True)["value"].apply(sorted)
    assert by_candidate.to_dict() == {
        ("d0", "alpha"): [1, 1], ("d0", "beta"): [0, 1], ("d1", "beta"): [0],
    }  # fmt: skip


def test_argilla_ratings_labels_and_topics():
    imported("argilla.json", **ARGILLA)
    study = Study.objects.get()
    assert {question.name: question.level for question in study.questions.all()} == {
        "quality": "ordinal", "label": "nominal", "topics:greeting": "nominal",
        "topics:question": "nominal", "topics:time": "nominal",
    }  # fmt: skip
    frame = judgment_frame(study)
    quality = frame[frame["question"] == "quality"].groupby("item", observed=True)["value"]
    assert quality.apply(list).apply(sorted).to_dict() == {
        "r0": [4, 4, 5], "r1": [2, 3], "r2": [5, 5, 5], "r3": [1, 1, 2],
    }  # fmt: skip
    assert Item.objects.get(key="r0").condition == "formal"
    assert set(WrittenAnswer.objects.values_list("text", flat=True)) == {"Polite.", "Fits."}
    # A ranking is the share of the others below.
    imported("argilla_ranking.json", "ranked", **{"from": "argilla", "context": "prompt"})
    study = Study.objects.named("ranked")
    assert study.questions.get().kind == "ranking"
    values = judgment_frame(study).groupby("candidate", observed=True)["value"].apply(sorted)
    assert values.drop("item", errors="ignore").to_dict() == {
        "reply-1": [0.5, 1], "reply-2": [0.25, 1], "reply-3": [0, 0.25],
    }  # fmt: skip


def test_mturk_with_the_system_in_a_column():
    output = imported("mturk_system_in_a_column.csv", **BY_SYSTEM)
    study = Study.objects.get()
    assert numbers_in(output)[:2] == [2, 5]
    statuses = Submission.objects.values_list("status", flat=True)
    assert sorted(statuses) == ["approved"] * 4 + ["rejected"]
    # The rejected assignment is there, and its judgments do not count.
    assert len(judgment_frame(study)) == 16
    assert len(judgment_frame(study, accepted=False)) == 18
    assert set(judgment_frame(study)["system"]) == {"alpha", "beta"}
    assert WrittenAnswer.objects.filter(question="why").count() == 2


def test_mturk_with_several_answers_a_row():
    imported("mturk_several_answers.csv", **SEVERAL)
    study = Study.objects.get()
    texts = study.items.get(key="3HIT1").candidates.values_list("system", "text")
    assert list(texts) == [("alpha", "There."), ("beta", "Nowhere.")]
    frame = judgment_frame(study)
    fit = frame[(frame["question"] == "fit") & (frame["item"] == "3HIT1")]
    assert sorted(fit[["system", "value"]].to_numpy().tolist()) == [
        ["alpha", 70], ["alpha", 81], ["beta", 11], ["beta", 20],
    ]  # fmt: skip
    # Radio buttons are one choice.
    for name in ("mturk_form.csv", "mturk_radio.csv"):
        slug = name.removesuffix(".csv")
        imported(name, slug, **EVERY_FORMAT[name])
        question = Study.objects.named(slug).question("feeling")
        assert question.categories == ["negative", "positive"]
        frame = judgment_frame(Study.objects.named(slug), question=question)
        values = frame.groupby("item", observed=True)["value"].apply(sorted)
        assert values.to_dict() == {"3HIT1": [1, 1], "3HIT2": [0, 1]}


@pytest.mark.parametrize(
    ("question", "level"), [("fluency", "interval"), ("fluency", "ordinal"), ("tone", "nominal")]
)
def test_agreement_is_that_of_the_plain_file(question, level, tmp_path):
    imported("wide.csv", level=[(question, level)], **WIDE)
    rows = list(csv.DictReader((FOLDER / "wide.csv").read_text().splitlines()))
    path = tmp_path / "plain.csv"
    with path.open("w") as content:
        writer = csv.DictWriter(content, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if row[question])
    columns = Columns(("doc", "reply_of"), ("rater",), question, cluster="doc")
    plain = plain_labels.agree_on_file(path, columns, level=level)  # type: ignore[arg-type]
    report = agreement.study_agreement(Study.objects.get())
    [mine] = [row for row in report.questions if row.question == question]
    alpha = next(row for row in plain.coefficients if row.name == mine.alpha.name)
    assert mine.alpha.value == pytest.approx(alpha.value, abs=1e-12)
    assert (mine.alpha.ci_low, mine.alpha.ci_high) == pytest.approx(
        (alpha.ci_low, alpha.ci_high), abs=1e-12
    )
    assert mine.alpha.n_labels == plain.n_judgments


def test_levels_scales_and_wordings_are_those_asked_for():
    imported(
        "wide.csv", level=[("fluency", "ordinal")], scale=[("fluency", (0.0, 10.0))],
        wording=[("tone", "How warm is it?")], **WIDE,
    )  # fmt: skip
    study = Study.objects.get()
    fluency, tone = study.question("fluency"), study.question("tone")
    assert (fluency.level, fluency.scale_min, fluency.scale_max) == ("ordinal", 0, 10)
    assert tone.wording == "How warm is it?"
    # An empty cell is a question that was not answered.
    frame = judgment_frame(study)
    assert [(frame["question"] == name).sum() for name in ("fluency", "tone")] == [22, 24]


def faults_of(path: Path, **options: Any) -> list[ImportRefused]:
    before = everything()
    with pytest.raises(FileFaults) as caught:
        imported(path, **options)
    assert everything() == before
    return list(caught.value.faults)


def test_all_faults_of_a_table_or_record_are_said_at_once_with_their_fields(tmp_path):
    path = write_file(
        tmp_path / "bad.csv",
        "doc,reply_of,rater,text,fluency,tone\n"
        "d0,alpha,,T,3,warm\n"
        "d0,alpha,ann,T,three,warm\n"
        "d0,alpha,ann,Other text,4,warm\n"
        "d1,alpha,ann,T,4\n"
        "d2,alpha,ann,T,99,warm\n",
    )
    options: dict[str, Any] = {"level": [("fluency", "interval")], **WIDE}
    found = faults_of(path, scale=[("fluency", (1.0, 7.0))], **options)
    assert [(fault.line, fault.field, fault.code) for fault in found] == [
        (2, "rater", "empty"), (3, "fluency", "not_number"), (4, "fluency", "repeated_answer"),
        (4, None, "differs"), (5, None, "field_count"), (6, "fluency", "off_scale"),
    ]  # fmt: skip
    values = ("", "--level fluency=nominal", "line 3", "--item", "5", "99")
    assert all(value in fault.problem for value, fault in zip(values, found, strict=True))
    tasks = json.loads((FOLDER / "label_studio.json").read_text())
    tasks[0]["annotations"][0]["result"][1]["value"] = {"rating": "many"}
    tasks[1]["annotations"][1]["completed_by"] = []
    tasks[2].pop("annotations")
    path = write_file(tmp_path / "bad.json", json.dumps(tasks))
    found = faults_of(path, **LABEL_STUDIO)
    assert [(fault.field, fault.code) for fault in found] == [
        ("annotations[0].result[1].value.rating", "not_number"),
        ("annotations[1].completed_by", "not_text"), (None, "not_export"),
    ]  # fmt: skip


def test_faults_are_json_too(tmp_path):
    path = write_file(tmp_path / "bad.csv", "item,who,v\nd0,,1\n,ann,1\n")
    with refused(ImportRefused, "missing_field", naming=("item, who, v",)):
        imported(path, **PLAIN | {"item": ["document"]})
    output = StringIO()
    with pytest.raises(FileFaults):
        call_command(
            "import_annotations", str(path), study="s", tool="csv", item=["item"], annotator="who",
            value=["v"], json=True, stdout=output,
        )  # fmt: skip
    faults = json.loads(output.getvalue())["faults"]
    assert [[fault[name] for name in ("file", "line", "field", "code")] for fault in faults] == [
        ["bad.csv", 2, "who", "empty"], ["bad.csv", 3, "item", "empty"],
    ]  # fmt: skip


def test_categories_that_look_alike_are_noted_or_merged(tmp_path):
    path = write_file(
        tmp_path / "labels.csv", "item,who,v\n1,ann,yes\n1,bob,Yes\n2,ann,yes\n2,bob,no\n"
    )
    for options, categories, code, policy in (
        ({}, ["Yes", "no", "yes"], "look_alike_categories", "as-written"),
        ({"merge_categories": True}, ["no", "yes"], "merged_categories", "merged"),
    ):
        record = tried(path, **options)
        assert record["questions"][0]["categories"] == categories
        assert [note["code"] for note in record["reading"]["notes"]] == [code]
        assert record["reading"]["policies"]["categories"] == policy


@pytest.mark.parametrize("level", [[], [("v", "interval")]])
def test_decimal_commas_are_numbers_unless_one_answer_is_a_word(tmp_path, level):
    path = tmp_path / "labels.csv"
    rows = "item;who;v\n1;ann;1,5\n1;bob;2\n1;ann;2,5\n2;bob;3\n"
    path.write_text(rows)
    record = tried(path, level=level, repeats="mean")
    [question] = record["questions"]
    assert (question["level"], question["scale"]) == ("interval", [2, 3])
    assert "decimal_comma" in [note["code"] for note in record["reading"]["notes"]]
    path.write_text(f"{rows}3;ann;three\n3;bob;4\n".replace("1;ann;2,5\n", ""))
    if level:
        [fault] = faults_of(path, level=level, **PLAIN)
        assert (fault.line, fault.code) == (5, "not_number")
        return
    record = tried(path, repeats="refuse")
    assert record["questions"][0]["level"] == "nominal"
    assert "words_among_numbers" in [note["code"] for note in record["reading"]["notes"]]


def test_faults_of_workbooks_name_the_sheet_and_the_other_sheets(tmp_path):
    path = tmp_path / "labels.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["about"])
    book.active.append(["this study"])
    sheet = book.create_sheet("Ratings")
    for row in (["item", "who", "v"], [1, "ann", 2], [1, "ann", 3]):
        sheet.append(row)
    book.save(path)
    with refused(ImportRefused, "missing_field", sheet="Sheet", line=2, naming=("'Ratings'",)):
        imported(path, **PLAIN)
    with refused(TableRefused, "missing_columns", sheet="Sheet") as refusal:
        plain_labels.agree_on_file(path, Columns(("item",), ("who",), "v"), level="nominal")
    assert "'Ratings'" in str(refusal.value)
    book["Sheet"].sheet_state = "hidden"
    book.active = 1
    book.save(path)
    [fault] = faults_of(path, **PLAIN)
    assert (fault.sheet, fault.line, fault.code) == ("Ratings", 3, "repeated_answer")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "no_item"),
        ({"item": ["doc"]}, "no_annotator"),
        ({"item": ["doc"], "annotator": "rater"}, "no_value"),
        ({**WIDE, "question": "tone"}, "several_values"),
        ({**WIDE, "level": [("flow", "nominal")]}, "unknown_question"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, code):
    with refused(AnnotationError, code):
        imported("wide.csv", **{"from": "csv"} | options)


def test_bad_options_and_many_words_make_no_study(tmp_path):
    for arguments in (["--scale", "3"], ["--scale", "5:1"], ["--level", "high"]):
        named = ("--study", "s", "--from", "csv")
        with pytest.raises(CommandError):
            command_output("import_annotations", FOLDER / "wide.csv", *named, *arguments)
    rows = (f"d{n},ann,reason {n}\n" for n in range(1001))
    path = write_file(tmp_path / "t.csv", "item,who,v\n" + "".join(rows))
    [fault] = faults_of(path, **PLAIN)
    assert (fault.line, fault.field, fault.code) == (2, "v", "too_many_categories")
    assert "--written v" in fault.problem


def test_a_worker_counts_once_and_questions_have_the_order_of_their_columns(tmp_path):
    text = (FOLDER / "mturk_form.csv").read_text()
    again = text.splitlines()[1].replace("Submitted", "Rejected").replace("3A1", "3Z1")
    path = write_file(tmp_path / "m.csv", text + again + "\n")
    assert "(3HIT1)" in imported(path, **{"from": "mturk"}, response="text")
    assert set(Submission.objects.values_list("status", flat=True)) == {"submitted"}
    path = write_file(tmp_path / "batch.csv", LEFT_OPEN)
    imported(path, "open", **{"from": "mturk"}, response="text")
    assert list(
        Study.objects.named("open").questions.order_by("position").values_list("name", flat=True)
    ) == ["tone", "fit", "ease"]
