"""The LMStyle Benchmark's tables come out of its files as they were published."""

import json

import pytest
from django.core.management import call_command

from console.exceptions import DatasetIncomplete
from console.lmstyle_tables import OVERALL, table_1, table_2, table_3


@pytest.fixture
def folder(shared_data):
    return shared_data / "lmstyle"


@pytest.fixture
def published(folder):
    return json.loads((folder / "tables2_3.json").read_text())


@pytest.mark.shared_data
def test_table_1_agrees_cell_by_cell(folder):
    known = json.loads((folder / "table1.json").read_text())
    cells = [cell for cell in table_1(folder) if cell["by"] != OVERALL]
    assert len(cells) == 40
    for cell in cells:
        printed = known[f"published_{cell['coefficient']}"][cell["metric"]]
        assert round(cell["value"], 1) == printed[known["columns"].index(cell["by"])]


@pytest.mark.shared_data
def test_counting_undefined_items_as_zero_would_have_moved_chatgpt(folder):
    def overall(undefined):
        return {
            cell["coefficient"]: cell["value"]
            for cell in table_1(folder, undefined)
            if (cell["metric"], cell["by"]) == ("ChatGPT", OVERALL)
        }

    dropped, zeroed = overall("drop"), overall("zero")
    assert (round(dropped["pearson"], 1), round(zeroed["pearson"], 1)) == (23.1, 18.3)
    # Printed as 20.2: the paper's last column is the mean of its rounded ones.
    assert (dropped["kendall"], zeroed["kendall"]) == pytest.approx((20.15, 16.0), abs=0.05)


@pytest.mark.shared_data
def test_table_2_has_the_eleven_complete_systems_as_published(folder, published):
    columns = [
        (family, metric)
        for family in ("formality", "sentiment")
        for metric in ("accuracy", "ChatGPT", "NLL")
    ]
    found: dict[str, dict[tuple[str, str], float]] = {}
    for cell in table_2(folder):
        found.setdefault(cell["system"], {})[cell["family"], cell["metric"]] = cell["value"]
    known = published["table2"]["values"]
    assert found.keys() == known.keys()
    for system, values in known.items():
        mine = [found[system][column] for column in columns]
        assert mine == pytest.approx(values["published"], abs=0.15)
        assert mine == pytest.approx(values["ours"], abs=0.006)


@pytest.mark.shared_data
def test_table_3_has_the_mean_ratings_as_published(folder, published):
    known = {
        (*key.split("|"), style): value
        for key, by_style in published["table3_human_means"].items()
        for style, value in by_style.items()
    }
    cells = table_3(folder)
    assert len(cells) == len(known) == 32
    for cell in cells:
        value = known[cell["question"], cell["system"], cell["by"]]
        assert cell["value"] == pytest.approx(value, abs=0.006)
    assert sum(cell["n"] for cell in cells) == 397 * 4 * 2


@pytest.mark.shared_data
@pytest.mark.parametrize("table", [1, 2, 3])
def test_each_table_is_one_command_away(table, folder, capsys):
    call_command("lmstyle_table", str(folder), "--table", str(table))
    laid_out = capsys.readouterr().out
    call_command("lmstyle_table", str(folder), "--table", str(table), "--json")
    cells = json.loads(capsys.readouterr().out)
    assert all(f"{cell['value']:.1f}" in laid_out for cell in cells)


def test_a_folder_without_the_data_is_refused(tmp_path):
    with pytest.raises(DatasetIncomplete, match="There is no all_models_scores"):
        table_2(tmp_path)
