from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.metrics.scorers.judges.foreign import Foreign


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*lines: str, name: str = "scores.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return written


@pytest.fixture
def foreign() -> Iterator[Foreign]:
    server = Foreign()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
