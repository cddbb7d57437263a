"""The notebooks in docs: what they show is what their cells did, when `make notebooks` ran them."""

import pytest

from tests.notebooks import FOLDER, MOST_BYTES, code_cells, notebooks

NAMES = [path.name for path in notebooks()]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_its_cells_did_in_order(name):
    cells = code_cells(FOLDER / name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"execute_result", "display_data", "stream"}
    assert (FOLDER / name).stat().st_size < MOST_BYTES
