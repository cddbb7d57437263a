import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation import bulk, exports, models
from annotation.readers.judgments import read_judgments
from presentation.row_files import row_csv

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MEGABYTE = 1 << 20
# Two batches of items, and ten.
SMALL, LARGE = 2 * bulk.DRAFTS_AT_ONCE, 10 * bulk.DRAFTS_AT_ONCE
PER_ITEM = 8
# In megabytes: the smaller file is shorter than what is read at once, and so are its text and rows.
BLOCK = 3


def write_judgments(path: Path, n_items: int) -> Path:
    """A file that names the judgments of an item far apart: Ann's first, then Bob's."""
    rows = (
        f"item-{item},{candidate},{question},{person},{item % 90}\n"
        for person in ("Ann", "Bob")
        for question in ("wit", "tone")
        for item in range(n_items)
        for candidate in ("alpha", "beta")
    )
    path.write_text("item,candidate,question,annotator,value\n" + "".join(rows))
    return path


def peak_of(work: Callable[[], object]) -> float:
    """The most memory that was in use beyond what was before, in megabytes."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return (tracemalloc.get_traced_memory()[1] - before) / MEGABYTE
    finally:
        tracemalloc.stop()


def read_whole(path: Path) -> None:
    draft = read_judgments(path)
    assert sum(len(one.candidates) for one in draft.items) == 2 * len(draft.items)
    assert sum(len(one.judgments) for one in draft.submissions) == PER_ITEM * len(draft.items)


def test_files_of_any_size_need_the_same_memory(tmp_path):
    peaks: dict[int, list[float]] = {}
    for n_items in (SMALL, LARGE):
        path = write_judgments(tmp_path / f"{n_items}.csv", n_items)
        slug = f"of-{n_items}"
        reading = peak_of(partial(read_whole, path))
        importing = peak_of(partial(call_command, "import_judgments", path, study=slug))
        study = models.Study.objects.named(slug)
        assert models.Judgment.objects.of(study).count() == PER_ITEM * n_items
        exporting = peak_of(partial(sum, map(len, row_csv(exports.judgment_rows(study)))))
        peaks[n_items] = [reading, importing, exporting]
    assert SMALL > 2 * exports.ITEMS_AT_ONCE
    for small, large in zip(peaks[SMALL], peaks[LARGE], strict=True):
        assert large < small + BLOCK
