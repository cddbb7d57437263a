import gzip
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from replications.gallery import gallery
from replications.lmstyle import OVERALL, table_1, table_2, table_3
from replications.management.commands.published_studies import BEGIN, END, table, with_table
from replications.published_data import DatasetIncomplete
from tests.annotation.importing import command_output, numbers_in
from tests.codes import refused_naming
from tests.documentation.pages import DOCS
from tests.processes import run_python


@pytest.fixture
def folder(shared_data):
    return shared_data / "lmstyle"


@pytest.fixture
def published(folder):
    return json.loads((folder / "tables2_3.json").read_text())


@pytest.mark.shared_data
def test_table_1_agrees_cell_by_cell_with_undefined_items_dropped(folder):
    known = json.loads((folder / "table1.json").read_text())
    cells = [cell for cell in table_1(folder) if cell["by"] != OVERALL]
    assert len(cells) == 40
    for cell in cells:
        printed = known[f"published_{cell['coefficient']}"][cell["metric"]]
        assert round(cell["value"], 1) == printed[known["columns"].index(cell["by"])]

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


COEFFICIENTS = {"pearson": "pearson", "kendall": "kendall_b"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    database = tmp_path_factory.mktemp("site") / "assay.sqlite3"
    return {"DATABASE_URL": f"sqlite:///{database}", "PYTHONWARNINGS": "default"}


def replay(site, folder):
    done = run_python("manage.py", "replay_lmstyle", folder, "--json", **site)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.shared_data
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_all_forty_cells_come_out_as_published(shared_data, site):
    folder = shared_data / "lmstyle"
    code, printed, errors = replay(site, folder)
    assert code == 0, errors
    cells = json.loads(printed)
    assert len(cells) == 40
    table = json.loads((folder / "table1.json").read_text())
    for cell in cells:
        known = table["values"][cell["metric"]][cell["by"]]
        assert cell["value"] == pytest.approx(known[COEFFICIENTS[cell["coefficient"]]], abs=1e-9)
        assert (cell["n_groups"], cell["n_used"]) == (known["n_groups"], known["n_valid"])
        published = table[f"published_{cell['coefficient']}"][cell["metric"]]
        column = table["columns"].index(cell["by"])
        assert round(cell["value"], 1) == published[column]
    used = [c["n_used"] for c in cells if (c["metric"], c["coefficient"]) == ("ChatGPT", "pearson")]
    assert used == [71, 85, 75, 89]
    again = replay(site, folder)
    assert json.loads(again[1]) == cells


@pytest.mark.slow
def test_a_folder_without_the_data_is_refused_in_words(tmp_path, site):
    code, printed, errors = replay(site, tmp_path)
    assert (code, printed) == (2, "")
    assert "mturk_batch_results.csv" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_committed_table_is_what_the_data_gives(shared_data):
    computed = gallery(shared_data)
    assert computed.missing == ()
    page = (DOCS / "gallery.md").read_text()
    assert with_table(page, computed) == page
    cells = [row for row in computed.rows if row.study.startswith("LMStyle")]
    printed = [row for row in cells if "Overall" not in row.quantity]
    assert len(printed) == 40
    assert all(row.is_equal for row in printed)
    assert all(row.is_equal is not False for row in computed.rows if "UniEval" in row.quantity)


def test_a_folder_without_data_is_refused(tmp_path):
    with refused_naming(DatasetIncomplete, tmp_path, "lmstyle/"):
        gallery(tmp_path)


@pytest.fixture
def chat(tmp_path):
    folder = tmp_path / "topical_chat_usr"
    folder.mkdir()
    names = ("understandability", "naturalness", "coherence", "engagingness", "groundedness")
    rows = [
        {
            "source": f"hello {dialogue}",
            "context": "_nofact",
            "system_id": system,
            "system_output": f"{system} {dialogue}",
            "scores": dict.fromkeys((*names, "overall"), value),
            "unieval": dict.fromkeys((*names, "overall"), score),
        }
        for dialogue, system, value, score in (
            (0, "a", 1, 0.1), (0, "b", 0, 0.2), (1, "a", 1, 0.7), (1, "b", 0, 0.5),
        )
    ]  # fmt: skip
    (folder / "topical_chat_usr.json").write_text(json.dumps(rows))
    return tmp_path


def test_a_number_has_its_level_its_raters_and_a_signature_of_its_data(chat):
    computed = gallery(chat)
    first, *_ = computed.rows
    assert (first.level, first.coefficient, first.n) == ("pooled", "pearson", 4)
    known = np.corrcoef([1, 0, 1, 0], [0.1, 0.2, 0.7, 0.5])[0, 1]
    assert first.value == pytest.approx(known, abs=1e-12)
    assert first.ratings_mean == 0.5
    assert first.is_equal is False
    by_dialogue = next(row for row in computed.rows if row.level == "item")
    assert (by_dialogue.value, by_dialogue.n, by_dialogue.is_equal) == (0.0, 2, None)
    before = first.signature
    path = chat / "topical_chat_usr" / "topical_chat_usr.json"
    path.write_text(path.read_text() + "\n")
    assert gallery(chat).rows[0].signature != before
    assert "dstc9/ratings.csv" in computed.missing
    rows, signatures = table(computed).split("\n\n", 1)
    assert "published|" not in rows
    assert rows.splitlines()[2].startswith("| 1 | Topical-Chat-USR |")
    assert f"\n1. `{before}`\n" in signatures


def test_the_command_prints_the_table_or_puts_it_into_a_page(chat, tmp_path):
    assert "| 1 | Topical-Chat-USR |" in command_output("published_studies", chat)
    records = json.loads(command_output("published_studies", chat, json=True))
    assert len(records["rows"]) == 24
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with refused_naming(CommandError, BEGIN):
        call_command("published_studies", str(chat), page=page)
    page.write_text(f"# Mine\n{BEGIN}\nold\n{END}\nend\n")
    assert numbers_in(command_output("published_studies", chat, page=page))[:2] == [24, 18]
    assert "old" not in page.read_text()
    assert page.read_text().startswith("# Mine\n")
    assert page.read_text().endswith(f"{END}\nend\n")
