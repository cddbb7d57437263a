import csv
import io
import json

import pytest

from results.models import Result
from retrieval.models import RunResult, SampledTarget, TopicValue
from retrieval.result_kinds.evaluation import EVALUATE
from tests.console.pages import answer_codes, refused_fields, words_of
from tests.retrieval.collections import add_file, qrels_text, run_options, sent
from tests.retrieval.conftest import easy_and_hard_topics, qrels_text as text_of_grades, record_of
from tests.retrieval.pages.test_trust import form_of as form_of_files
from work import models, tasks

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
PAGE = "/collections/tracks/evaluation/"


def form_of(collection, **more):
    qrels = collection.files.get(name="qrels.txt").pk
    form = {"qrels": qrels, "measures": ["nDCG@10", "RR@10", "Judged@10"]}
    return form_of_files(collection, **form | {"primary": "nDCG@10, RR@10"} | more)


@pytest.fixture
def evaluated(rosa, collection):
    answer = rosa.post(PAGE, form_of(collection))
    assert answer.status_code == 302, answer.content.decode()
    return Result.objects.get()


def commanded(tmp_path, *options):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(qrels_text())
    measures = ("--measure", "nDCG@10", "--measure", "RR@10", "--measure", "Judged@10")
    primary = ("--primary", "nDCG@10", "--primary", "RR@10")
    runs = run_options(tmp_path)
    return record_of("evaluate_runs", "--qrels", qrels, *runs, *measures, *primary, *options)


def test_the_page_computes_what_the_command_computes(rosa, evaluated, tmp_path):
    command = commanded(tmp_path)
    page = json.loads(b"".join(rosa.get(f"{PAGE}evaluation.json")))
    assert page.pop("version") == 1
    assert page.pop("signature").startswith("evaluation|confidence:0.95|")
    order = lambda row: (row["measure"], row.get("run", row.get("a")), row.get("b", ""))  # noqa: E731
    for name in ("results", "comparisons"):
        assert sorted(page.pop(name), key=order) == sorted(command.pop(name), key=order)
    assert sorted(page.pop("runs"), key=str) == sorted(command.pop("runs"), key=str)
    assert len(command.pop("note_codes")) == len(page["notes"])
    assert len(command.pop("reading")) == 4
    assert page == command
    # The first sentence names the best run.
    answer = view_of(rosa).answer
    assert (answer.first.run.name, answer.measure.name) == ("dense", "nDCG@10")
    assert answer_codes(answer) == ["best", "lead", "lead_is_rare", "all_judged"]


def view_of(client, query=""):
    return client.get(f"{PAGE}{query}").context["view"]


def test_a_run_of_easy_topics_is_not_called_best_by_its_mean(rosa, collection):
    grades, runs = easy_and_hard_topics()
    qrels = add_file(collection, "easy.txt", text_of_grades(grades)).pk
    files = [add_file(collection, name, text).pk for name, text in runs.items()]
    more = {"qrels": qrels, "runs": files, "measures": ["RR@10"], "primary": ""}
    rosa.post(PAGE, form_of(collection, **more))
    answer = view_of(rosa).answer
    assert (answer.first.run.name, answer.first_sentence.code) == ("B", "best")
    [lead] = [one for one in answer.details if one.code == "lead"]
    assert "0.300" in lead


def test_few_topics_or_alike_runs_call_no_run_best(rosa, collection):
    runs = collection.files.filter(name__in=["bm25", "rm3"])
    rosa.post(PAGE, form_of(collection, runs=[run.pk for run in runs]))
    codes = answer_codes(view_of(rosa).answer)
    assert codes[0] == "undecided"
    assert "rivals" in codes
    few = add_file(collection, "few.txt", qrels_text(n_topics=6))
    rosa.post(PAGE, form_of(collection, qrels=few.pk))
    assert view_of(rosa).answer.first_sentence.code == "too_few_topics"


def test_uneven_judging_of_runs_is_said(rosa, collection):
    # Of the documents beyond the twelfth nothing is known: the poor runs show more of them.
    half = add_file(collection, "half.txt", qrels_text(judged=12))
    rosa.post(PAGE, form_of(collection, qrels=half.pk))
    [uneven] = [one for one in view_of(rosa).answer.details if one.code == "uneven_judged"]
    assert "dense" in uneven
    rows = RunResult.objects.filter(measure__name="nDCG@10")
    judged = dict(rows.values_list("run__name", "judged"))
    assert judged["dense"] > judged["bm25"] + 0.1


