"""Missing words, repeated labels and look-alike names in the commands that read plain tables.

The files under `field` are made up after public bug reports; each folder is named after one.
"""

import json
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError

from annotation.exceptions import AnnotationError, TableRefused
from annotation.readers import policies, shapes
from annotation.readers.label_tables import read_labels
from tests.annotation.importing import command_output
from tests.codes import codes_of, refused, refused_naming
from validation import plain_table as correlation

FIELD = Path(__file__).parent / "field"
LABELS = ("--item=item", "--annotator=who", "--value=label")
NOMINAL = (*LABELS, "--level=nominal")
COLUMNS = shapes.Columns(("item",), ("who",), "label")


def answer(command: str, path: Path, *options: str) -> dict:
    return json.loads(command_output(command, path, *options, "--json"))


def alpha(found: dict) -> float:
    [row] = [row for row in found["coefficients"] if row["name"] == "krippendorff_alpha"]
    return row["value"]


def note_codes(found: dict) -> list[str]:
    return [note["code"] for note in found["reading"]["notes"]]


def table(path: Path, *rows: str, header: str = "item,who,label") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "word"),
    [
        *(("NA", "N/A"), ("na", "n/a"), ("NaN", "NaN"), ("nan", "nan"), ("None", "None")),
        *(("null", "null"), ("space", ""), ("nbsp", "")),
    ],
)
def test_missing_words_are_counted_and_named(tmp_path, name, word):
    path = FIELD / "16-nan-texts" / f"nan_{name}.csv"
    lines = path.read_text().splitlines()
    rows = [line for line in lines[1:] if line.endswith((",yes", ",no"))]
    found = answer("agreement", path, *NOMINAL)
    reading = found.pop("reading")
    without = answer("agreement", table(tmp_path / "without.csv", *rows), *NOMINAL)
    assert without.pop("reading")["missing"] == {}
    assert found == without
    assert (reading["n_rows"], reading["n_used"]) == (36, len(rows))
    assert reading["missing"] == {word: 36 - len(rows)}
    [left_out] = reading["left_out"]
    assert (left_out["code"], left_out["n"]) == ("missing_label", 36 - len(rows))
    assert reading["policies"]["missing"] == "words"
    kept = answer("agreement", path, *NOMINAL, "--missing=empty")
    assert kept["reading"]["missing"] == ({} if word else {"": 36 - len(rows)})
    assert kept["n_judgments"] == (36 if word else len(rows))


def test_many_items_of_many_annotators_are_told_apart(tmp_path):
    """2^16 annotators: in 32 bits the number of the last row's item and annotator is that of the
    first row's."""
    n = 2**16
    rows = [f"i{k},w{k},1" for k in range(n)]
    found = read_labels(table(tmp_path / "many.csv", *rows, f"i{n},w0,1"), COLUMNS, kind="number")
    assert len(found.items) == n + 1


def test_a_missing_number_is_counted_and_an_infinite_one_is_refused(tmp_path):
    path = FIELD / "16-nan-texts" / "num.csv"
    with refused(TableRefused, "not_finite", line=19, field="label"):
        answer("agreement", path, *LABELS, "--level=interval")
    finite = table(tmp_path / "num.csv", *path.read_text().splitlines()[1:-1])
    found = answer("agreement", finite, *LABELS, "--level=interval")
    assert found["n_judgments"] == 16
    assert found["reading"]["missing"] == {"NaN": 1}


@pytest.mark.parametrize("options", [(), ("--shape=annotators",)])
def test_a_column_per_annotator_becomes_a_row_per_label(options):
    path = FIELD / "22-qualtrics" / "wide.csv"
    found = answer("agreement", path, "--item=item", "--level=nominal", *options)
    assert [found[name] for name in ("n_items", "n_annotators", "n_judgments")] == [10, 3, 29]
    wide = pd.read_csv(path).melt("item", var_name="who", value_name="label").dropna()
    long = read_labels(path, shapes.Columns(("item",)), kind="number")
    labels = zip(map(int, long.items), long.annotators, long.values, strict=True)
    assert set(labels) == set(wide.itertuples(index=False, name=None))
    assert found["reading"]["missing"] == {"": 1}
    assert found["reading"]["policies"]["shape"] == "annotators"
    assert note_codes(found) == ["columns_are_annotators"]


