import gzip
import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from replications.lmstyle import ALL_SCORES, BATCH, OVERALL, SCORES, table_1, table_2, table_3
from replications.management.commands.published_studies import (
    BEGIN,
    END,
    reproduce_all,
    with_tables,
    write_tables,
)
from replications.manifests import paper_names, read_manifest
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
def test_table_1_leaves_undefined_items_out_or_takes_them_for_0(folder):
    files = (folder / BATCH, folder / SCORES)

    def overall(undefined):
        return {
            cell["coefficient"]: cell["value"]
            for cell in table_1(*files, undefined)
            if (cell["metric"], cell["by"]) == ("ChatGPT", OVERALL)
        }

    dropped, zeroed = overall("drop"), overall("zero")
    assert (round(dropped["pearson"], 1), round(zeroed["pearson"], 1)) == (23.1, 18.3)
    # Printed as 20.2: the paper's last column is the mean of its rounded ones.
    assert (dropped["kendall"], zeroed["kendall"]) == pytest.approx((20.15, 16.0), abs=0.05)


@pytest.mark.slow
@pytest.mark.shared_data
def test_table_2_has_the_eleven_complete_systems_as_published(folder, published):
    columns = list(product(("formality", "sentiment"), ("accuracy", "ChatGPT", "NLL")))
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for cell in table_2(folder / ALL_SCORES):
        cells.setdefault(cell["system"], {})[cell["family"], cell["metric"]] = cell["value"]
    known = published["table2"]["values"]
    assert cells.keys() == known.keys()
    for system, values in known.items():
        mine = [cells[system][column] for column in columns]
        assert mine == pytest.approx(values["ours"], abs=0.006)


@pytest.mark.shared_data
def test_table_3_has_the_mean_ratings_as_published(folder, published):
    known = {
        (*key.split("|"), style): value
        for key, by_style in published["table3_human_means"].items()
        for style, value in by_style.items()
    }
    every = table_3(folder / BATCH)
    cells = [cell for cell in every if cell["by"] != OVERALL]
    assert len(cells) == len(known) == len(every) - 8 == 32
    for cell in cells:
        value = known[cell["question"], cell["system"], cell["by"]]
        assert cell["value"] == pytest.approx(value, abs=0.006)
    assert sum(cell["n"] for cell in cells) == 397 * 4 * 2


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
    values = {(c["system"], c["family"], c["metric"]): c["value"] for c in table_2(file)}
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
    call_command("lmstyle_table", str(constant_bleu), "--table", "1")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:] for line in lines if "BLEU" in line] == [["undefined"] * 5]
    call_command("lmstyle_table", str(constant_bleu), "--table", "1", "--json")
    cells = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
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
    used = [c["n_used"] for c in cells if (c["metric"], c["coefficient"]) == ("ChatGPT", "pearson")]
    assert used == [71, 85, 75, 89]
    again = replay(site, folder)
    assert json.loads(again[1]) == cells


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_committed_tables_are_what_the_data_gives(shared_data):
    papers, missing = reproduce_all(shared_data)
    assert missing == []
    assert [manifest.name for manifest, _ in papers] == paper_names()
    page = (DOCS / "gallery.md").read_text()
    assert with_tables(page, papers) == page
    cells = [cell for _, of_paper in papers for cell in of_paper]
    verdicts = Counter((cell.study, cell.table, cell.verdict) for cell in cells)
    assert verdicts["LMStyle", "Table 1", "equal"] == 45
    assert verdicts["LMStyle", "Table 2", "equal"] == 47
    assert verdicts["Topical-Chat-USR", "UniEval", "equal"] == 18
    assert verdicts["Cheap and fast", "Textual entailment", "equal"] == 1
    assert {cell.table for cell in cells if cell.verdict == "differs"} == {"Table 2"}
    assert all(cell.reason for cell in cells if cell.verdict == "explained")


def test_a_folder_without_data_is_refused(tmp_path):
    with refused_naming(DatasetIncomplete, tmp_path, "lmstyle/"):
        reproduce_all(tmp_path)
    with refused_naming(DatasetIncomplete, BATCH):
        call_command("lmstyle_table", str(tmp_path), "--table", "1")
    for name in paper_names():
        with refused_naming(DatasetIncomplete, tmp_path, read_manifest(name).data):
            read_manifest(name).reproduce(tmp_path)


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
    manifest = read_manifest("topical-chat")
    folder = chat / manifest.folder
    first, *_ = cells = manifest.reproduce(folder)
    assert (first.level, first.column, first.n) == ("pooled", "pearson", 4)
    known = np.corrcoef([1, 0, 1, 0], [0.1, 0.2, 0.7, 0.5])[0, 1]
    assert first.value == pytest.approx(known, abs=1e-12)
    assert first.ratings_mean == 0.5
    assert (first.verdict, first.published) == ("differs", 0.443666)
    by_dialogue = next(cell for cell in cells if cell.level == "item")
    assert (by_dialogue.value, by_dialogue.n, by_dialogue.verdict) == (0.0, 2, "not compared")
    [path] = folder.iterdir()
    path.write_text(path.read_text() + "\n")
    assert manifest.reproduce(folder)[0].signature != first.signature


def test_the_commands_print_the_tables_or_put_them_into_a_page(chat, tmp_path):
    papers, missing = reproduce_all(chat)
    assert "dstc9/ratings.csv" in missing
    assert write_tables(papers) in command_output("published_studies", chat)
    records = json.loads(command_output("published_studies", chat, json=True))
    assert len(records["rows"]) == 24
    folder = chat / "topical_chat_usr"
    again = json.loads(command_output("reproduce", "topical-chat", folder, json=True))
    assert (again["cells"], again["paper"]["name"]) == (records["rows"], "topical-chat")
    assert read_manifest("lmstyle").url in command_output("reproduce", "lmstyle")
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with refused_naming(CommandError, BEGIN):
        call_command("published_studies", str(chat), page=page)
    page.write_text(f"# Mine\n{BEGIN}\nold\n{END}\nend\n")
    assert numbers_in(command_output("published_studies", chat, page=page))[:2] == [18, 6]
    lines = page.read_text().split("\n")
    assert ("old" in lines, lines[0], *lines[-3:]) == (False, "# Mine", END, "end", "")
