"""Judges on three real servers of different make: ``python -m benchmarks.judge_servers``.

``transformers serve`` and llama.cpp's own server run from the development requirements, in the
tests too. llama-cpp-python, which alone echoes log-probabilities of a prompt, has no wheel and is
built from source once, about five minutes on two cores with gcc and cmake, in a virtual
environment of its own. All get a tiny model made on the spot; the tests then probe and judge.
"""

import os
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import requests

from benchmarks.commands import say
from benchmarks.model_servers import tiny_models
from metrics.scorers.judges.capabilities import Capabilities, probe
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint

ENVIRONMENT = Path("output/judge_servers")
REQUIREMENTS = ("llama-cpp-python[server]==0.3.36",)
TESTS = "tests/metrics/scorers/judges/test_real_servers.py"


def build_llama_python() -> str:
    """The Python of the environment that has llama-cpp-python, which is built where it lacks."""
    if named := os.environ.get("LLAMA_SERVER_PYTHON"):
        return named
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "ready").exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (ENVIRONMENT / "ready").touch()
    return str(python.absolute())


def probed_capabilities(python: str) -> dict[str, Capabilities]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gguf = folder / "tiny.gguf"
        tiny_models.write(str(gguf))
        hub = tiny_models.save(folder / "tiny")
        with (
            transformers_server(hub, folder / "transformers.log") as without,
            llama_server(gguf, folder / "llama.log") as with_logprobs,
            llama_python_server(python, gguf, folder / "python.log") as with_echo,
        ):
            return {
                "transformers serve": probe(without),
                "llama.cpp": probe(with_logprobs),
                "llama-cpp-python": probe(with_echo),
            }


def main() -> int:
    """Print what the probe finds, then run the tests with all of them."""
    python = build_llama_python()
    say("| server | n | samples differ | top_logprobs | echo with logprobs |")
    say("|---|---|---|---|---|")
    for server, seen in probed_capabilities(python).items():
        facts = (seen.several_replies, seen.samples_differ, seen.top_logprobs, seen.echoed_logprobs)
        say(f"| {server} | {' | '.join(str(fact) for fact in facts)} |")
    environment = os.environ | {"LLAMA_SERVER_PYTHON": python}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", TESTS], env=environment, check=False
    ).returncode


START_SECONDS = 120
TRANSFORMERS_NEEDS = ("fastapi", "uvicorn", "openai")
LLAMA_NEEDS = ("xllamacpp", "gguf")
SERVE_GGUF = Path(__file__).parent / "model_servers" / "serve_gguf.py"


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


if __name__ == "__main__":
    sys.exit(main())