FAST_KRIPPENDORFF = """\
* * * * * 3 4 1 2 1 1 3 3 * 3
1 * 2 1 3 3 4 3 * * * * * * *
* * 2 1 3 4 4 * 2 1 1 3 3 * 4"""


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.691), ("interval", 0.811)])
def test_the_published_example_with_empty_cells(tmp_path, level, value):
    """Krippendorff's example in the README of fast-krippendorff, a column per unit."""
    lines = FAST_KRIPPENDORFF.replace("*", "").split("\n")
    rows = [f"{who},{line.replace(' ', ',')}" for who, line in zip("ABC", lines, strict=True)]
    header = ",".join(["who", *(f"u{n}" for n in range(15))])
    path = table(tmp_path / "units.csv", *rows, header=header)
    found = answer("agreement", path, "--annotator=who", f"--level={level}")
    assert alpha(found) == pytest.approx(value, abs=5e-4)
    assert found["reading"]["policies"]["shape"] == "items"
    assert found["reading"]["missing"] == {"": FAST_KRIPPENDORFF.count("*")}
    assert (found["reading"]["n_rows"], found["reading"]["n_used"]) == (3, 3)


RATED = ("0,A,x,1", "0,B,x,2", "0,A,y,3", "0,B,y,", "1,A,x,2", "1,B,x,3", "1,A,y,4", "1,B,y,4")
OUTPUTS = ("0,x,1,.1", "0,y,2,.2", "1,x,,.2", "1,y,3,.4", "2,x,2,.3", "2,y,4,.6")
UNDER = ("--item=item", "--item=system", "--annotator=who", "--value=label")
OF_SYSTEMS = (*LABELS, "--system=system")
DRIFT = ("--before=human", "--after=m", "--tolerance=9")
OF_OUTPUTS = ("--item=item", "--system=system", "--human=human")


@pytest.mark.parametrize(
    ("command", "options", "rows", "header"),
    [
        ("agreement", (*UNDER, "--level=interval"), RATED, "item,who,system,label"),
        ("aggregate", (*UNDER, "--method=mean"), RATED, "item,who,system,label"),
        ("compare_systems", OF_SYSTEMS, RATED, "item,who,system,label"),
        ("variance_components", OF_SYSTEMS, RATED, "item,who,system,label"),
        ("alt_test", (*UNDER, "--judge=A"), RATED, "item,who,system,label"),
        ("correlate", (*OF_OUTPUTS, "--metric=m"), OUTPUTS, "item,system,human,m"),
        ("prediction_powered", (*OF_OUTPUTS, "--judge=m"), OUTPUTS, "item,system,human,m"),
        ("judge_drift", DRIFT, OUTPUTS, "item,system,human,m"),
    ],
)
def test_every_command_skips_an_empty_cell_and_counts_it(tmp_path, command, options, rows, header):
    path = table(tmp_path / "table.csv", *rows, header=header)
    reading = answer(command, path, *options)["reading"]
    assert (reading["n_rows"], reading["missing"]) == (len(rows), {"": 1})
    text = command_output(command, path, *options)
    assert reading["policies"]["missing"] in text.splitlines()[-1]
    path.write_text(path.read_text().replace(",\n", ",NA\n").replace(",,", ",NA,"))
    assert answer(command, path, *options)["reading"]["missing"] == {"NA": 1}


REPEATED = ("0,A,1", "0,A,2", "0,A,2", "0,B,1", "1,A,3", "1,B,3")


@pytest.mark.parametrize(
    ("repeats", "value", "n_used"),
    [("first", 1, 4), ("last", 2, 4), ("mean", 5 / 3, 6), ("majority", 2, 6)],
)
def test_one_of_the_repeated_labels_counts(tmp_path, repeats, value, n_used):
    path = table(tmp_path / "repeats.csv", *REPEATED)
    reading = policies.Reading(policies.Policies(repeats=repeats))
    labels = read_labels(path, COLUMNS, kind="number", reading=reading)
    expected = [("0", "A"), ("0", "B"), ("1", "A"), ("1", "B")]
    assert list(zip(labels.items, labels.annotators, strict=True)) == expected
    assert labels.values == [pytest.approx(value), 1, 3, 3]
    report = reading.report
    assert (report.n_rows, report.n_used) == (6, n_used)
    assert report.policies["repeats"] == repeats
    if n_used == 4:
        assert report.left_out["repeated_label"].n == 2
    else:
        assert codes_of(report.notes) == [f"repeats_{repeats}"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("agreement", ("--level=nominal",)),
        ("aggregate", ("--method=majority",)),
        ("alt_test", ("--judge=A",)),
        ("variance_components", ()),
    ],
)
def test_repeated_labels_are_refused_by_default(tmp_path, command, options):
    path = table(tmp_path / "repeats.csv", *REPEATED)
    with refused(TableRefused, "repeated_label", line=3, naming=("line 2",)):
        command_output(command, path, *LABELS, *options)
    found = answer(command, path, *LABELS, *options, "--repeats=last")
    assert found["reading"]["policies"]["repeats"] == "last"


