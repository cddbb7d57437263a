"""Real servers of different make, with tiny models, for as long as a test module needs them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import requests

from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint

START_SECONDS = 120
TRANSFORMERS_NEEDS = ("fastapi", "uvicorn", "openai")
LLAMA_NEEDS = ("xllamacpp", "gguf")
SERVE_GGUF = Path(__file__).with_name("serve_gguf.py")


def missing(packages: Sequence[str]) -> list[str]:
    return [package for package in packages if find_spec(package) is None]


def llama_python() -> str | None:
    if named := os.environ.get("LLAMA_SERVER_PYTHON"):
        return named
    return sys.executable if find_spec("llama_cpp") else None


@contextmanager
def transformers_server(model: Path, log: Path) -> Iterator[Client]:
    port = free_port()
    start = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", start, "serve", str(model), "--port", str(port)]
    with running([*command, "--host", "127.0.0.1"], f"http://127.0.0.1:{port}/health", log):
        yield client(port, str(model))


@contextmanager
def llama_server(model: Path, log: Path) -> Iterator[Client]:
    """llama.cpp's own server, from the package xllamacpp."""
    port = free_port()
    command = [sys.executable, str(SERVE_GGUF), str(model), str(port)]
    with running(command, f"http://127.0.0.1:{port}/health", log):
        yield client(port, "tiny")


@contextmanager
def llama_python_server(python: str, model: Path, log: Path) -> Iterator[Client]:
    port = free_port()
    command = [python, "-m", "llama_cpp.server", "--model", str(model), "--port", str(port)]
    command += ["--logits_all", "true", "--n_ctx", "1024", "--model_alias", "tiny"]
    with running(command, f"http://127.0.0.1:{port}/v1/models", log):
        yield client(port, "tiny")


def client(port: int, model: str) -> Client:
    return Client(Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model=model))


@contextmanager
def running(command: Sequence[str], health: str, log: Path) -> Iterator[None]:
    """Run a server until the block ends; its output goes to a log that a failure tells."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            wait_for(server, health, log)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_for(server: "subprocess.Popen[bytes]", health: str, log: Path) -> None:
    give_up = monotonic() + START_SECONDS
    while server.poll() is None and monotonic() < give_up:
        try:
            if requests.get(health, timeout=5).ok:
                return
        except (requests.ConnectionError, requests.Timeout):
            pass
        sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
