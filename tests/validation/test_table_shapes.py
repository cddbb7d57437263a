import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotation.exceptions import AnnotationError, TableRefused
from annotation.readers.coded_table import read_table
from annotation.readers.nested_records import nested_to_rows
from annotation.readers.policies import Reading
from annotation.readers.shapes import columns_to_rows, pairs_to_orders, rows_to_columns
from tests.annotation.importing import command_output
from tests.codes import refused
from tests.validation.test_conclusions import answer
from tests.validation.validation_tables import written

FIELD = Path(__file__).parents[1] / "annotation" / "field"
ITEMS, SYSTEMS, PEOPLE = range(8), ("base", "größer", "ours"), ("ann", "bob", "çem")
METRICS = ("bleu", "length")


def cells() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    rows = []
    for item in ITEMS:
        for lead, system in enumerate(SYSTEMS):
            scores = {name: round(float(rng.normal(lead, 2)), 3) for name in METRICS}
            for person in PEOPLE:
                label = int(np.clip(round(3 + 0.7 * lead + rng.normal()), 1, 5))
                rows.append(
                    {"item": f"i{item}", "system": system, "who": person}
                    | {"label": "" if (item, lead, person) == (2, 1, "bob") else str(label)}
                    | {name: str(value) for name, value in scores.items()}
                )
    return rows


