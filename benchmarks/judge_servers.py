"""Judges on three real servers of different make: ``python -m benchmarks.judge_servers``.

``transformers serve`` and llama.cpp's own server run from the development requirements, in the
tests too. llama-cpp-python, which alone echoes log-probabilities of a prompt, has no wheel and is
built from source once, about five minutes on two cores with gcc and cmake, in a virtual
environment of its own. All get a tiny model made on the spot; the tests then probe and judge.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from benchmarks.commands import say
from benchmarks.model_servers import servers, tiny_models
from metrics.scorers.judges.capabilities import Capabilities, probe

ENVIRONMENT = Path("output/judge_servers")
REQUIREMENTS = ("llama-cpp-python[server]==0.3.36",)
TESTS = "tests/metrics/scorers/judges/test_real_servers.py"


def llama_python() -> str:
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
            servers.transformers_server(hub, folder / "transformers.log") as without,
            servers.llama_server(gguf, folder / "llama.log") as with_logprobs,
            servers.llama_python_server(python, gguf, folder / "python.log") as with_echo,
        ):
            return {
                "transformers serve": probe(without),
                "llama.cpp": probe(with_logprobs),
                "llama-cpp-python": probe(with_echo),
            }


def main() -> int:
    """Print what the probe finds, then run the tests with all of them."""
    python = llama_python()
    say("| server | n | samples differ | top_logprobs | echo with logprobs |")
    say("|---|---|---|---|---|")
    for server, seen in probed_capabilities(python).items():
        facts = (seen.several_replies, seen.samples_differ, seen.top_logprobs, seen.echoed_logprobs)
        say(f"| {server} | {' | '.join(str(fact) for fact in facts)} |")
    environment = os.environ | {"LLAMA_SERVER_PYTHON": python}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", TESTS], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
