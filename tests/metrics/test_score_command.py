import csv
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer

from metrics.exceptions import FileUnfit, MetricUnknown, ModelUnfit, ParameterRefused
from metrics.score_files import read_scores
from metrics.scorers.registry import build
from tests.annotation.importing import command_output
from tests.codes import refused

PROJECT = Path(__file__).resolve().parents[2]
ITEMS = (
    "item,system,context,response,reference,condition",
    "q1,a,hi?,the cat sat,the cat sat down,Formal",
    "q1,b,hi?,,the cat sat down,Formal",
    "q2,a,hi?,dog ran,,Formal",
)


@pytest.fixture
def score(tmp_path):
    """Run the command and return its summary, beside what it wrote."""

    def scored(items, *arguments, output=tmp_path / "out.csv"):
        report = command_output("score", items, *arguments, "--json", f"--output={output}")
        return json.loads(report), read_scores(output)

    return scored


def test_a_file_is_scored_without_a_database(write, tmp_path):
    output = tmp_path / "out.csv"
    command = ["manage.py", "score", write(*ITEMS), "--metric=chrf", "--json", "--output", output]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert (summary["n_scored"], summary["n_undefined"], len(read_scores(output))) == (2, 1, 3)


def test_every_output_of_every_metric_is_a_row_with_its_signature(write, score, tmp_path):
    from sacrebleu.metrics import BLEU

    summary, rows = score(write(*ITEMS), "--metric=rouge1", "--metric=sacrebleu")
    values = {(row.item, row.system, row.metric): row for row in rows}
    assert len(values) == len(rows) == 3 * (1 + len(build("rouge1").outputs))
    oracle = RougeScorer(["rouge1"]).score("the cat sat down", "the cat sat")["rouge1"]
    bleu = BLEU(effective_order=True).sentence_score("the cat sat", ["the cat sat down"]).score
    for metric, value in {
        "rouge1": oracle.fmeasure,
        "rouge1_precision": oracle.precision,
        "rouge1_recall": oracle.recall,
        "sacrebleu": bleu,
    }.items():
        assert values["q1", "a", metric].value == pytest.approx(value, abs=1e-9)
    assert values["q1", "b", "rouge1"].value == 0
    assert math.isnan(values["q2", "a", "sacrebleu"].value)
    assert values["q2", "a", "sacrebleu"].reason
    assert values["q1", "a", "sacrebleu"].signature.startswith("BLEU|nrefs:1|")
    # The columns are those that scores are imported from.
    header, first, *_ = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "item,system,metric,value,signature,reason,input"
    assert first.startswith("q1,a,rouge1,0.857142857142857")
    assert summary["n_scored"] + summary["n_undefined"] == len(rows)
    f, *_ = summary["metrics"]
    assert (f["metric"], f["n_scored"], f["n_undefined"]) == ("rouge1", 2, 1)
    assert f["signature"] == rows[0].signature
    assert f["systems"] == [
        {"system": "a", "mean": rows[0].value, "n": 1, "n_undefined": 1},
        {"system": "b", "mean": 0.0, "n": 1, "n_undefined": 0},
    ]


def test_json_lines_are_read_as_csv_is(write, score):
    lines = [
        json.dumps({"item": "q1", "system": "a", "response": "the cat", "reference": "the cat"}),
        json.dumps({"item": 2, "system": "a", "response": "", "reference": "the cat"}),
        json.dumps({"item": 3, "system": "b", "response": "x"}),
    ]
    summary, rows = score(write(*lines, name="items.jsonl"), "--metric=sacrebleu")
    assert [(row.item, row.value) for row in rows[:2]] == [("q1", pytest.approx(100)), ("2", 0)]
    # A system without a defined score has no mean.
    assert summary["metrics"][0]["systems"][1] == {
        "system": "b", "mean": None, "n": 0, "n_undefined": 1,
    }  # fmt: skip


def test_parameters_are_set_by_metric(write, score):
    path = write("item,system,response,reference", "q1,a,привет,привет")
    _, rows = score(path, "--metric=rouge1", "--metric=chrf", "--set=rouge1.tokenizer=unicode")
    assert rows[0].value == 1
    assert "tokenizer:unicode" in rows[0].signature
    assert rows[-1].signature.startswith("chrF2|")


