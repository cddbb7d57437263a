import csv
import io
import json
from zipfile import ZipFile

import pytest
from django.urls import reverse

from annotation.agreement import study_agreement
from annotation.frames import judgment_frame
from annotation.models import Item, Judgment, Submission
from console.downloads import file_names
from console.results import require_validation
from console.validation_view import correlations_of
from metrics.frames import score_frame
from metrics.imports import import_scores
from presentation.records import plain_records
from tests.annotation.studies import rate, rated_study, rating_study, tick, ticked_study
from tests.codes import message_codes
from tests.console.filled import add_scores, scored_study
from validation.analysis.records import plain
from validation.rows import StoredResults

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def fetch(rosa):
    def fetch_file(study, name):
        return rosa.get(reverse("console:download", args=[study.slug, name]))

    return fetch_file


def table(answer):
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("judgments.csv", "text/csv; charset=utf-8"),
        ("scores.csv", "text/csv; charset=utf-8"),
        ("agreement.json", "application/json"),
        ("validation.json", "application/json"),
    ],
)
def test_a_file_is_saved_under_the_studys_name(fetch, researcher, name, content_type):
    answer = fetch(scored_study(owner=researcher), name)
    assert answer.status_code == 200
    assert answer["Content-Type"] == content_type
    assert answer["Content-Disposition"] == f'attachment; filename="scored-{name}"'
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_judgments_are_one_long_table(fetch, researcher):
    rows = table(fetch(rated_study(owner=researcher), "judgments.csv"))
    assert len(rows) == 12
    assert rows[0] == {
        "study": "rated",
        "round": "1",
        "item": "d0",
        "condition": "",
        "candidate": "alpha",
        "system": "alpha",
        "question": "appropriateness",
        "annotator": "Ann",
        "value": "20.0",
        "position": "0.0",
        "seconds": "1.5",
        "simulated": "False",
    }


def test_a_study_without_judgments_has_a_table_of_the_columns_alone(fetch, researcher):
    answer = fetch(rating_study(owner=researcher), "judgments.csv")
    assert answer.getvalue().decode().startswith("study,round,item,")
    assert table(answer) == []


@pytest.mark.slow
def test_judgments_and_scores_stream_as_their_frames_have_them(fetch, researcher):
    conditions = ("calm", 'a "loud" one, or not')
    study = scored_study(owner=researcher, n_items=45, conditions=conditions, questions=("b", "a"))
    study.items.filter(key="d3").update(position=50)
    Judgment.objects.filter(candidate__item__key="d7").update(position=None, seconds=None)
    doubtful = Submission.objects.filter(item__key="d9")
    doubtful.update(status=Submission.Status.REJECTED)
    frames = {
        "judgments.csv": judgment_frame(study).assign(simulated=False),
        "scores.csv": score_frame(study),
    }
    for name, frame in frames.items():
        answer = fetch(study, name)
        assert answer.streaming
        assert answer.getvalue().decode() == frame.to_csv(index=False)


def test_judgments_of_items_as_a_whole_are_in_the_table(fetch, researcher):
    study = rated_study(owner=researcher)
    whole = study.questions.create(name="safe", wording="Is all of it safe?", position=9)
    for submission in Submission.objects.of(study):
        submission.judgments.create(question=whole, value=1)
    answer = fetch(study, "judgments.csv").getvalue().decode()
    assert answer == judgment_frame(study).assign(simulated=False).to_csv(index=False)
    row = next(row for row in csv.DictReader(io.StringIO(answer)) if row["question"] == "safe")
    assert (row["item"], row["candidate"], row["system"], row["value"]) == ("d0", "", "", "1.0")


def test_scores_can_be_imported_into_the_same_study_elsewhere(fetch, researcher, tmp_path):
    path = tmp_path / "scores.csv"
    content = fetch(scored_study(owner=researcher), "scores.csv").getvalue()
    path.write_bytes(content)
    there = rated_study("there", owner=researcher)
    import_scores(study=there, path=path)
    assert fetch(there, "scores.csv").getvalue() == content