def spread(keys: tuple[str, ...], name: str, value: str) -> list[dict[str, Any]]:
    """A row per key, with a column for each value of another column."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell in cells():
        row = rows.setdefault(tuple(cell[key] for key in keys), {key: cell[key] for key in keys})
        row[cell[name]] = cell[value]
    return list(rows.values())


def as_json(path: Path, records: list[dict[str, Any]], encoding: str = "utf-8") -> Path:
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), encoding=encoding)
    return path


def nested_records() -> list[dict[str, Any]]:
    records: dict[str, list[dict[str, Any]]] = {}
    for unit in dict.fromkeys((cell["item"], cell["system"]) for cell in cells()):
        rows = [cell for cell in cells() if (cell["item"], cell["system"]) == unit]
        responses = [{"who": cell["who"], "label": cell["label"]} for cell in rows]
        scores = {name: rows[0][name] for name in METRICS}
        output = {"system": unit[1], "scores": scores, "responses": responses}
        records.setdefault(unit[0], []).append(output)
    return [{"item": item, "outputs": outputs} for item, outputs in records.items()]


UNIT = ("--item=item", "--item=system")
LONG = (*UNIT, "--annotator=who", "--value=label")
EVERYBODY = tuple(f"--annotator={person}" for person in PEOPLE)
EVERY_SYSTEM = tuple(f"--system={system}" for system in SYSTEMS)


def labels_in_shapes(
    folder: Path, encoding: str = "utf-8"
) -> dict[str, tuple[Path, tuple[str, ...]]]:
    labels = [{key: cell[key] for key in ("item", "system", "who", "label")} for cell in cells()]
    wide = spread(("item", "system"), "who", "label")
    units: dict[str, dict[str, Any]] = {}
    for cell in cells():
        row = units.setdefault(cell["who"], {"who": cell["who"]})
        row[f"{cell['item']} | {cell['system']}"] = cell["label"]
    return {
        "long": (written(folder / "long.csv", labels, encoding), LONG),
        "annotators": (written(folder / "annotators.csv", wide, encoding), UNIT),
        "systems": (
            written(folder / "systems.csv", spread(("item", "who"), "system", "label"), encoding),
            ("--item=item", "--annotator=who", *EVERY_SYSTEM),
        ),
        "items": (
            written(folder / "items.csv", list(units.values()), encoding),
            ("--annotator=who",),
        ),
        "nested": (as_json(folder / "nested.jsonl", nested_records(), encoding), LONG),
    }


def numbers(command: str, path: Path, *options: str) -> dict[str, Any]:
    found = answer(command, path, *options)
    reading = found.pop("reading")
    assert reading["missing"] == {"": 1}
    return found


@pytest.mark.parametrize(
    ("encoding", "level"),
    [("utf-8", "ordinal"), ("utf-8-sig", "nominal"), ("utf-16", "nominal"), ("cp1252", "nominal")],
)
def test_agreement_is_that_of_the_labels_in_every_shape_and_encoding(tmp_path, encoding, level):
    asked = f"--level={level}"
    path, options = labels_in_shapes(tmp_path)["long"]
    expected = numbers("agreement", path, *options, asked)
    assert expected["n_judgments"] == len(cells()) - 1
    for path, options in labels_in_shapes(tmp_path, encoding).values():
        found = numbers("agreement", path, *options, asked)
        # In a row per annotator their labels come in another order.
        key = sorted if path.stem == "items" else list
        pairs = [json.dumps(row) for row in found.pop("pairs")]
        assert key(pairs) == key([json.dumps(row) for row in expected["pairs"]])
        assert found == {name: value for name, value in expected.items() if name != "pairs"}


def scores_in_shapes(folder: Path) -> dict[str, tuple[Path, tuple[str, ...]]]:
    named = ("--item=item", "--system=system", "--human=label", "--metric=bleu", "--metric=length")
    people = [f"--human={person}" for person in PEOPLE]
    wide = spread(("item", "system", *METRICS), "who", "label")
    means = [
        {key: row[key] for key in ("item", "system", *METRICS)}
        | {"human": repr(float(np.mean([float(row[who]) for who in PEOPLE if row[who]])))}
        for row in wide
    ]
    scores = [
        {"item": row["item"], "system": row["system"], "metric": name, "value": row[name]}
        for row in means
        for name in ("human", *METRICS)
    ]
    matrix: dict[tuple[str, str], dict[str, Any]] = {}
    for row in scores:
        key = (row["item"], row["metric"])
        line = matrix.setdefault(key, {"item": row["item"], "metric": row["metric"]})
        line[row["system"]] = row["value"]
    by_metric = ("--item=item", "--human=human", "--metric=bleu", "--metric=length")
    return {
        "long": (written(folder / "rows.csv", cells()), named),
        "annotators": (
            written(folder / "people.csv", wide),
            ("--item=item", "--system=system", *people, *named[3:]),
        ),
        "scores": (written(folder / "scores.csv", scores), (*by_metric, "--system=system")),
        "systems": (
            written(folder / "matrix.csv", list(matrix.values())),
            (*by_metric, *EVERY_SYSTEM),
        ),
        "nested": (as_json(folder / "outputs.jsonl", nested_records()), named),
    }


def test_correlations_and_comparisons_are_those_of_the_scores_in_every_shape(tmp_path):
    shapes = scores_in_shapes(tmp_path)
    found = {}
    for shape, (path, options) in shapes.items():
        record = answer("correlate", path, *options, "--resamples=20")
        assert record["reading"]["policies"]["shape"] in (shape, "long")
        found[shape] = record["correlations"]
    assert len(found["long"]) == 2 * 16
    assert all(records == found["long"] for records in found.values())
    shapes = labels_in_shapes(tmp_path)
    named = ("--item=item", "--annotator=who", "--system=system", "--value=label")
    of_items = spread(("who", "system"), "item", "label")
    shapes["items"] = (written(tmp_path / "columns.csv", of_items), ())
    options = {
        "long": named,
        "items": ("--annotator=who", "--system=system"),
        "annotators": ("--item=item", "--system=system", *EVERYBODY),
        "systems": ("--item=item", "--annotator=who"),
        "nested": named,
    }
    found = [
        numbers("compare_systems", shapes[shape][0], *asked) for shape, asked in options.items()
    ]
    assert len(found[0]["comparisons"]) == 3
    assert all(each == found[0] for each in found)


def test_labels_are_not_columns_of_annotators_and_a_fault_in_one_names_it(tmp_path):
    path = written(tmp_path / "long.csv", cells())
    with refused(AnnotationError, "columns_unnamed"):
        command_output("agreement", path, "--item=item", "--level=nominal")
    with refused(AnnotationError, "several_columns"):
        command_output(
            "agreement", path, *LONG, "--annotator=system", "--level=nominal", "--shape=long"
        )
    rows = [{"item": "1", "ann": "1", "bob": "2"}, {"item": "2", "ann": "1", "bob": "x"}]
    path = written(tmp_path / "wide.csv", rows)
    with refused(TableRefused, "not_number", line=3, field="bob"):
        command_output("agreement", path, "--item=item", "--level=interval")


def rows_of(table: Any) -> list[dict[str, Any]]:
    columns = {name: column.to_list() for name, column in table.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_conversion_gives_the_table_to_show(tmp_path):
    wide = [{"item": "1", "ann": "a", "bob": "b"}, {"item": "2", "ann": "", "bob": "b"}]
    table = read_table(written(tmp_path / "wide.csv", wide))
    long = columns_to_rows(table, ["ann", "bob"], name="annotator")
    assert rows_of(long)[:2] == [
        {"item": "1", "annotator": "ann", "value": "a"},
        {"item": "1", "annotator": "bob", "value": "b"},
    ]
    assert [long.place(row) for row in range(4)] == ["line 2", "line 2", "line 3", "line 3"]
    back = rows_to_columns(long, ["item"], name="annotator", value="value")
    assert rows_of(back) == wide


YES, NO = {"worker_id": 0, "response": "yes"}, {"worker_id": 1, "response": "no"}
SENTENCES = [{"sentence": "One.", "responses": [YES, NO]}, {"sentence": "Two.", "responses": [YES]}]
QAGS = [{"article": "…", "summary_sentences": SENTENCES}]


def test_responses_inside_records_are_rows_and_keys_or_positions_name_annotators(tmp_path):
    """The layout of QAGS' mturk_xsum.jsonl, whose records have no name."""
    path = as_json(tmp_path / "qags.jsonl", QAGS * 2)
    names = ["record", "summary_sentences.position", "worker_id", "response"]
    rows = rows_of(nested_to_rows(read_table(path), names))
    assert [tuple(row.values()) for row in rows[:4]] == [
        ("1", "1", 0, "yes"),
        ("1", "1", 1, "no"),
        ("1", "2", 0, "yes"),
        ("2", "1", 0, "yes"),
    ]
    options = ("--item=record", "--item=summary_sentences.position", "--annotator=worker_id")
    found = answer("agreement", path, *options, "--value=response", "--level=nominal")
    assert (found["n_items"], found["n_annotators"], found["n_judgments"]) == (4, 2, 6)
    assert [note["code"] for note in found["reading"]["notes"]] == ["nested_records"]
    records = [
        {"id": item, "labels": {"ann": 1, "bob": item}, "expert": [{"fluent": 1}, {"fluent": item}]}
        for item in (1, 2)
    ]
    path = as_json(tmp_path / "records.jsonl", records)
    for annotator, value in (("labels.key", "labels"), ("expert.position", "fluent")):
        named = ("--item=id", f"--annotator={annotator}", f"--value={value}")
        found = answer("agreement", path, *named, "--level=nominal")
        assert (found["n_items"], found["n_annotators"], found["n_judgments"]) == (2, 2, 4)


