import json

import pytest

from tests.processes import run_python

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