def test_agreement_holds_what_the_page_shows_with_signatures(fetch, researcher):
    study = ticked_study(owner=researcher)
    tick(study, "Bob", "boot", {"clog"})
    tick(study, "Bob", "gown", {"coat"})
    content = json.loads(fetch(study, "agreement.json").getvalue())
    report = study_agreement(study)
    signatures = [row.pop("signature") for row in content["coefficients"]]
    records = json.loads(json.dumps(report.coefficient_records()))
    assert content["coefficients"] == [{"round": 1, **row} for row in records]
    assert {row["name"] for row in records} >= {"krippendorff_alpha", "cohen_kappa", "gwet_ac1"}
    beginning = "krippendorff_alpha|question:acceptable|level:nominal|ci:jackknife-t-clusters|"
    assert [f"{beginning}round:1|input:" in each for each in signatures].count(True) == 1
    assert content["pairs"] == plain_records(report.pairs)
    assert (content["study"], len(content["pairs"])) == ("ticked", 1)


def test_no_two_numbers_of_agreement_have_the_same_signature(fetch, researcher):
    study = rating_study(owner=researcher, questions=("warmth", "clarity"))
    Item.objects.filter(study=study, key="d0").update(condition="calm")
    for round in (1, 2):
        for question in ("warmth", "clarity"):
            for number, name in enumerate(("Ann", "Bob", "Cyd")):
                for item in ("d0", "d1"):
                    values = {"alpha": 10 * number, "beta": 20 + number}
                    rate(study, name, item, values, question=question, round=round)
    content = json.loads(fetch(study, "agreement.json").getvalue())
    rows = content["coefficients"] + content["between_rounds"] + content["by_protocol"]
    signatures = [row["signature"] for row in rows]
    assert {row["question"] for row in rows} == {"warmth", "clarity"}
    assert {row["by"] for row in content["coefficients"]} == {"", "calm", "(none)"}
    assert len(content["between_rounds"]) >= 2
    assert len(set(signatures)) == len(signatures) >= 8


def test_the_input_in_a_signature_changes_with_the_judgments(fetch, researcher):
    study = rated_study(owner=researcher)

    def signature():
        return json.loads(fetch(study, "agreement.json").getvalue())["coefficients"][0]["signature"]

    before = signature()
    assert signature() == before
    rate(study, "Cyd", "d0", {"alpha": 1})
    assert signature() != before


def test_validation_holds_what_the_page_shows_and_how_it_was_made(fetch, researcher):
    study = scored_study(owner=researcher, conditions=("calm", "angry"))
    content = json.loads(fetch(study, "validation.json").getvalue())
    version = require_validation(study).version
    correlations = correlations_of(StoredResults(version, with_variants=True))
    assert content["rows"] == [plain(row) for row in correlations]
    assert content["report"] == version.number
    assert (content["study"], content["round"], content["aggregation"]) == ("scored", 1, "mean")
    assert (content["n_resamples"], content["seed"]) == (1000, 0)


def test_scores_without_judgments_validate_nothing_and_say_so(fetch, researcher):
    study = rating_study(owner=researcher)
    add_scores(study)
    content = json.loads(fetch(study, "validation.json").getvalue())
    assert content["rows"] == []
    assert content["reason"]


def test_undefined_numbers_are_null_in_json(fetch, researcher):
    study = rating_study(owner=researcher)
    answer = fetch(study, "agreement.json").getvalue().decode()
    assert "NaN" not in answer
    assert json.loads(answer)["coefficients"][0]["value"] is None


def test_qrels_are_trecs_four_columns(fetch, researcher):
    answer = fetch(ticked_study(owner=researcher), "qrels.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.getvalue().decode().splitlines() == [
        "boot 0 clog 1",
        "boot 0 pump 1",
        "boot 0 flat 0",
        "gown 0 skirt 0",
        "gown 0 coat 0",
    ]


