import csv
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from metrics.exceptions import FileUnfit, MetricUnknown, ModelUnfit, ParameterRefused
from metrics.file_scores import append_scores, read_scores, score_file
from metrics.scorers.interface import Score
from metrics.scorers.registry import build
from tests.annotation.importing import command_output
from tests.codes import refused
from tests.metrics.counting import Constant, Counting, SwitchedOff
from tests.processes import run_python

PROJECT = Path(__file__).resolve().parents[2]
ITEMS = (
    "item,system,context,response,reference,condition",
    "q1,a,hi?,the cat sat,the cat sat down,Formal",
    "q1,b,hi?,,the cat sat down,Formal",
    "q2,a,hi?,dog ran,,Formal",
)


@pytest.fixture
def score(tmp_path):
    def scored(items, *arguments, output=tmp_path / "out.csv"):
        report = command_output("score", items, *arguments, "--json", f"--output={output}")
        return json.loads(report), read_scores(output)

    return scored


@pytest.mark.slow
def test_a_file_is_scored_without_a_database(write, tmp_path):
    output = tmp_path / "out.csv"
    command = ["manage.py", "score", write(*ITEMS), "--metric=chrf", "--json", "--output", output]
    done = run_python(*command, DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert (summary["n_scored"], summary["n_undefined"], len(read_scores(output))) == (2, 1, 3)


def test_every_output_of_every_metric_is_a_row_with_its_signature(write, score, tmp_path):
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


@pytest.mark.filterwarnings("default::metrics.scorers.errors.UntokenisedTextWarning")
def test_parameters_are_set_by_metric_and_what_may_mislead_is_reported(write, score, capsys):
    path = write("item,system,response,reference", "q1,a,привет,привет")
    _, rows = score(path, "--metric=rouge1", "--metric=chrf", "--set=rouge1.tokenizer=unicode")
    assert rows[0].value == 1
    assert "tokenizer:unicode" in rows[0].signature
    assert rows[-1].signature.startswith("chrF2|")
    assert capsys.readouterr().err == ""
    score(write("item,system,response,reference", "q1,a,привет,мир"), "--metric=rouge1")
    [line] = capsys.readouterr().err.splitlines()
    assert re.findall(r"\d+", line)[:2] == ["2", "1"]  # texts of pairs


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
        ("bertscore", "bertscore.baseline=[0.1,0.2,0.3,null]", ParameterRefused, "wrong_kind"),
        ("bertscore", "bertscore.baseline=0.1", ParameterRefused, "wrong_kind"),
        ("bertscore", "bertscore.idf=nowhere.txt", ParameterRefused, "idf_not_a_file"),
        ("embedding", "embedding.device=1", ParameterRefused, "wrong_kind"),
        ("style", "style.labels=[1]", ParameterRefused, "wrong_kind"),
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


ANY_TEXTS = [
    *("", "😀🏳️‍🌈", "مرحبا بالعالم", "?!... --", 'one, "two"\nthree'),
    "longer words " * 10_000,
]


@pytest.mark.filterwarnings("ignore::metrics.scorers.errors.UntokenisedTextWarning")
def test_any_text_can_be_scored_and_read_back(tmp_path, score):
    path = tmp_path / "items.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "system", "response", "reference"])
        writer.writerows([f"q,{n}\n", "é", text, "x"] for n, text in enumerate(ANY_TEXTS))
    rows = [row for row in score(path, "--metric=sacrebleu")[1] if row.metric == "sacrebleu"]
    assert [(row.item, row.system) for row in rows] == [(f"q,{n}", "é") for n in range(6)]
    oracle = BLEU(effective_order=True)
    expected = [oracle.sentence_score(text, ["x"]).score for text in ANY_TEXTS]
    assert [row.value for row in rows] == pytest.approx(expected, abs=1e-9)


RESPONSES = (
    "item,system,response",
    'q1,a,"two\nlines"',
    "q1,b,three",
    '"q,2",a,',
    '"q,2",b,a longer one',
    "q3,a,three",
)


@pytest.fixture
def items(write):
    return write(*RESPONSES, name="items.csv")


@pytest.fixture
def output(tmp_path):
    return tmp_path / "scores.csv"


def test_scores_are_in_the_order_of_the_responses_and_equal_texts_computed_once(items, output):
    scorer, steps = Counting(), []

    def reporter(what):
        def progress(things, total):
            for thing in things:
                steps.append((what, total))
                yield thing

        return progress

    score_file(path=items, scorers=[scorer], output=output, reporter=reporter)
    rows = [(row.item, row.system, row.metric, row.value) for row in read_scores(output)]
    assert rows[:4] == [
        ("q1", "a", "counting", 9),
        ("q1", "a", "counting_words", 2),
        ("q1", "b", "counting", 5),
        ("q1", "b", "counting_words", 1),
    ]
    names = [("q1", "a"), ("q1", "b"), ("q,2", "a"), ("q,2", "b"), ("q3", "a")]
    assert [row[:2] for row in rows[::2]] == names
    assert len(scorer.seen) == 4
    assert steps == [("counting", 5)] * 5


def test_a_file_that_was_cut_off_anywhere_is_completed_and_what_it_holds_not_computed(
    items, output
):
    score_file(path=items, scorers=[Counting()], output=output)
    content = output.read_bytes()
    for end in range(content.index(b"\n") + 1, len(content), 29):
        output.write_bytes(content[:end])
        there = {(row.item, row.system, row.metric) for row in read_scores(output)}
        again = Counting(batch_size=1)
        result = score_file(path=items, scorers=[again], output=output)
        assert output.read_bytes() == content
        held = {(item, system) for item, system, metric in there if metric == "counting_words"}
        assert not held & set(again.seen)
        assert sum(metric.n_scored for metric in result.outputs) == 8


@pytest.mark.parametrize(("n_batches", "n_rows", "n_left"), [(1, 0, 4), (2, 4, 2)])
def test_a_scorer_that_broke_off_leaves_what_it_had_and_lets_go_of_its_file(
    items, output, n_batches, n_rows, n_left
):
    failing, scorer = Counting(batch_size=2, fails_at_batch=n_batches), Counting()
    with pytest.raises(SwitchedOff):
        score_file(path=items, scorers=[failing], output=output)
    assert len(read_scores(output)) == n_rows
    score_file(path=items, scorers=[scorer], output=output)
    assert len(scorer.seen) == n_left
    assert len(read_scores(output)) == 10


def test_changed_responses_are_scored_again_and_other_signatures_and_items_stay(
    items, output, write
):
    class Later(Counting):
        signature = "counting|version:2"

    score_file(path=items, scorers=[Counting()], output=output)
    changed = write(*[line.replace("longer", "shorter") for line in RESPONSES], name="items.csv")
    scorer = Counting()
    score_file(path=changed, scorers=[scorer], output=output)
    assert scorer.seen == [("q,2", "b")]
    assert [row.value for row in read_scores(output) if row.metric == "counting"][3] == 13
    fewer = write(*RESPONSES[:2], name="fewer.csv")
    score_file(path=fewer, scorers=[Later()], output=output)
    rows = read_scores(output)
    assert len(rows) == 12
    assert [row.signature for row in rows[:2]] == ["counting|version:2"] * 2


@pytest.mark.parametrize(
    ("score", "reason"),
    [(Score(math.nan, "E1\nE2"), "E1 E2"), (Score(-math.inf), "-inf")],  # on one line
)
def test_an_undefined_or_infinite_score_has_its_reason(items, output, score, reason):
    result = score_file(path=items, scorers=[Constant(score)], output=output)
    [stored] = {row.reason for row in read_scores(output)}
    assert stored.endswith(reason)
    assert result.record()["n_undefined"] == 10


def test_scores_that_cannot_be_added_are_reported_with_their_file(output):
    output.mkdir()
    with refused(FileUnfit, "unwritable", path=output):
        append_scores(output, [])


def test_what_was_undefined_is_scored_anew_if_one_asks_for_it(items, output):
    score_file(path=items, scorers=[Counting()], output=output)
    scorer = Constant(Score(7))
    score_file(path=items, scorers=[scorer], output=output)
    assert scorer.seen == []
    score_file(path=items, scorers=[scorer], output=output, retry_undefined=True)
    assert scorer.seen == [("q,2", "a")]
    assert {
        row.value for row in read_scores(output) if row.item == "q,2" and row.system == "a"
    } == {7}


HOLD = """
import sys, time
from pathlib import Path
import django
django.setup()
from metrics.file_scores import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_keeps_nobody_from_its_file(items, output):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, output], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with refused(FileUnfit, "busy"):
        score_file(path=items, scorers=[Counting()], output=output)
    holder.kill()
    holder.communicate()
    score_file(path=items, scorers=[Counting()], output=output)
    assert len(read_scores(output)) == 10
    assert sorted(path.name for path in output.parent.iterdir()) == ["items.csv", "scores.csv"]