def test_categories_have_no_mean(tmp_path):
    path = table(tmp_path / "repeats.csv", *REPEATED)
    with refused(AnnotationError, "mean_of_categories"):
        command_output("agreement", path, *NOMINAL, "--repeats=mean")


def test_repeated_outputs_of_a_system_are_averaged_or_chosen(tmp_path):
    rows = ("0,x,1,.1", "0,x,3,.3", "0,y,2,.5", "1,x,2,.2", "1,y,4,.1", "2,x,1,.4", "2,y,1,.3")
    path = table(tmp_path / "outputs.csv", *rows, header="item,system,human,m")
    options = (*OF_OUTPUTS, "--metric=m", "--level=pooled", "--coefficient=pearson")
    with refused(TableRefused, "differs", line=3, field="m"):
        command_output("correlate", path, *options)
    for repeats, merged in (("first", "1,.1"), ("last", "3,.3"), ("mean", "2,.2")):
        once = (f"0,x,{merged}", *rows[2:])
        expected = answer(
            "correlate", table(tmp_path / "once.csv", *once, header="item,system,human,m"), *options
        )["correlations"]
        found = answer("correlate", path, *options, f"--repeats={repeats}")["correlations"]
        assert found[0]["value"] == pytest.approx(expected[0]["value"])


def test_a_missing_value_is_none_of_several(tmp_path):
    rows = ("0,x,NA,.1", "0,x,3,", "0,x,5,.3", "0,x,,", "1,x,2,.2", "1,y,4,.1", "2,y,,.3")
    path = table(tmp_path / "outputs.csv", *rows, header="item,system,human,m")
    columns = correlation.Columns(("human",), ("m",), ("item",), ("system",))
    for repeats, values, n_used in (("first", [3, 0.1], 5), ("last", [5, 0.3], 4)):
        reading = policies.Reading(policies.Policies(repeats=repeats))
        frame = correlation.read_outputs(path, columns, reading)
        assert frame[["human", "metric m"]].to_numpy()[0].tolist() == values
        assert len(frame) == 4
        assert (reading.report.n_rows, reading.report.n_used) == (7, n_used)


@pytest.mark.parametrize("name", ["case", "onefloat"])
def test_categories_that_look_alike_are_noted_or_merged(name):
    path = FIELD / "28-ids" / f"{name}.csv"
    apart = answer("agreement", path, *NOMINAL)
    assert note_codes(apart) == ["look_alike_categories"]
    assert alpha(apart) < 0
    merged = answer("agreement", path, *NOMINAL, "--merge-categories")
    assert note_codes(merged) == ["merged_categories"]
    assert alpha(merged) == 1
    assert merged["reading"]["policies"]["categories"] == "merged"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Yes", "yes"), ("1", "1.0"), ("007", "7"), ("café", "cafe\u0301"), ("a b", "a  b")],
)
def test_the_more_frequent_spelling_is_kept(tmp_path, one, other):
    rows = (f"0,A,{one}", f"0,B,{other}", f"1,A,{other}", f"1,B,{other}", "2,A,z", "2,B,z")
    path = table(tmp_path / "labels.csv", *rows)
    found = answer("aggregate", path, *LABELS, "--method=majority", "--merge-categories")
    assert found["labels"] == {"0": other, "1": other, "2": "z"}
    assert note_codes(answer("aggregate", path, *LABELS, "--method=majority")) == [
        "look_alike_categories"
    ]


def test_names_that_look_alike_stay_apart_with_a_note():
    found = answer("agreement", FIELD / "28-ids" / "ids.csv", *NOMINAL)
    assert (found["n_items"], alpha(found)) == (12, 1)
    assert {*note_codes(found)} == {"look_alike_items"}