def test_each_annotators_grades_their_provenance_and_the_released_layout_are_handed_out(
    fetch, researcher
):
    study = ticked_study(owner=researcher)
    [name] = set(study.annotators.values_list("pseudonym", flat=True))
    own = fetch(study, "qrels_jg.txt").getvalue().decode().splitlines()
    assert own[:2] == [f"boot {name} clog 1", f"boot {name} pump 1"]
    lines = fetch(study, "provenance.csv").getvalue().decode().splitlines()
    assert lines[0].startswith("line,topic,docno,grade")
    assert lines[1].startswith("1,boot,clog,1")
    packed = ZipFile(io.BytesIO(fetch(study, "released_layout.zip").getvalue()))
    files = ["judged_targets_ticked.csv", "alter_target_ids_ticked.csv", "docids_ticked.csv"]
    assert packed.namelist() == files
    assert "Input.target1" in packed.read(files[0]).decode()


def test_qrels_that_cannot_be_written_leave_the_reason_on_the_page(rosa, researcher):
    study = ticked_study(owner=researcher)
    Item.objects.filter(key="boot").update(key="rubber boot")
    where = reverse("console:download", args=["ticked", "qrels.txt"])
    answer = rosa.get(where, follow=True)
    assert answer.redirect_chain == [(reverse("console:downloads", args=[study.slug]), 302)]
    assert message_codes(answer) == ["space_in_name"]
    assert "rubber boot" in answer.getvalue().decode()


@pytest.mark.parametrize("name", ["nothing.csv", "judgments", "judgments.CSV", "qrels.txt"])
def test_what_a_rating_study_does_not_offer_is_not_found(fetch, researcher, name):
    assert fetch(scored_study(owner=researcher), name).status_code == 404


@pytest.mark.parametrize("name", ["scores.csv", "validation.json"])
def test_a_study_without_scores_does_not_offer_them(fetch, researcher, name):
    assert fetch(rated_study(owner=researcher), name).status_code == 404


FORMS = ("csv", "jsonl", "parquet")


def in_every_form(*bases):
    return [f"{base}.{form}" for base in bases for form in FORMS]


def test_alternatives_offer_scores_once_they_have_some(researcher):
    study = ticked_study(owner=researcher)
    rest = ["qrels.txt", "qrels_jg.txt", "released_layout.zip", "agreement.json"]
    assert file_names(study) == [
        *in_every_form("judgments", "submissions", "items", "qrels", "provenance"),
        *rest, "dataset.zip",
    ]  # fmt: skip
    add_scores(study)
    assert file_names(study) == [
        *in_every_form("judgments", "submissions", "items", "scores", "qrels", "provenance"),
        *rest, "validation.json", "dataset.zip",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("build", [scored_study, ticked_study])
def test_a_page_links_to_the_files_a_study_has_and_to_no_others(rosa, researcher, build):
    study = build(owner=researcher)
    for name in ("agreement", "validation"):
        rosa.get(reverse(f"console:{name}", args=[study.slug]))
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    for name in file_names(study):
        where = reverse("console:download", args=[study.slug, name])
        assert f'href="{where}"' in page
        assert rosa.get(where).status_code == 200
    for name in {"scores.csv", "qrels.txt"} - set(file_names(study)):
        assert name not in page


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_before_anything_is_judged_only_what_is_there_is_offered(rosa, researcher, kind):
    if kind == "rating":
        study = rating_study(owner=researcher)
        add_scores(study)
    else:
        study = ticked_study(owner=researcher)
        Submission.objects.of(study).delete()
        Judgment.objects.of(study).delete()
    page = rosa.get(reverse("console:downloads", args=[study.slug])).content.decode()
    addresses = {n: reverse("console:download", args=[study.slug, n]) for n in file_names(study)}
    links = {name for name, address in addresses.items() if f'href="{address}"' in page}
    assert {"items.csv", "items.jsonl", "items.parquet"} <= links
    assert {name.partition(".")[0] for name in links} <= {"items", "scores"}
    labels = rosa.get(reverse("console:labels", args=[study.slug])).content.decode()
    assert reverse("console:new-experiment") not in labels
