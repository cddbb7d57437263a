"""Log-likelihood of a response after a prompt, under a causal language model of transformers.

Three things that change the numbers, and what is done about them. Where the prompt ends and the
response begins: the two are cut into tokens apart (``"separate"``), or together, each token with
a character of the response counting for it (``"joint"``); a byte-pair tokeniser gives other
tokens at the seam. Padding: hidden by the attention mask, and with padding on the left the
positions are counted from the first real token, which absolute and rotary positions need. Length:
a text longer than the model's window is read in overlapping windows, so that each token of the
response is predicted once, from at least half a window before it.
"""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import metadata
from typing import Any, NamedTuple, Protocol

from metrics.scorers.checkpoints import Checkpoint
from metrics.scorers.errors import ModelUnavailableError, TruncatedTextWarning
from metrics.scorers.interface import require_at_least, require_one_of

BOUNDARIES = ("separate", "joint")
OVERFLOWS = ("slide", "undefined")
PADDINGS = ("right", "left")
DTYPES = ("float32", "bfloat16", "float16")
ROWS_AT_ONCE = 32
LOGITS_AT_ONCE = 2**27  # half a gigabyte of float32


class Likelihood(NamedTuple):
    """Negative log-likelihood of a response: its sum over so many tokens, or why there is none."""

    nats: float
    n_tokens: int
    problem: str | None = None


class Referee(Protocol):
    """What gives likelihoods: a model on this machine, or one behind a server."""

    def signed(self) -> dict[str, object]:
        """The fields of a signature on which its likelihoods depend."""

    def likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """The likelihood of each (prompt, response), of which the responses are not empty."""


class Span(NamedTuple):
    """A window of a text's tokens; those from `first` on are predicted."""

    text: int
    begin: int
    end: int
    first: int


class Tokenized(NamedTuple):
    """The tokens of prompt and response; the response begins at `start`."""

    ids: list[int]
    start: int