def test_a_missing_word_as_a_name_is_noted(tmp_path):
    path = table(tmp_path / "names.csv", "0,NA,x", "0,B,x", "1,NA,y", "1,B,x")
    found = answer("agreement", path, *NOMINAL)
    assert (found["n_annotators"], note_codes(found)) == (2, ["missing_word_as_name"])


def test_numbers_have_the_same_agreement_in_every_kind_of_file(tmp_path):
    rows = [(f"i{n}", who, (n * k) % 4 + 1) for n in range(6) for k, who in ((1, "A"), (3, "B"))]
    frame = pd.DataFrame(rows, columns=["item", "who", "label"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv", index=False, sep="\t", encoding="utf-16")
    (tmp_path / "c.csv").write_text("sep=;\n" + frame.to_csv(index=False, sep=";"))
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    frame.to_parquet(tmp_path / "e.parquet")
    frame.to_json(tmp_path / "f.jsonl", orient="records", lines=True)
    found = [answer("agreement", path, *LABELS, "--level=ratio") for path in tmp_path.iterdir()]
    for each in found:
        assert each.pop("reading")["n_used"] == len(rows)
    assert len(found) == 6
    assert all(each == found[0] for each in found)


def test_decimal_commas_are_read_only_between_other_separators(tmp_path):
    rows = ("0;A;1,5", "0;B;2", "1;A;2,25", "1;B;2,5")
    path = table(tmp_path / "labels.csv", *rows, header="item;who;label")
    found = answer("aggregate", path, *LABELS, "--method=mean")
    assert found["labels"] == {"0": 1.75, "1": 2.375}
    assert "decimal_comma" in note_codes(found)
    rows = tuple(f'{row[:3].replace(";", ",")},"{row[4:]}"' for row in rows)
    with refused(TableRefused, "not_number", line=2, field="label"):
        answer("aggregate", table(path, *rows), *LABELS, "--method=mean")


def test_equal_faults_are_counted_in_one_error(tmp_path):
    path = table(tmp_path / "labels.csv", "0,A,1", "0,B,many", "1,A,many", "1,B,few", "2,A,2")
    names = ("'many'", "line 4", "line 5")
    with refused(TableRefused, "not_number", line=3, field="label", naming=names):
        command_output("agreement", path, *LABELS, "--level=interval")


def test_rows_that_are_not_chosen_are_counted(tmp_path):
    path = table(
        tmp_path / "rounds.csv", "0,A,1,x", "0,B,1,x", "0,A,2,y", header="item,who,round,label"
    )
    reading = answer("agreement", path, *NOMINAL, "--where=round=1")["reading"]
    assert (reading["n_rows"], reading["n_used"]) == (3, 2)
    assert [(each["code"], each["n"]) for each in reading["left_out"]] == [("not_chosen", 1)]


def test_a_binary_scale_in_words_needs_its_positive_value(tmp_path):
    words = tuple(row.replace(",4", ",yes") for row in RATED if not row.endswith(","))
    words = tuple(row if row.endswith("yes") else f"{row[:-1]}no" for row in words)
    header = "item,who,system,label"
    path = table(tmp_path / "words.csv", *words, header=header)
    options = (*OF_SYSTEMS, "--scale=binary")
    with refused(TableRefused, "not_number", field="label", naming=("--positive",)):
        command_output("compare_systems", path, *options)
    found = answer("compare_systems", path, *options, "--positive=yes")
    numbers = tuple(row.replace("yes", "1").replace("no", "0") for row in words)
    path = table(tmp_path / "numbers.csv", *numbers, header=header)
    assert found == answer("compare_systems", path, *options)
    with refused_naming(TableRefused, "'Yes'", "'no', 'yes'"):
        command_output("compare_systems", path.with_name("words.csv"), *options, "--positive=Yes")


def test_records_with_an_empty_list_of_labels_are_counted(tmp_path):
    path = tmp_path / "nested.json"
    both = [{"who": "Ann", "label": "yes"}, {"who": "Bob", "label": "no"}]
    lists = [both, [], both, [], [], [], [], None]
    path.write_text(json.dumps([{"item": str(n), "labels": each} for n, each in enumerate(lists)]))
    found = answer("agreement", path, *NOMINAL)
    assert found["n_judgments"] == 4
    assert (found["reading"]["n_rows"], found["reading"]["n_used"]) == (8, 2)
    left_out = {each["code"]: each for each in found["reading"]["left_out"]}
    assert left_out["empty_list"]["n"] == 5
    assert left_out["empty_list"]["places"] == ["record 2", "record 4", "record 5"]
    assert left_out["missing_label"]["n"] == 1


ROWS = [
    f"{item},{candidate},{question},{annotator},{value}"
    for question, scale in (("style", 1), ("=sense", 10))
    for item, candidate, values in (
        ("d0", "alpha", (1, 2)),
        ("d0", "beta", (5, 4)),
        ("d1", "alpha", (2, 2)),
        ("d1", "beta", (3, 5)),
    )
    for annotator, value in zip(("ann", "bob"), (scale * v for v in values), strict=True)
]
NAMED = ("--annotator=annotator", "--value=value")
BOTH = ("--item=item", "--item=candidate")


@pytest.fixture
def path(tmp_path):
    header = "item,candidate,question,annotator,value"
    return table(tmp_path / "judgments.csv", *ROWS, header=header)


def means(path, *options):
    return answer("aggregate", path, *NAMED, "--method=mean", *options)["labels"]


def test_rows_are_chosen_by_values_and_units_named_by_columns(path):
    labels = means(path, *BOTH, "--where", "question=style")
    assert labels == {"d0 | alpha": 1.5, "d0 | beta": 4.5, "d1 | alpha": 2, "d1 | beta": 4}
    # A value may hold an equals sign.
    assert means(path, *BOTH, "--where", "question==sense")["d1 | beta"] == 40
    # Of several columns all must fit, and of one column any value.
    chosen = ("--where", "candidate=alpha", "--where", "question=style")
    assert means(path, "--item", "item", *chosen) == {"d0": 1.5, "d1": 2}
    either = ("--where", "question=style", "--where", "question==sense")
    assert len(means(path, *BOTH, "--item", "question", *either)) == 8


def test_agreement_is_that_of_the_chosen_rows(path, tmp_path):
    options = (*NAMED, "--level=interval")
    record = answer("agreement", path, *BOTH, *options, "--where=question=style")
    rows = [row.replace(",style,", ",").replace(",", "/", 1) for row in ROWS if ",style," in row]
    alone = table(tmp_path / "alone.csv", *rows, header="item,annotator,value")
    expected = answer("agreement", alone, "--item=item", *options)
    assert (record.pop("reading")["n_used"], expected.pop("reading")["n_used"]) == (8, 8)
    assert record == expected
    assert (record["n_items"], record["n_judgments"]) == (4, 8)


def test_a_selection_that_does_not_fit_is_refused(path, tmp_path):
    names = ("'d0'", "line 2", "--item", "--where")
    with refused(TableRefused, "repeated_label", line=4, naming=names):
        means(path, "--item", "item", "--where", "question=style")
    names = ("'styel'", "'=sense', 'style'")
    with refused(TableRefused, "unknown_value", field="question", naming=names):
        means(path, *BOTH, "--where", "question=styel")
    with refused(TableRefused, "missing_columns", naming=("round",)):
        means(path, *BOTH, "--where", "round=1")
    for where in ("question", "=style", ""):
        with refused_naming(CommandError, "--where", f"'{where}'"):
            means(path, *BOTH, "--where", where)
    rows = ("x | y,z,ann,1", "x,y | z,ann,2")
    labels = table(tmp_path / "labels.csv", *rows, header="a,b,annotator,value")
    with refused(TableRefused, "ambiguous_unit", line=3):
        means(labels, "--item=a", "--item=b")


def test_a_table_with_metrics_is_chosen_from_as_well(tmp_path):
    rows = [
        f"{study},{item},{system},{question},{human * scale},{bleu}"
        for question, scale in (("style", 1), ("sense", -1))
        for study in ("s", "t")
        for item in ("d0", "d1")
        for system, human, bleu in (("a", 1, 0.1), ("b", 2, 0.2), ("c", 3, 0.4))
    ]
    path = table(tmp_path / "table.csv", *rows, header="study,item,system,question,human,bleu")
    options = ("--item=study", *OF_OUTPUTS, "--metric=bleu", "--level=sample")
    options += ("--coefficient=spearman",)
    for question, value in (("style", 1), ("sense", -1)):
        found = answer("correlate", path, *options, f"--where=question={question}")
        (record,) = found["correlations"]
        assert record["value"] == pytest.approx(value)
        assert record["n_groups"] == 4
    with refused_naming(TableRefused, "'wit'"):
        answer("correlate", path, *options, "--where=question=wit")