def test_the_same_is_computed_once_and_an_earlier_result_survives_its_files(
    rosa, collection, evaluated
):
    rosa.post(PAGE, form_of(collection))
    assert Result.objects.count() == 1
    rosa.post(PAGE, form_of(collection, measures=["AP"], primary=""))
    assert list(Result.objects.values_list("number", flat=True)) == [1, 2]
    collection.files.all().delete()
    view = view_of(rosa, "?version=1")
    assert (view.answer.first.run.name, view.answer.first_sentence.code) == ("dense", "best")
    assert (view.version.facts["n_topics"], view.rows.qrels.name) == (25, "qrels.txt")
    assert rosa.get(f"{PAGE}?version=9").status_code == 404
    assert rosa.get(f"{PAGE}?version=x").status_code == 404


@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({"measures": [], "others": "", "primary": ""}, "measures", "no_measure"),
        ({"others": "nDCG@ten"}, "others", "unknown_measure"),
        ({"primary": "AP"}, "primary", "unknown_primary"),
        ({"test": "mcnemar"}, "test", "not_binary"),
        ({"runs": []}, "runs", "required"),
        ({"confidence": "95"}, "confidence", "max_value"),
        ({"seed": "-1"}, "seed", "min_value"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_at_its_field(rosa, collection, more, field, code):
    answer = rosa.post(PAGE, form_of(collection, **more))
    assert refused_fields(answer) == {field: [code]}
    form = answer.context["form"]
    assert form.has_advanced_errors == (field in form.advanced)
    page = answer.content.decode()
    assert page.count('<details class="fold" open><summary>') == form.has_advanced_errors
    assert not Result.objects.exists()
    assert not models.Job.objects.filter(kind="evaluate_collection").exists()


def test_measures_with_settings_are_typed_with_commas_between(rosa, collection):
    others = "nDCG(dcg='exp-log2')@10, P(rel=1, judged_only=True)@5"
    rosa.post(PAGE, form_of(collection, others=others))
    names = set(Result.objects.get().measures.values_list("name", flat=True))
    assert "nDCG(dcg='exp-log2')@10" in names
    assert any(name.startswith("P(") for name in names)


def test_two_runs_are_drawn_topic_by_topic(rosa, evaluated):
    TopicValue.objects.filter(topic="t0").update(topic="=1+1|cmd")

    def content(form):
        answer = rosa.get(f"{PAGE}topics.{form}/picture/", {"a": "dense", "b": "rm3"})
        assert answer.status_code == 200
        return answer.content.decode()

    assert len(next(iter(json.loads(content("json"))["datasets"].values()))) == 25
    assert "<svg" in content("svg")
    rows = list(csv.DictReader(io.StringIO(content("csv"))))
    assert len(rows) == 25
    assert float(rows[0]["difference"]) >= float(rows[-1]["difference"])
    # What begins like a formula is text in a spreadsheet.
    assert "'=1+1|cmd," in content("csv")


def test_the_tables_are_handed_out_in_their_forms(rosa, evaluated):
    _header, *rows = csv.reader(io.StringIO(b"".join(rosa.get(f"{PAGE}means.csv")).decode()))
    assert len(rows) == 9
    stored = RunResult.objects.get(run__name="dense", measure__name="nDCG@10")
    [row] = [row for row in rows if row[:2] == ["dense", "nDCG@10"]]
    assert str(stored.mean) in row[2]
    assert b"toprule" in b"".join(rosa.get(f"{PAGE}means.tex"))
    topics = b"".join(rosa.get(f"{PAGE}topics.csv")).decode()
    assert len(topics.splitlines()) == 1 + TopicValue.objects.count()
    assert rosa.get(f"{PAGE}other.csv").status_code == 404
    # Weights are of a sample, which is not there.
    assert "weights" not in rosa.get(PAGE).context["form"].fields
    assert rosa.get(f"{PAGE}weighted.csv").status_code == 404


def test_what_is_to_be_computed_of_a_deleted_collection_is_refused_once(rosa, collection):
    rosa.post(PAGE, form_of(collection))
    arguments = models.Job.objects.get().arguments
    collection.delete()
    tasks.request_job(kind=EVALUATE, subject="of-nothing", arguments=arguments, requested_by=None)
    job = models.Job.objects.get(subject="of-nothing")
    assert (job.state, job.attempts) == ("failed", 1)


def test_advanced_settings_are_kept_and_shown_in_the_signature(rosa, collection):
    answer = rosa.post(PAGE, form_of(collection, confidence="0.8", seed="5", test="t"))
    assert answer.status_code == 302
    rows = list(RunResult.objects.order_by("pk"))
    version = Result.objects.get()
    view = view_of(rosa)
    assert view.level == "80 %"
    assert "95 %" not in words_of(rosa.get(PAGE).content.decode())
    for setting in ("confidence:0.8", "seed:5", "test:t"):
        assert f"|{setting}|" in view.signature
    assert f"|sha256:{version.fingerprint[:12]}" in view.signature
    rosa.post(PAGE, form_of(collection, confidence="", seed="5", test="t"))
    wider = {
        (one.run.name, one.measure.name): one
        for one in RunResult.objects.filter(measure__version__number=2)
    }
    with_limits = [row for row in rows if row.ci_low is not None]
    assert with_limits
    for row in with_limits:
        one = wider[row.run.name, row.measure.name]
        assert row.ci_high - row.ci_low < one.ci_high - one.ci_low


def test_the_choices_of_an_evaluation_that_failed_are_offered_again(rosa, collection):
    elsewhere = add_file(collection, "other.run", "x1 Q0 d1 1 1.0 other\n")
    choices = {"runs": [elsewhere.pk], "measures": ["P@5"], "primary": "P@5", "seed": "5"}
    rosa.post(PAGE, form_of(collection, **choices))
    page = rosa.get(PAGE).context
    assert page["job"].state == "failed"
    assert "other" in page["job"].message
    offered = page["form"]
    assert offered["runs"].value() == [str(elsewhere.pk)]
    assert offered["measures"].value() == ["P@5"]
    assert (offered["seed"].value(), offered["primary"].value()) == (5, "P@5")


@pytest.fixture
def sample(rosa, collection):
    """All topics, as if the first ten had been drawn from many more."""
    text = "topic,target,v\n" + "".join(f"t{n},d{n},{int(n < 10)}\n" for n in range(25))
    form = {"n": 25, "by": "column", "column": "v", "strata": 2, "allocation": "equal", "seed": 1}
    rows = SampledTarget.objects.all()
    answer = rosa.post("/collections/tracks/targets/", form | {"file": sent("t.csv", text)})
    assert answer.status_code == 302
    for row in rows:
        row.inclusion = 0.1 if row.value else 1.0
        row.save()
    return Result.objects.get(kind="targets")


def test_topics_are_weighed_by_a_samples_probabilities_as_by_the_command(
    rosa, collection, sample, tmp_path
):
    assert sample.facts["n_topics"] == 25
    assert rosa.post(PAGE, form_of(collection, weights=sample.pk)).status_code == 302
    columns = ("topic", "docno", "stratum", "inclusion")
    rows = SampledTarget.objects.filter(version=sample).values_list(*columns)
    lines = ["topic,target,stratum,probability", *(",".join(map(str, row)) for row in rows)]
    file = tmp_path / "drawn.csv"
    file.write_text("\n".join(lines) + "\n")
    said = commanded(tmp_path, "--weights", file)
    stored = json.loads(b"".join(rosa.get(f"{PAGE}evaluation.json").streaming_content))
    for part in ("means", "differences"):
        one, other = (sorted(each["weighted"][part], key=str) for each in (stored, said))
        assert len(one) == len(other) > 5
        if part == "means":  # the page lists runs by name
            assert one == [pytest.approx(each) for each in other]
    assert stored["weighted"]["effective_n"] == pytest.approx(said["weighted"]["effective_n"])
    assert len(view_of(rosa).weighted_table.rows) > 5
    table = b"".join(rosa.get(f"{PAGE}weighted.csv").streaming_content).decode()
    assert table.count("nDCG@10,") == 6


def test_a_topic_that_the_sample_did_not_draw_has_no_weight(rosa, collection, sample):
    SampledTarget.objects.filter(topic="t3").delete()
    rosa.post(PAGE, form_of(collection, weights=sample.pk))
    job = models.Job.objects.get(kind=EVALUATE)
    assert job.state == models.Job.State.FAILED
    assert "t3" in job.message
    assert str(rosa.get(PAGE).context["form"]["weights"].value()) == str(sample.pk)