def test_winners_are_names_sides_and_ties_and_an_arena_is_read_by_its_columns(tmp_path):
    named = ("--first=a", "--second=b", "--winner=w")
    folder = FIELD / "17-wide-mtbench-human"
    names = ("case.csv", "names.csv")
    one, other = (answer("compare_systems", folder / name, *named) for name in names)
    assert one == other
    assert one["n_comparisons"] == 27
    rows = [
        {"q": n, "model_a": "x", "model_b": "y", "winner": winner}
        for n, winner in enumerate(
            ["model_a", "Model_B", "tie", "tie (bothbad)", "both bad", "X", "model_2", "NA", ""]
        )
    ]
    path = written(tmp_path / "winners.csv", rows)
    sides = ("--first=model_a", "--second=model_b", "--winner=winner")
    found = answer("compare_systems", path, *sides)
    assert (found["n_comparisons"], found["n_ties"]) == (8, 4)
    assert found["reading"]["missing"] == {"NA": 1}
    assert [note["code"] for note in found["reading"]["notes"]] == ["empty_winner_is_tie"]
    orders = pairs_to_orders(read_table(path), "model_a", "model_b", "winner", Reading())
    values = [row["value"] for row in rows_of(orders)]
    assert values == ["x>y", "y>x", "x=y", "x=y", "x=y", "x>y", "y>x", "NA", "x=y"]
    path = FIELD / "25-arena" / "arena.csv"
    named = ("--first=model_a", "--second=model_b", "--winner=winner")
    found = answer("compare_systems", path, *named)
    assert (found["n_comparisons"], found["n_ties"]) == (3, 1)
    assert found["smoothed"] == ["x"]


def test_comparisons_agree_whichever_side_a_system_is_on_and_items_without_scores_are_out(tmp_path):
    rows = [
        {"q": "1", "who": "ann", "model_a": "x", "model_b": "y", "winner": "model_a"},
        {"q": "1", "who": "bob", "model_a": "y", "model_b": "x", "winner": "model_b"},
        {"q": "2", "who": "ann", "model_a": "x", "model_b": "y", "winner": "tie"},
        {"q": "2", "who": "bob", "model_a": "y", "model_b": "x", "winner": "tie (bothbad)"},
    ]
    path = written(tmp_path / "arena.csv", rows)
    options = ("--item=q", "--annotator=who", "--shape=pairs")
    found = answer("agreement", path, *options, "--level=nominal")
    assert (found["n_items"], found["n_judgments"]) == (2, 4)
    assert found["coefficients"][0]["value"] == 1
    strengths = answer("aggregate", path, *options, "--method=bradley_terry")
    assert {*strengths["labels"]} == {"x", "y"}
    path = FIELD / "27-correlate" / "min.csv"
    named = ("--human=human", "--metric=m", "--item=item", "--system=system")
    found = answer("correlate", path, *named)
    assert {row["n_empty_items"] for row in found["correlations"]} == {1}
    assert all(row["value"] is not None for row in found["correlations"])
    assert found["reading"]["missing"] == {"": 3}
