import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from annotation.exceptions import FileRefused
from metrics.exceptions import MetricUnknown, ModelUnfit, ParameterRefused
from metrics.score_files import read_scores
from metrics.scorers.registry import build
from tests.annotation.importing import command_output

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
    done = subprocess.run(
        [sys.executable, "manage.py", "score", write(*ITEMS), "--metric=chrf", "--output", output],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{output}: 2 scores of 3 responses (1 undefined, 3 computed now).\n"


def test_every_output_of_every_metric_is_a_row_with_its_signature(write, score):
    summary, rows = score(write(*ITEMS), "--metric=rouge1", "--metric=sacrebleu")
    values = {(row.item, row.system, row.metric): row for row in rows}
    assert len(values) == len(rows) == 3 * (1 + len(build("rouge1").outputs))
    oracle = RougeScorer(["rouge1"]).score("the cat sat down", "the cat sat")["rouge1"]
    for metric, value in {
        "rouge1": oracle.fmeasure,
        "rouge1_precision": oracle.precision,
        "rouge1_recall": oracle.recall,
        "sacrebleu": BLEU(effective_order=True)
        .sentence_score("the cat sat", ["the cat sat down"])
        .score,
    }.items():
        assert values["q1", "a", metric].value == pytest.approx(value, abs=1e-9)
    assert values["q1", "b", "rouge1"].value == 0
    assert values["q2", "a", "sacrebleu"].reason == "no reference"
    assert values["q1", "a", "sacrebleu"].signature.startswith("BLEU|nrefs:1|")
    assert summary["n_scored"] + summary["n_undefined"] == len(rows)


def test_the_columns_are_those_that_scores_are_imported_from(write, score, tmp_path):
    score(write(*ITEMS), "--metric=rouge1")
    header, first, *_ = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "item,system,metric,value,signature,reason,input"
    assert first.startswith("q1,a,rouge1,0.857142857142857")


def test_the_summary_has_each_systems_mean_and_says_what_was_undefined(write, score):
    summary, rows = score(write(*ITEMS), "--metric=rouge1")
    f, *_ = summary["metrics"]
    assert (f["metric"], f["n_scored"], f["n_undefined"]) == ("rouge1", 2, 1)
    assert f["signature"] == rows[0].signature
    assert f["systems"] == [
        {"system": "a", "mean": rows[0].value, "n": 1, "n_undefined": 1},
        {"system": "b", "mean": 0.0, "n": 1, "n_undefined": 0},
    ]


def test_a_system_without_a_defined_score_has_no_mean(write, score):
    summary, _ = score(write("item,system,response", "q1,a,x"), "--metric=chrf")
    [system] = summary["metrics"][0]["systems"]
    assert (system["mean"], system["n"], system["n_undefined"]) == (None, 0, 1)


def test_json_lines_are_read_as_csv_is(write, score):
    lines = [
        json.dumps({"item": "q1", "system": "a", "response": "the cat", "reference": "the cat"}),
        json.dumps({"item": 2, "system": "a", "response": "", "reference": "the cat"}),
    ]
    _, rows = score(write(*lines, name="items.jsonl"), "--metric=rouge1")
    assert [(row.item, row.value) for row in rows if row.metric == "rouge1"] == [
        ("q1", 1),
        ("2", 0),
    ]


def test_parameters_are_set_by_metric(write, score):
    path = write("item,system,response,reference", "q1,a,привет,привет")
    _, rows = score(path, "--metric=rouge1", "--metric=chrf", "--set=rouge1.tokenizer=unicode")
    assert rows[0].value == 1
    assert "tokenizer:unicode" in rows[0].signature
    assert rows[-1].signature.startswith("chrF2|")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("tokenizer=unicode", "write it as metric.parameter=value"),
        ("rouge1.tokenizer", "write it as metric.parameter=value"),
        ("rouge2.tokenizer=unicode", r"'rouge2' is not one of the requested metrics \(rouge1\)"),
        ("rouge1.stem=true", "stem is not a parameter of rouge1; it has tokenizer"),
        ("rouge1.tokenizer=klingon", "tokenizer must be"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(write, tmp_path, setting, problem):
    with pytest.raises(ParameterRefused, match=problem):
        command_output(
            "score",
            write(*ITEMS),
            "--metric=rouge1",
            f"--set={setting}",
            f"--output={tmp_path / 'out.csv'}",
        )
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("chrf.lowercase=no", "lowercase must be true or false, got 'no'"),
        ("chrf.beta=true", "beta must be a whole number, got True"),
        ("distinct_n.n=two", "n must be a whole number, got 'two'"),
        ("distinct_n.n=2.5", "n must be a whole number, got 2.5"),
        ("nll.window=wide", "window must be a whole number or null, got 'wide'"),
        ("bertscore.baseline=[0.1,0.2,0.3,null]", "baseline must be Sequence"),
        ("bertscore.baseline=0.1", "baseline must be Sequence"),
        ("bertscore.idf=nowhere.txt", "idf must be a file of texts, got 'nowhere.txt'"),
        ("embedding.device=1", "device must be text or null, got 1"),
        ("style.labels=[1]", "labels must be Mapping"),
        ("use.model=5", "model must be text or a path or null, got 5"),
    ],
)
def test_a_value_of_another_kind_is_refused_before_it_is_computed_with(
    write, tmp_path, setting, problem
):
    metric = setting.partition(".")[0]
    output = tmp_path / "out.csv"
    with pytest.raises(ParameterRefused, match=problem):
        command_output(
            "score", write(*ITEMS), f"--metric={metric}", f"--set={setting}", f"--output={output}"
        )
    assert not output.exists()


