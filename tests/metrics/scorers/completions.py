"""The answers of OpenAI's completions by a causal model of transformers."""

from pathlib import Path
from threading import Lock
from typing import Any

from tests.metrics.scorers.judges.foreign import Foreign, Says, error

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
        tokens = [self.tokenizer.decode([token]) for token in [*ids, best]]
        following = zip(logprobs, [*ids[1:], best], strict=True)
        of_tokens = [None, *(float(row[token]) for row, token in following)]
        begins = [0, *(end for _, end in encoded["offset_mapping"])][: len(ids)]
        offsets = [*begins, len(request["prompt"])]
        logged = {"tokens": tokens, "token_logprobs": of_tokens, "text_offset": offsets}
        return {"text": request["prompt"] + tokens[-1], "logprobs": logged}

    def serve(self, foreign: Foreign, *, echoes: bool = True) -> str:
        """Answer at the foreign server, whose base URL is returned."""

        def answer(number: int, request: dict[str, Any]) -> Says:
            if foreign.headers[number].get("Authorization") != "Bearer secret":
                return error(401)
            if len(request["prompt"]) > self.longest:
                return error(400, TOO_LONG)
            choice = self.answer(request)
            if not echoes:
                choice = {"text": choice["text"][len(request["prompt"]) :], "logprobs": None}
            return Says({"choices": [choice]})

        foreign.answer = answer
        return foreign.base_url
