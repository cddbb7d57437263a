import gzip
import json

import pytest
from django.core.management import call_command

from replications.lmstyle import OVERALL, table_1, table_2, table_3
from replications.published_data import DatasetIncomplete
from tests.codes import refused_naming


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


@pytest.mark.slow
@pytest.mark.shared_data
def test_table_2_has_the_eleven_complete_systems_as_published(folder, published):
    columns = [
        (family, metric)
        for family in ("formality", "sentiment")
        for metric in ("accuracy", "ChatGPT", "NLL")
    ]
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for cell in table_2(folder):
        cells.setdefault(cell["system"], {})[cell["family"], cell["metric"]] = cell["value"]
    known = published["table2"]["values"]
    assert cells.keys() == known.keys()
    for system, values in known.items():
        mine = [cells[system][column] for column in columns]
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


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("table", [1, 2, 3])
def test_each_table_is_one_command_away(table, folder, capsys):
    call_command("lmstyle_table", str(folder), "--table", str(table))
    laid_out = capsys.readouterr().out
    call_command("lmstyle_table", str(folder), "--table", str(table), "--json")
    cells = json.loads(capsys.readouterr().out)
    assert all(f"{cell['value']:.1f}" in laid_out for cell in cells)


TASKS = ("Formal", "Informal", "Positive", "Negative")
METRICS = "NLL,ChatGPT,BLEU,SBERT,StyleStrength"


def test_a_missing_score_leaves_table_2_a_gap_and_never_a_zero(tmp_path):
    rows = [
        f"{dataset},{task},hello,{system},30,{grade},{strength}"
        for dataset in ("d", "e")
        for task in TASKS
        for system, grade, strength in (("a", 50, 0.9), ("b", 50 if task == "Formal" else "", ""))
    ]
    header = "dataset,task,input,model,NLL,ChatGPT,StyleStrength"
    file = tmp_path / "all_models_scores.csv.gz"
    file.write_bytes(gzip.compress("\n".join([header, *rows]).encode()))
    values = {(c["system"], c["family"], c["metric"]): c["value"] for c in table_2(tmp_path)}
    for family in ("formality", "sentiment"):
        of_a, of_b = (
            [values[system, family, metric] for metric in ("accuracy", "ChatGPT", "NLL")]
            for system in "ab"
        )
        assert of_a == pytest.approx([100, 50, 30])
        assert of_b == [None, None, pytest.approx(30)]


@pytest.fixture
def constant_bleu(tmp_path):
    batch = [
        "HITId,WorkerId,AssignmentStatus,Input.HIT,Input.Speaker,Input.a,Input.b,Input.dataset,"
        "Input.task,Answer.Appropriateness_a,Answer.Appropriateness_b,Answer.Style_a,Answer.Style_b"
    ]
    batch += [f"h{task},w,Approved,1,hello,yes,no,d,{task},1,9,9,1" for task in TASKS]
    (tmp_path / "mturk_batch_results.csv").write_text("\n".join(batch))
    scores = [f"dataset,task,input,model,{METRICS}"]
    for task in TASKS:
        scores += [f"d,{task},hello,a,1,1,5,1,1", f"d,{task},hello,b,2,2,5,2,2"]
    (tmp_path / "metric_scores.csv").write_text("\n".join(scores))
    return tmp_path


def test_an_undefined_correlation_keeps_its_place_and_is_null_in_json(constant_bleu, capsys):
    def refused(constant):
        raise AssertionError(f"{constant} is no JSON")

    call_command("lmstyle_table", str(constant_bleu), "--table", "1")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:] for line in lines if "BLEU" in line] == [["undefined"] * 5]
    call_command("lmstyle_table", str(constant_bleu), "--table", "1", "--json")
    cells = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert {c["value"] for c in cells if c["metric"] == "BLEU"} == {None}
    assert all(c["value"] == pytest.approx(100) for c in cells if c["metric"] == "NLL")


def test_a_folder_without_the_data_is_refused(tmp_path):
    with refused_naming(DatasetIncomplete, "all_models_scores"):
        table_2(tmp_path)
