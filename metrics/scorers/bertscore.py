"""BERTScore: tokens of response and reference matched greedily by their embeddings in context.

As the authors' package computes it, which is no longer kept: same weights, same tokens, same
numbers. Four traps. An empty text, which stops that package, has no tokens to match: the scores
of an empty response are 0. Inverse document frequencies come from a file of texts and not from
whatever is being scored together, so that a score does not depend on its company. Which layer is
used and whether scores are rescaled moves every score, so both are in the signature. And the
tokeniser of RoBERTa cuts the first word as if a space were before it, as that package asks.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from error_codes import CodedText, InvalidValue
from metrics.scorers.checkpoints import Checkpoint, file_sha256, loading
from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_at_least,
    sign,
    undefined,
)
from metrics.scorers.token_batches import like_lengths, padded, token_ids, token_limit

if TYPE_CHECKING:
    import torch

VERSION = 1
TEXTS_AT_ONCE = 32
PREFIXED = ("roberta", "gpt2")
# The layer that agreed best with people on WMT16, as the authors give it for each model.
LAYERS = {
    "roberta-large": 17,
    "FacebookAI/roberta-large": 17,
    "roberta-base": 10,
    "bert-base-uncased": 9,
    "bert-base-multilingual-cased": 9,
    "distilbert-base-uncased": 5,
    "xlm-roberta-large": 17,
    "microsoft/deberta-xlarge-mnli": 40,
}


class Matches(NamedTuple):
    precision: float
    recall: float
    f: float


class BertScore(Scorer):
    """BERTScore F under the plain name, and its precision and recall.

    Each distinct text of a batch is embedded once. An empty response scores 0; a blank reference
    is no reference: NaN.

    Parameters
    ----------
    model : str or Path
        An encoder of transformers: a folder, or a name on the Hugging Face hub.
    layer : int, optional
        Whose layer's output is matched, from 1; by default the authors' choice for the model, if
        they give one.
    idf : str or Path, optional
        A text file, one text a line, whose inverse document frequencies weigh the tokens;
        usually the references. By default all tokens weigh the same, and special ones nothing.
    baseline : sequence of 3 floats, optional
        Precision, recall and F of unrelated texts, to rescale by; by default scores are raw. For
        ``roberta-large``, layer 17, English, the authors give 0.83150584, 0.8314941, 0.83122575.
    device : str, optional
    download : bool
        Whether a named model may be fetched over the network.
    cache_folder : str, optional

    Raises
    ------
    ValueError
        If `layer` is needed and not given or out of range, `baseline` is not three numbers
        below 1, or `idf` is no file.
    ModelUnavailableError
        On first use, if the model cannot be found or loaded.

    References
    ----------
    .. [1] T. Zhang et al. (2020). BERTScore: Evaluating Text Generation with BERT. ICLR.
    .. [2] bert-score 0.3.13, ``utils.py``, ``greedy_cos_idf``.

    Examples
    --------
    >>> BertScore(model="some/encoder")
    Traceback (most recent call last):
    error_codes.InvalidValue: layer must be given for some/encoder: ...
    """

    name = "bertscore"
    outputs = ("bertscore", "bertscore_precision", "bertscore_recall")
    needs = frozenset({"reference"})
    batch_size = 256

    def __init__(
        self,
        *,
        model: str | Path = "roberta-large",
        layer: int | None = None,
        idf: str | Path | None = None,
        baseline: Sequence[float] | None = None,
        device: str | None = None,
        download: bool = False,
        cache_folder: str | None = None,
    ) -> None:
        self.layer = _known_layer(str(model)) if layer is None else layer
        require_at_least(1, layer=self.layer)
        if baseline is not None and (len(baseline) != 3 or max(baseline) >= 1):
            raise InvalidValue(
                f"baseline must be three numbers below 1, got {baseline!r}",
                code="baseline_out_of_range",
            )
        self.baseline = None if baseline is None else tuple(map(float, baseline))
        self.idf = None if idf is None else Path(idf).expanduser()
        if self.idf and not self.idf.is_file():
            raise InvalidValue(
                f"idf must be a file of texts, got {str(idf)!r}", code="idf_not_a_file"
            )
        self.device = device
        self._checkpoint = Checkpoint(model, download, cache_folder)

    @cached_property
    def signature(self) -> str:
        return sign(
            "bertscore",
            nrefs=1,
            layer=self.layer,
            idf=file_sha256(self.idf)[:16] if self.idf else "no",
            rescaled="/".join(map(str, self.baseline)) if self.baseline else "no",
            **self._checkpoint.signed(),
            version=f"{VERSION}-transformers-{metadata.version('transformers')}",
        )

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        pairs = [
            (example.response.strip(), (example.reference or "").strip()) for example in examples
        ]
        texts = [text for text in dict.fromkeys(text for pair in pairs for text in pair) if text]
        embedded = dict(zip(texts, self._embed(texts), strict=True))
        return [
            self._scores(
                self._rescaled(greedy_matches(*embedded[response], *embedded[reference]))
                if response
                else Matches(0.0, 0.0, 0.0)
            )
            for response, reference in pairs
        ]

    def _scores(self, match: Matches) -> Scores:
        weightless = undefined(
            CodedText("every token of a text is in every text of the idf file", code="weightless")
        )
        values = (match.f, match.precision, match.recall)
        scores = (weightless if math.isnan(value) else Score(value) for value in values)
        return dict(zip(self.outputs, scores, strict=True))

    def _rescaled(self, raw: Matches) -> Matches:
        if self.baseline is None:
            return raw
        return Matches(
            *((value - base) / (1 - base) for value, base in zip(raw, self.baseline, strict=True))
        )

    def _embed(self, texts: list[str]) -> list[tuple["torch.Tensor", "torch.Tensor"]]:
        """The unit vectors of each text's tokens, and what each token weighs."""
        import torch

        rows = self._token_ids(texts)
        embeddings: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        padding = int(self._checkpoint.tokenizer.pad_token_id or 0)
        for batch in like_lengths(rows, TEXTS_AT_ONCE):
            ids, mask = padded([rows[row] for row in batch], padding, str(self._model.device))
            with torch.inference_mode():
                states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            units = torch.nn.functional.normalize(states.float(), dim=-1).cpu()
            for row, vectors in zip(batch, units, strict=True):
                weights = torch.tensor([self._weights[token] for token in rows[row]])
                embeddings[row] = vectors[: len(rows[row])], weights
        return [embeddings[row] for row in range(len(rows))]

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        config = self._model.config
        lead = " " if config.model_type in PREFIXED else ""
        texts = [lead + text for text in texts]
        limit = token_limit(self._checkpoint.tokenizer, config)
        return token_ids(self._checkpoint.tokenizer, texts, limit, self._checkpoint.label)

    @cached_property
    def _weights(self) -> "_Weights":
        if self.idf is not None:
            with loading(self.idf):
                lines = self.idf.read_text(encoding="utf-8").splitlines()
            return _Weights.inverse_frequencies(self._token_ids([line.strip() for line in lines]))
        special = (self._checkpoint.tokenizer.cls_token_id, self._checkpoint.tokenizer.sep_token_id)
        return _Weights({token: 0.0 for token in special if token is not None}, 1.0)

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoConfig

        folder = self._checkpoint.folder
        with loading(folder):
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
            if self.layer > config.num_hidden_layers:
                raise InvalidValue(
                    f"layer must be at most {config.num_hidden_layers} for"
                    f" {self._checkpoint.label}, got {self.layer}",
                    code="layer_out_of_range",
                )
        config.num_hidden_layers = self.layer
        return self._checkpoint.load("AutoModel", self.device, config=config)


