"""A small server that speaks OpenAI's completions for a causal model of transformers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

TOO_LONG = "the prompt is too long"


class Completions:
    """The answers of a model: the echoed prompt with log-probabilities, and one token more."""

    def __init__(self, folder: Path, longest: int = 10_000) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.longest = longest
        self.lock = Lock()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        import torch

        encoded = self.tokenizer(request["prompt"], return_offsets_mapping=True)
        ids = encoded["input_ids"]
        with self.lock, torch.no_grad():
            logprobs = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        best = int(logprobs[-1].argmax())
        following = [*ids[1:], best]
        return {
            "text": request["prompt"] + self.tokenizer.decode([best]),
            "logprobs": {
                "tokens": [self.tokenizer.decode([token]) for token in [*ids, best]],
                "token_logprobs": [
                    None,
                    *(float(row[token]) for row, token in zip(logprobs, following, strict=True)),
                ],
                "text_offset": [
                    *([0] + [end for _, end in encoded["offset_mapping"]])[: len(ids)],
                    len(request["prompt"]),
                ],
            },
        }


@contextmanager
def serving(completions: Completions, *, echoes: bool = True, busy: int = 0) -> Iterator[str]:
    """Serve on a free port; `busy` requests are turned away first. Yields the base URL."""
    refusals = iter([429] * busy)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if status := next(refusals, None):
                return self.reply(status, {"error": "busy"})
            if self.headers.get("Authorization") != "Bearer secret":
                return self.reply(401, {"error": "no key"})
            if len(request["prompt"]) > completions.longest:
                return self.reply(400, {"error": TOO_LONG})
            choice = completions.answer(request)
            if not echoes:
                choice = {"text": choice["text"][len(request["prompt"]) :], "logprobs": None}
            return self.reply(200, {"choices": [choice]})

        def reply(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
