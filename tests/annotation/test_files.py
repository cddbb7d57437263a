import os
import threading
from pathlib import Path

from presentation.files import FileUnwritable, require_writable, write_whole
from tests.codes import refused_naming


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("before")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_whole(link, "after")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "after"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_whole(pipe, "through")
    assert pipe.is_fifo()
    reader.join(timeout=10)
    assert read == ["through"]


def test_what_cannot_be_written_leaves_nothing_beside_it(tmp_path: Path) -> None:
    for unfit in (tmp_path, tmp_path / "no" / "file"):
        with refused_naming(FileUnwritable, unfit):
            write_whole(unfit, "text")
    assert list(tmp_path.iterdir()) == []
    assert not (tmp_path.parent / f"{tmp_path.name}.partial").exists()


def test_whether_a_file_can_be_written_is_found_out_without_writing_it(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    require_writable(path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("before")
    require_writable(path)
    assert path.read_text() == "before"
    for unfit in (tmp_path, path / "x"):
        with refused_naming(FileUnwritable, unfit):
            require_writable(unfit)
    os.mkfifo(tmp_path / "pipe")
    require_writable(tmp_path / "pipe")