@pytest.mark.parametrize(
    ("metric", "setting", "error", "code"),
    [
        ("rouge1", "tokenizer=unicode", ParameterRefused, "setting_unreadable"),
        ("rouge1", "rouge1.tokenizer", ParameterRefused, "setting_unreadable"),
        ("rouge1", "rouge2.tokenizer=unicode", ParameterRefused, "unrequested_metric"),
        ("rouge1", "rouge1.stem=true", ParameterRefused, "unknown_parameter"),
        ("rouge1", "rouge1.tokenizer=klingon", ParameterRefused, "unknown_tokenizer"),
        ("chrf", "chrf.lowercase=no", ParameterRefused, "wrong_kind"),
        ("chrf", "chrf.beta=true", ParameterRefused, "wrong_kind"),
        ("distinct_n", "distinct_n.n=two", ParameterRefused, "wrong_kind"),
        ("distinct_n", "distinct_n.n=2.5", ParameterRefused, "wrong_kind"),
        ("nll", "nll.window=wide", ParameterRefused, "wrong_kind"),
        ("bertscore", "bertscore.baseline=[0.1,0.2,0.3,null]", ParameterRefused, "wrong_kind"),
        ("bertscore", "bertscore.baseline=0.1", ParameterRefused, "wrong_kind"),
        ("bertscore", "bertscore.idf=nowhere.txt", ParameterRefused, "idf_not_a_file"),
        ("embedding", "embedding.device=1", ParameterRefused, "wrong_kind"),
        ("style", "style.labels=[1]", ParameterRefused, "wrong_kind"),
        ("use", "use.model=5", ParameterRefused, "wrong_kind"),
        ("embedding", "embedding.device=abacus", ModelUnfit, "unknown_device"),
        ("embedding", "embedding.model=EMPTY", ModelUnfit, "unreadable"),
        ("bleurt", "bleurt.n=1", MetricUnknown, "unknown_metric"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(write, tmp_path, metric, setting, error, code):
    output, empty = tmp_path / "out.csv", tmp_path / "empty"
    empty.mkdir()
    setting = setting.replace("EMPTY", str(empty))
    with refused(error, code) as raised:
        command_output(
            "score", write(*ITEMS), f"--metric={metric}", f"--set={setting}", f"--output={output}"
        )
    if code == "wrong_kind":
        assert setting.partition("=")[0].partition(".")[2] in str(raised.value)
    assert error is ModelUnfit or not output.exists()


@pytest.mark.parametrize("model", ["a|b", "x" * 500])
def test_a_name_that_no_signature_can_hold_is_refused(write, tmp_path, settings, model):
    settings.JUDGE = {"JUDGE_MODEL": model}
    with refused(ParameterRefused, "unsigned"):
        command_output("score", write(*ITEMS), "--metric=judge", f"--output={tmp_path / 'out.csv'}")


HEADER = "item,system,response"


@pytest.mark.parametrize(
    ("lines", "output", "expected"),
    [
        (["item,system", "q1,a"], "out.csv", {"line": 1, "field": None}),
        ([HEADER, "q1,,x"], "out.csv", {"line": 2, "field": "system"}),
        (
            [HEADER, "q1,a,x", "q1,b,x", "q1,a,y"],
            "out.csv",
            {"code": "repeated_response", "line": 4, "field": "system"},
        ),
        ([HEADER, "q1,a,x"], "scores.csv", {"code": "not_scores"}),  # the file of responses
        ([HEADER, "q1,a,x"], "no/out.csv", {"code": "unwritable"}),
    ],
)
def test_a_file_that_cannot_be_scored_is_refused_by_line_and_field(
    write, tmp_path, lines, output, expected
):
    path = write(*lines)
    before = path.read_bytes()
    with refused(FileUnfit, **expected):
        command_output("score", path, "--metric=rouge1", f"--output={tmp_path / output}")
    assert [one.name for one in tmp_path.iterdir()] == ["scores.csv"]
    assert path.read_bytes() == before


def test_the_metrics_are_listed_with_what_each_needs_whatever_is_set_of_judges(settings):
    settings.JUDGE = {"JUDGE_CONCURRENCY": "many"}
    known = {each["name"]: each for each in json.loads(command_output("metrics", "--json"))}
    assert {"rouge1", "sacrebleu", "chrf", "embedding"} <= known.keys()
    assert known["rouge1"]["needs"] == ["reference"]
    assert known["rouge1"]["parameters"] == {"tokenizer": "google"}
    listed = command_output("metrics")
    for name, each in known.items():
        assert all(word in listed for word in (name, *each["needs"], *each["outputs"]))


@pytest.mark.parametrize(
    "response",
    [
        "",
        "😀🏳️‍🌈",
        "مرحبا بالعالم",
        "?!... --",
        'one, "two"\nthree',
        "considerably longer words " * 10_000,
    ],
    ids=["empty", "emoji", "right-to-left", "punctuation", "quotes and lines", "30,000 words"],
)
@pytest.mark.filterwarnings("ignore::metrics.scorers.errors.UntokenisedTextWarning")
def test_any_text_can_be_scored_and_read_back(tmp_path, score, response):
    from sacrebleu.metrics import BLEU

    path = tmp_path / "items.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(
            [["item", "system", "response", "reference"], ["q,1\n", "é", response, "x"]]
        )
    _, [row, *_] = score(path, "--metric=sacrebleu")
    assert (row.item, row.system) == ("q,1", "é")
    oracle = BLEU(effective_order=True).sentence_score(response, ["x"]).score
    assert row.value == pytest.approx(oracle, abs=1e-9)


@pytest.mark.filterwarnings("default::metrics.scorers.errors.UntokenisedTextWarning")
def test_what_may_mislead_is_reported_in_plain_words(write, score, capsys):
    score(write("item,system,response,reference", "q1,a,привет,мир"), "--metric=rouge1")
    [line] = capsys.readouterr().err.splitlines()
    assert re.findall(r"\d+", line)[:2] == ["2", "1"]  # texts of pairs