def spans(text: int, tokens: Tokenized, window: int | None) -> Iterator[Span]:
    """Cut a text into windows that predict each token of the response once.

    Parameters
    ----------
    text : int
        Which text it is.
    tokens : Tokenized
    window : int or None
        How many tokens the model reads, at least 2; None for any number.

    Yields
    ------
    Span
        One, where the text fits; otherwise several, each predicting up to half a window.

    Examples
    --------
    >>> list(spans(0, Tokenized([5, 6, 7, 8, 9], start=2), window=4))
    [Span(text=0, begin=0, end=4, first=2), Span(text=0, begin=1, end=5, first=4)]
    """
    length = len(tokens.ids)
    if window is None or length <= window:
        yield Span(text, 0, length, tokens.start)
        return
    first = tokens.start
    while first < length:
        end = min(length, first + window // 2)
        yield Span(text, max(0, end - window), end, first)
        first = end


class CausalModel:
    """A causal language model of transformers as a referee.

    Parameters
    ----------
    checkpoint : Checkpoint
        Its folder holds the model and its tokeniser.
    boundary : {"separate", "joint"}
        Whether prompt and response are cut into tokens apart or together.
    bos : bool
        Whether the model's token for the beginning of a text comes before the prompt.
    window : int, optional
        How many tokens it may read; by default what its settings say, if they do.
    overflow : {"slide", "undefined"}
        Whether a longer text is read in overlapping windows, or has no likelihood.
    dtype : {"float32", "bfloat16", "float16"}
        The numeric type of the weights; log-probabilities are summed in float64.
    padding : {"right", "left"}
        On which side shorter texts of a batch are filled up; changes nothing but rounding.
    device : str, optional
        As for `metrics.scorers.checkpoints.chosen`.

    Raises
    ------
    ValueError
        If one of these is none of its choices, or `window` below 2.

    Examples
    --------
    >>> CausalModel(Checkpoint("gpt2"), window=1)
    Traceback (most recent call last):
    error_codes.InvalidValue: window must be at least 2, got 1
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        boundary: str = "separate",
        bos: bool = False,
        window: int | None = None,
        overflow: str = "slide",
        dtype: str = "float32",
        padding: str = "right",
        device: str | None = None,
    ) -> None:
        require_one_of(
            boundary=(boundary, BOUNDARIES),
            overflow=(overflow, OVERFLOWS),
            dtype=(dtype, DTYPES),
            padding=(padding, PADDINGS),
        )
        if window is not None:
            require_at_least(2, window=window)
        self.checkpoint = checkpoint
        self.boundary, self.bos = boundary, bos
        self.window, self.overflow = window, overflow
        self.dtype, self.padding, self.device = dtype, padding, device

    def signed(self) -> dict[str, object]:
        return {
            "boundary": self.boundary,
            "bos": "yes" if self.bos else "no",
            "window": self.window or "model",
            "overflow": self.overflow,
            "dtype": self.dtype,
            **self.checkpoint.signed(),
            "version": f"transformers-{metadata.version('transformers')}",
        }

    def likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        distinct = list(dict.fromkeys(pairs))
        texts = [self._tokenized(*pair) for pair in distinct]
        by_pair = dict(zip(distinct, self._measured(texts), strict=True))
        return [by_pair[pair] for pair in pairs]

    def _measured(self, texts: list[Tokenized]) -> list[Likelihood]:
        problems = [self._problem(tokens) for tokens in texts]
        self._warn_of_long([t for t, problem in zip(texts, problems, strict=True) if not problem])
        cut = [
            span
            for index, tokens in enumerate(texts)
            if not problems[index]
            for span in spans(index, tokens, self._window)
        ]
        nats = [0.0] * len(texts)
        for batch in self._batches(cut):
            for span, of_span in zip(batch, self._nats(batch, texts), strict=True):
                nats[span.text] += of_span
        return [
            Likelihood(float("nan"), 0, problem)
            if problem
            else Likelihood(total, len(tokens.ids) - tokens.start)
            for total, tokens, problem in zip(nats, texts, problems, strict=True)
        ]

    def _problem(self, tokens: Tokenized) -> str | None:
        if tokens.start == 0:
            return "the first token holds the whole prompt and some of the response"
        if tokens.start == len(tokens.ids):
            return "the tokeniser drops the whole response"
        long = self._window is not None and len(tokens.ids) > self._window
        if long and self.overflow == "undefined":
            return f"longer than the {self._window} tokens which the model reads"
        return None

    def _warn_of_long(self, texts: Sequence[Tokenized]) -> None:
        long = sum(self._window is not None and len(t.ids) > self._window for t in texts)
        if long:
            warnings.warn(
                TruncatedTextWarning(
                    f"{long} of {len(texts)} texts are longer than the {self._window} tokens which"
                    f" {self.checkpoint.label} reads; they are read in overlapping windows",
                    n_texts=long,
                    n_all=len(texts),
                    code="windows",
                ),
                stacklevel=2,
            )

    def _tokenized(self, prompt: str, response: str) -> Tokenized:
        begin = [self._bos] if self.bos else []
        if self.boundary == "separate":
            before = begin + self._ids(prompt)
            return Tokenized(before + self._ids(response), len(before))
        encoded = self.checkpoint.tokenizer(
            prompt + response,
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        ends = [end for _, end in encoded["offset_mapping"]]
        start = next((i for i, end in enumerate(ends) if end > len(prompt)), len(ends))
        return Tokenized(begin + list(encoded["input_ids"]), len(begin) + start)

    def _ids(self, text: str) -> list[int]:
        encoded = self.checkpoint.tokenizer(text, add_special_tokens=False, verbose=False)
        return list(encoded["input_ids"])

    def _batches(self, cut: Sequence[Span]) -> Iterator[list[Span]]:
        """Spans of like length together, as many as their logits leave room for."""
        batch: list[Span] = []
        for span in sorted(cut, key=lambda span: span.begin - span.end):
            width = batch[0].end - batch[0].begin if batch else 0
            logits = (len(batch) + 1) * width * self._model.config.vocab_size
            if len(batch) == ROWS_AT_ONCE or logits > LOGITS_AT_ONCE:
                yield batch
                batch = []
            batch.append(span)
        if batch:
            yield batch

    def _nats(self, batch: Sequence[Span], texts: Sequence[Tokenized]) -> list[float]:
        import torch
        from torch.nn.functional import cross_entropy

        width = max(span.end - span.begin for span in batch)
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        shifts = [width - (s.end - s.begin) if self.padding == "left" else 0 for s in batch]
        for row, (span, shift) in enumerate(zip(batch, shifts, strict=True)):
            part = slice(shift, shift + span.end - span.begin)
            ids[row, part] = torch.tensor(texts[span.text].ids[span.begin : span.end])
            mask[row, part] = 1
        ids = ids.to(self._model.device)
        with torch.inference_mode():
            logits = self._model(input_ids=ids, **self._hints(mask.to(ids.device))).logits
        sums = []
        for row, (span, shift) in enumerate(zip(batch, shifts, strict=True)):
            first, end = shift + span.first - span.begin, shift + span.end - span.begin
            predicted = logits[row, first - 1 : end - 1].float()
            losses = cross_entropy(predicted, ids[row, first:end], reduction="none")
            sums.append(float(losses.cpu().double().sum()))
        return sums

    def _hints(self, mask: Any) -> dict[str, Any]:
        """The inputs that say to the model which tokens are padding, and where each stands."""
        hints = {"attention_mask": mask}
        if self.padding == "left" and "position_ids" in self._arguments:
            hints["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        return hints

    @cached_property
    def _arguments(self) -> frozenset[str]:
        return frozenset(inspect.signature(self._model.forward).parameters)

    @cached_property
    def _model(self) -> Any:
        return self.checkpoint.load("AutoModelForCausalLM", self.device, self.dtype)

    @cached_property
    def _window(self) -> int | None:
        """What is asked for, else what the settings of a model with absolute positions say."""
        if self.window:
            return self.window
        config = self._model.config
        limits = (
            getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")
        )
        return next((limit for limit in limits if isinstance(limit, int) and limit > 1), None)

    @property
    def _bos(self) -> int:
        token = self.checkpoint.tokenizer.bos_token_id
        if token is None:
            raise ModelUnavailableError(
                f"{self.checkpoint.label} has no token for the beginning of a text: bos must be off"
            )
        return int(token)
