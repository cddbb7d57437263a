import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection

from annotation import imports, models
from annotation.readers.item_files import read_responses
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 3


@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_is_imported_once_however_many_import_it(tmp_path, is_new):
    path = tmp_path / "responses.csv"
    rows = "".join(f"fresh {n},alpha,hi,ho\n" for n in range(500))
    path.write_text(f"item,system,context,response\n{rows}")
    draft = read_responses(path)
    if not is_new:
        rating_study("shared", n_items=0)
    barrier = threading.Barrier(AT_ONCE)

    def run(_: int) -> imports.ImportResult:
        with closing(connection):
            barrier.wait(timeout=30)
            return imports.import_study(draft=draft, path=path, slug="shared")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(run, range(AT_ONCE)))
    assert sorted(imported.n_items for imported in results) == [0, 0, 500]
    assert models.Item.objects.count() == models.Candidate.objects.count() == 500
