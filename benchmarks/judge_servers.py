"""Judges on three real servers of different make: ``python -m benchmarks.judge_servers``.

``transformers serve`` and llama.cpp's own server run from the development requirements, in the
tests too. llama-cpp-python, which alone echoes log-probabilities of a prompt, has no wheel and is
built from source once, about five minutes on two cores with gcc and cmake, in a virtual
environment of its own. All get a tiny model made on the spot; the tests then probe and judge.
"""

import os
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import requests

from benchmarks.commands import free_port, say_head, say_row
from metrics.scorers.judges.capabilities import Capabilities, probe
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint

ENVIRONMENT = Path("output/judge_servers")
REQUIREMENTS = ("llama-cpp-python[server]==0.3.36",)
TESTS = "tests/metrics/scorers/judges/test_real_servers.py"


def build_llama_python() -> str:
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
        write_gguf(str(gguf))
        hub = save_model(folder / "tiny")
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
    python = build_llama_python()
    say_head("server", "n", "samples differ", "top_logprobs", "echo with logprobs")
    for server, seen in probed_capabilities(python).items():
        facts = (seen.several_replies, seen.samples_differ, seen.top_logprobs, seen.echoed_logprobs)
        say_row(server, *facts)
    environment = os.environ | {"LLAMA_SERVER_PYTHON": python}
    return subprocess.call([sys.executable, "-m", "pytest", "-q", TESTS], env=environment)


START_SECONDS = 120


def transformers_server(model: Path, log: Path) -> AbstractContextManager[Client]:
    serve = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    command = [*serve, "serve", str(model), "--host", "127.0.0.1", "--port"]
    return running(command, "health", log, str(model))


def llama_server(model: Path, log: Path) -> AbstractContextManager[Client]:
    return running([sys.executable, "-m", "benchmarks.judge_servers", str(model)], "health", log)


def llama_python_server(python: str, model: Path, log: Path) -> AbstractContextManager[Client]:
    command = [python, "-m", "llama_cpp.server", "--model", str(model), "--logits_all", "true"]
    command += ["--n_ctx", "1024", "--model_alias", "tiny", "--port"]
    return running(command, "v1/models", log)


@contextmanager
def running(
    command: Sequence[str], health: str, log: Path, model: str = "tiny"
) -> Iterator[Client]:
    """Run a server, whose command ends with a free port, until the block ends."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, str(port)], stdout=output, stderr=output, env=environment
        )
        try:
            wait_for(server, f"{url}/{health}", log)
            yield Client(Endpoint(base_url=f"{url}/v1", model=model))
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
        with suppress(requests.ConnectionError, requests.Timeout):
            if requests.get(health, timeout=5).ok:
                return
        sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")


WIDTH, HIDDEN, HEADS, CONTEXT = 32, 64, 2, 1024
FIRST_BYTE = 3
LEVEL_WEIGHTS = (2.0, 2.2, 2.1)
CHAT = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


# A Llama that says digits: its one layer adds nothing, every embedding has a large first part, and
# that part speaks for the digits 1 to 3. So it says one of them, whatever it reads.


def alphabet() -> list[str]:
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    stand_ins = dict(zip(others, range(256, 256 + len(others)), strict=True))
    return [chr(stand_ins.get(byte, byte)) for byte in range(256)]


def write_gguf(path: str) -> None:
    import gguf

    tokens = ["<unk>", "<s>", "</s>", *alphabet(), "th"]
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2]
    types += [gguf.TokenType.NORMAL] * (len(tokens) - len(types))
    writer = gguf.GGUFWriter(path, "llama")
    fields = {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": 1,
        "feed_forward_length": HIDDEN,
        "head_count": HEADS,
        "layer_norm_rms_eps": 1e-6,
        "rope_dimension_count": WIDTH // HEADS,
        "vocab_size": len(tokens),
        "tokenizer_model": "gpt2",
        "tokenizer_pre": "gpt-2",
        "token_list": tokens,
        "token_types": types,
        "token_merges": ["t h"],
        "unk_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "chat_template": CHAT,
    }
    for name, value in fields.items():
        getattr(writer, f"add_{name}")(value)
    add_weights(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_weights(writer: Any, n_tokens: int) -> None:
    rng = np.random.default_rng(1)
    shapes = {
        "token_embd": (n_tokens, WIDTH),
        "output": (n_tokens, WIDTH),
        "blk.0.ffn_gate": (HIDDEN, WIDTH),
        "blk.0.ffn_up": (HIDDEN, WIDTH),
        "blk.0.ffn_down": (WIDTH, HIDDEN),
        **{f"blk.0.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
    }
    weights = {name: rng.normal(0, 0.02, shape) for name, shape in shapes.items()}
    weights["token_embd"][:, 0] = 1
    for level, weight in zip("123", LEVEL_WEIGHTS, strict=True):
        weights["output"][FIRST_BYTE + ord(level), 0] = weight
    weights["blk.0.ffn_down"][:] = weights["blk.0.attn_output"][:] = 0
    for name, values in weights.items():
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))


def save_model(folder: Path) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["<unk>", "<s>", "</s>", *alphabet()]
    tokenizer = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 1
        for level, weight in zip("123", LEVEL_WEIGHTS, strict=True):
            model.lm_head.weight[words.index(level), 0] = weight
        model.model.layers[0].mlp.down_proj.weight.zero_()
        model.model.layers[0].self_attn.o_proj.weight.zero_()
    model.save_pretrained(folder)
    return folder


def serve_gguf(model: str, port: int) -> None:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = model
    params.model_alias = {"tiny"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 1024
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    # The server runs as long as it is held.
    server = Server(params)
    signal.pause()
    del server


if __name__ == "__main__":
    if len(sys.argv) == 3:
        serve_gguf(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
