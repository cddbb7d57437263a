"""Texts as padded batches of token ids, for the encoders of transformers."""

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from metrics.scorers.errors import TruncatedTextWarning

if TYPE_CHECKING:
    import torch

NO_LIMIT = 1_000_000  # what a tokeniser says that does not know how much its model reads
POSITIONS_TAKEN = 2  # RoBERTa's positions begin after the padding's


def token_limit(tokenizer: Any, config: Any) -> int | None:
    """How many tokens a model reads, special ones included.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    config : PretrainedConfig

    Returns
    -------
    int or None
        What the tokeniser says, or else what the model's positions allow; None for any number.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> unlimited = SimpleNamespace(model_max_length=10**30)
    >>> token_limit(unlimited, SimpleNamespace(max_position_embeddings=514))
    512
    """
    if tokenizer.model_max_length < NO_LIMIT:
        return int(tokenizer.model_max_length)
    positions = getattr(config, "max_position_embeddings", None)
    return positions - POSITIONS_TAKEN if positions else None


def token_ids(
    tokenizer: Any, texts: Sequence[str], limit: int | None, model: str
) -> list[list[int]]:
    """Cut texts into tokens, special ones included, and cut off what the model does not read.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    texts : sequence of str, length n
    limit : int or None
        As from `token_limit`.
    model : str
        Its name, for the `TruncatedTextWarning`.

    Returns
    -------
    list of list of int, length n

    Examples
    --------
    >>> class Letters:
    ...     def __call__(self, texts, **options):
    ...         return {"input_ids": [[ord(letter) for letter in text] for text in texts]}
    >>> token_ids(Letters(), ["a", "ab"], None, "letters")
    [[97], [97, 98]]
    """
    if not texts:
        return []
    untruncated = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
    long = [row for row, ids in enumerate(untruncated) if limit is not None and len(ids) > limit]
    if not long:
        return list(untruncated)
    warnings.warn(
        TruncatedTextWarning(
            f"{len(long)} of {len(texts)} texts are longer than the {limit} tokens which {model}"
            " reads; their ends do not count",
            n_texts=len(long),
            n_all=len(texts),
        ),
        stacklevel=2,
    )
    cut = tokenizer([texts[row] for row in long], truncation=True, max_length=limit)["input_ids"]
    replaced = dict(zip(long, cut, strict=True))
    return [replaced.get(row, ids) for row, ids in enumerate(untruncated)]


def like_lengths(rows: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Divide rows into batches of like length, the longest first.

    Parameters
    ----------
    rows : sequence of sequences, length n
    size : int
        The most rows of a batch.

    Yields
    ------
    list of int
        Indices into `rows`; each occurs once.

    Examples
    --------
    >>> list(like_lengths([[1], [1, 2, 3], [1, 2]], size=2))
    [[1, 2], [0]]
    """
    order = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def padded(
    rows: Sequence[Sequence[int]], padding: int, device: str
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Fill rows up on the right.

    Parameters
    ----------
    rows : sequence of sequences of int, length n
    padding : int
        The id to fill up with.
    device : str

    Returns
    -------
    ids, mask : Tensor of int64, shape (n, longest)
        The mask is 1 where there is a token.

    Examples
    --------
    >>> ids, mask = padded([[5], [6, 7]], 0, "cpu")
    >>> ids.tolist(), mask.tolist()
    ([[5, 0], [6, 7]], [[1, 0], [1, 1]])
    """
    import torch

    ids = torch.full((len(rows), max(map(len, rows))), padding, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        mask[row, : len(tokens)] = 1
    return ids.to(device), mask.to(device)