class _Weights(dict[int, float]):
    """The weight of each token; of one not seen, that of the rarest."""

    def __init__(self, known: dict[int, float], otherwise: float) -> None:
        super().__init__(known)
        self.otherwise = otherwise

    def __missing__(self, token: int) -> float:
        return self.otherwise

    @classmethod
    def inverse_frequencies(cls, texts: Sequence[Sequence[int]]) -> "_Weights":
        counts = Counter(token for ids in texts for token in set(ids))
        known = {token: math.log((len(texts) + 1) / (count + 1)) for token, count in counts.items()}
        return cls(known, math.log(len(texts) + 1))


def greedy_matches(
    ours: "torch.Tensor",
    our_weights: "torch.Tensor",
    theirs: "torch.Tensor",
    their_weights: "torch.Tensor",
) -> Matches:
    """Match each token with the nearest of the other text.

    Parameters
    ----------
    ours, theirs : Tensor of float32, shape (tokens, dimensions)
        Unit vectors of the response's and the reference's tokens.
    our_weights, their_weights : Tensor of float32, shape (tokens,)

    Returns
    -------
    Matches
        Weighted means of the cosines to the nearest token, from the response's tokens
        (precision) and from the reference's (recall), and their harmonic mean; NaN where no token
        has a weight.

    References
    ----------
    .. [1] T. Zhang et al. (2020). BERTScore: Evaluating Text Generation with BERT. ICLR, section
       3.

    Examples
    --------
    >>> import torch
    >>> axes, even = torch.eye(2), torch.ones(2)
    >>> greedy_matches(axes[:1], even[:1], axes, even)
    Matches(precision=1.0, recall=0.5, f=0.6666666666666666)
    """
    cosines = ours @ theirs.T
    precision = _weighted_mean(cosines.max(dim=1).values, our_weights)
    recall = _weighted_mean(cosines.max(dim=0).values, their_weights)
    both = precision + recall
    return Matches(precision, recall, 2 * precision * recall / both if both else 0.0)


def _weighted_mean(values: "torch.Tensor", weights: "torch.Tensor") -> float:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total else math.nan


def _known_layer(model: str) -> int:
    if model not in LAYERS:
        raise InvalidValue(
            f"layer must be given for {model}: only for {', '.join(LAYERS)} is one known",
            code="layer_missing",
        )
    return LAYERS[model]
