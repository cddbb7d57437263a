import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from replications.gallery import gallery
from replications.management.commands.published_studies import BEGIN, END, table, with_table
from replications.published_data import DatasetIncomplete
from tests.annotation.importing import command_output, numbers_in
from tests.codes import refused_naming
from tests.documentation.pages import DOCS


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