def test_a_device_that_is_none_is_refused(write, tmp_path):
    arguments = ["--metric=embedding", "--set=embedding.device=abacus"]
    with pytest.raises(ModelUnfit, match="device must be one of cuda, mps, cpu, got 'abacus'"):
        command_output("score", write(*ITEMS), *arguments, f"--output={tmp_path / 'out.csv'}")


def test_a_folder_without_a_model_is_refused(write, tmp_path):
    (tmp_path / "empty").mkdir()
    arguments = ["--metric=embedding", f"--set=embedding.model={tmp_path / 'empty'}"]
    with pytest.raises(ModelUnfit, match="no model in"):
        command_output("score", write(*ITEMS), *arguments, f"--output={tmp_path / 'out.csv'}")


@pytest.mark.parametrize(
    ("model", "problem"), [("a|b", "must not contain"), ("x" * 500, "500 fit")]
)
def test_a_name_that_no_signature_can_hold_is_refused(write, tmp_path, settings, model, problem):
    settings.JUDGE = {"JUDGE_MODEL": model}
    with pytest.raises(ParameterRefused, match=f"judge cannot be signed: .*{problem}"):
        command_output("score", write(*ITEMS), "--metric=judge", f"--output={tmp_path / 'out.csv'}")


def test_an_unknown_metric_is_refused_with_those_there_are(write, tmp_path):
    with pytest.raises(MetricUnknown, match=r"rouge1.*got 'bleurt'"):
        command_output(
            "score", write(*ITEMS), "--metric=bleurt", f"--output={tmp_path / 'out.csv'}"
        )


@pytest.mark.parametrize(
    ("lines", "problem", "line", "field"),
    [
        (["item,system", "q1,a"], "columns are missing: response", 1, None),
        (["item,system,response", "q1,,x"], "must not be empty", 2, "system"),
        (
            ["item,system,response", "q1,a,x", "q1,b,x", "q1,a,y"],
            "item 'q1' has a response of 'a' on line 2 already",
            4,
            "system",
        ),
    ],
)
def test_a_file_that_cannot_be_scored_is_refused_by_line_and_field(
    write, tmp_path, lines, problem, line, field
):
    with pytest.raises(FileRefused, match=problem) as caught:
        command_output(
            "score", write(*lines), "--metric=rouge1", f"--output={tmp_path / 'out.csv'}"
        )
    assert (caught.value.line, caught.value.field) == (line, field)
    assert str(caught.value).endswith("Nothing was scored.")
    assert not (tmp_path / "out.csv").exists()


def test_a_file_that_is_none_of_scores_is_not_written_over(write):
    path = write(*ITEMS)
    before = path.read_bytes()
    with pytest.raises(FileRefused, match="no file of scores; name another --output"):
        command_output("score", path, "--metric=rouge1", f"--output={path}")
    assert path.read_bytes() == before


def test_an_output_in_no_folder_is_refused(write, tmp_path):
    with pytest.raises(FileRefused, match="cannot be written: No such file or directory"):
        command_output(
            "score", write(*ITEMS), "--metric=rouge1", f"--output={tmp_path / 'no' / 'out.csv'}"
        )


def test_the_metrics_are_listed_whatever_the_settings_say_of_judges(settings):
    settings.JUDGE = {"JUDGE_CONCURRENCY": "many"}
    assert "an OpenAI-compatible endpoint" in command_output("metrics")


def test_the_metrics_are_listed_with_what_each_needs():
    listed = command_output("metrics")
    assert "rouge1       ROUGE-1" in listed
    assert "\n             needs reference\n             gives rouge1, rouge1_precision" in listed
    known = {each["name"]: each for each in json.loads(command_output("metrics", "--json"))}
    assert {"rouge1", "sacrebleu", "chrf", "embedding"} <= known.keys()
    assert known["rouge1"]["needs"] == ["reference"]
    assert known["rouge1"]["parameters"] == {"tokenizer": "google"}


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
    assert line.startswith("Warning: 2 texts of 1 pairs are mostly outside a-z")
