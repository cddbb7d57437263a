"""Negative log-likelihood of a response under a causal language model: appropriateness.

The LMStyle Benchmark says the prompt without the style that was asked for; the program it
released has the style in it. Both are templates here. What the program does is kept apart from
that: prompt and response are cut into tokens apart, without special tokens; the response keeps
its leading space, which most tokenisers count; an empty response scores 0, and counts as a loss
of 100 nats in a system's mean; and a system's figure is 100 over the mean loss, not the mean of
its responses' scores (`system_score`).
"""

import math
import os
import re
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from error_codes import CodedText, InvalidValue
from metrics.scorers.checkpoints import Checkpoint
from metrics.scorers.errors import EndpointError, EndpointRefusedError, PromptRefusedError
from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_one_of,
    sign,
    undefined,
)
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint, api_key_from
from metrics.scorers.judges.readings import Token
from metrics.scorers.judges.samples import concurrently
from metrics.scorers.likelihood import CausalModel, Likelihood, Referee


class CompletionsServer:
    """A language model behind OpenAI's completions as a referee.

    The server must return the log-probabilities of a prompt: OpenAI's completions have ``echo`` and
    ``logprobs`` for this, and so have vLLM and, started with ``--logits_all true``,
    llama-cpp-python.
    Many servers ignore both without an error, which is an `EndpointRefusedError` here and never
    taken for a likelihood. A text that the server refuses (too long, say) has no likelihood, and
    the others go on. The server cuts prompt and response into tokens together; a token that holds
    a character of the response counts for it.

    Parameters
    ----------
    client : Client
        Which knows the address, the model and the key, and how hard the server may be pressed.

    References
    ----------
    .. [1] OpenAI API reference, "Create completion": ``echo``, ``logprobs``, ``text_offset``.

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> client = Client(Endpoint(base_url="http://localhost:8000/v1", model="bloom"))
    >>> CompletionsServer(client).signed()["model"]
    'bloom'
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def signed(self) -> dict[str, object]:
        model = self.client.endpoint.model
        return {"boundary": "joint", "through": "server", "model": model, "version": "echo"}

    def likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        distinct = list(dict.fromkeys(pairs))
        likelihoods = concurrently(self._likelihood, distinct, self.client.limits.concurrency)
        by_pair = dict(zip(distinct, likelihoods, strict=True))
        return [by_pair[pair] for pair in pairs]

    def _likelihood(self, pair: tuple[str, str]) -> Likelihood:
        prompt, response = pair
        try:
            tokens = self._tokens(prompt + response)
        except PromptRefusedError as error:
            return Likelihood(float("nan"), 0, str(error))
        offsets = [token.offset for token in tokens if token.offset is not None]
        if len(offsets) < len(tokens):
            raise EndpointRefusedError(
                "the endpoint gives no offsets of its tokens", code="no_offsets"
            )
        logprobs = [None if math.isnan(token.logprob) else token.logprob for token in tokens]
        return response_likelihood(offsets, logprobs, len(prompt), len(prompt) + len(response))

    def _tokens(self, text: str) -> Sequence[Token]:
        """Ask for one token more, since some servers refuse none; it is left out by its offset."""
        answer = self.client.complete(text, max_tokens=1, echo=True, logprobs=1, temperature=0.0)
        reply = answer.replies[0]
        if not reply.tokens or not reply.text.startswith(text):
            raise EndpointRefusedError(
                "the endpoint does not return the log-probabilities of the prompt: it ignores echo"
                " or logprobs. vLLM returns them, and llama-cpp-python with --logits_all true",
                code="no_echo",
            )
        return reply.tokens


def response_likelihood(
    offsets: Sequence[int], logprobs: Sequence[float | None], begin: int, end: int
) -> Likelihood:
    """Sum what a server says of the tokens of the response.

    Parameters
    ----------
    offsets : sequence of int, length n
        Where each token starts, in characters of the text.
    logprobs : sequence of float or None, length n
        Of each token; a server has none for the first.
    begin, end : int
        Where the response begins, and where it ends; what comes after was generated.

    Returns
    -------
    Likelihood

    Raises
    ------
    EndpointError
        If the two do not correspond.

    Examples
    --------
    >>> response_likelihood([0, 4, 7, 9], [None, -1.0, -2.0, -9.0], begin=5, end=9)
    Likelihood(nats=3.0, n_tokens=2, problem=None)
    """
    if len(offsets) != len(logprobs):
        raise EndpointError(f"{len(logprobs)} log-probabilities for {len(offsets)} tokens")
    of_response = [
        logprob
        for start, after, logprob in zip(offsets, [*offsets[1:], end], logprobs, strict=True)
        if start < end and (start >= begin or after > begin)
    ]
    if not of_response:
        return Likelihood(float("nan"), 0, "the server gives no token of the response")
    nats = [-logprob for logprob in of_response if logprob is not None]
    if len(nats) < len(of_response):
        return Likelihood(
            float("nan"),
            0,
            CodedText("a token of the response has no log-probability", code="no_logprob"),
        )
    return Likelihood(sum(nats), len(nats))


VERSION = 1
TEMPLATES = {
    "lmstyle-paper": "###Speaker: {context} ###Response:",
    "lmstyle-code": "###Speaker: {context} ###{condition} Response:",
    "context": "{context}\n",
}
LEADS = ("verbatim", "space")
EMPTIES = ("lmstyle", "undefined")
EMPTY_NATS = 100.0
_FIELD = re.compile(r"\{(\w*)\}")
_FIELDS = ("context", "condition")


def system_score(nats: Sequence[float]) -> float:
    """100 over the mean loss of a system's responses, as the LMStyle Benchmark reports it.

    Parameters
    ----------
    nats : sequence of float, length n
        The output ``nll`` of each response.

    Returns
    -------
    float
        NaN where there is no response, or one of them has no likelihood.

    References
    ----------
    .. [1] J. Chen (2024). LMStyle Benchmark: Evaluating Text Style Transfer for Chatbots.
       arXiv:2403.08943, and the program released with it.

    Examples
    --------
    >>> system_score([2.0, 3.0])
    40.0
    """
    total = math.fsum(nats)
    return 100 * len(nats) / total if total > 0 else math.nan


class Nll(Scorer):
    """Mean negative log-likelihood of the response's tokens, and 100 over it.

    ``nll`` is in nats per token, lower is better; ``nll_score`` is 100 / ``nll``, the figure of
    the LMStyle Benchmark, higher is better.

    Parameters
    ----------
    model : str or Path
        The language model: a folder, or a name on the Hugging Face hub; with `endpoint`, the
        name the server knows it by. The LMStyle Benchmark's is the default, of 14 GB.
    template : str
        ``"lmstyle-paper"``, ``"lmstyle-code"``, ``"context"``, or a text with ``{context}`` or
        ``{condition}`` in it, which the response follows.
    lead : {"verbatim", "space"}
        Whether the response is taken as it is, or stripped and given one leading space.
    empty : {"lmstyle", "undefined"}
        Whether an empty response has 100 nats and score 0, or neither.
    boundary : {"separate", "joint"}
        Whether prompt and response are cut into tokens apart or together; a server can only do
        the latter.
    bos : bool
        Whether the token for the beginning of a text comes before the prompt.
    window : int, optional
        How many tokens the model may read; by default what its settings say, if they do.
    overflow : {"slide", "undefined"}
        Whether a longer text is read in overlapping windows, or has no likelihood.
    dtype : {"float32", "bfloat16", "float16"}
    padding : {"right", "left"}
    device : str, optional
    download : bool
        Whether a named model may be fetched over the network.
    cache_folder : str, optional
    endpoint : str, optional
        The base URL of a server that speaks OpenAI's completions and returns the
        log-probabilities of the prompt, such as ``http://localhost:8000/v1``. The parameters
        from `bos` to `cache_folder` are then the server's affair.
    api_key_variable : str
        The environment variable that holds the key for the endpoint, if it wants one.

    Raises
    ------
    ValueError
        If a parameter is none of its choices, or a template names no field or an unknown one.
    ModelUnavailableError
        On first use, if the model cannot be found or loaded.
    EndpointError
        On first use, if the server does not answer or gives no log-probabilities.

    References
    ----------
    .. [1] J. Chen (2024). LMStyle Benchmark: Evaluating Text Style Transfer for Chatbots.
       arXiv:2403.08943, and the program released with it.

    Examples
    --------
    >>> sorted(Nll(template="lmstyle-code").needs)
    ['condition', 'context']
    """

    name = "nll"
    outputs = ("nll", "nll_score")
    lower_is_better = frozenset({"nll"})
    batch_size = 128

    def __init__(
        self,
        *,
        model: str | Path = "bigscience/bloom-7b1",
        template: str = "lmstyle-paper",
        lead: str = "verbatim",
        empty: str = "lmstyle",
        boundary: str | None = None,
        bos: bool = False,
        window: int | None = None,
        overflow: str = "slide",
        dtype: str = "float32",
        padding: str = "right",
        device: str | None = None,
        download: bool = False,
        cache_folder: str | None = None,
        endpoint: str | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        require_one_of(lead=(lead, LEADS), empty=(empty, EMPTIES))
        self.template, self.lead, self.empty = template, lead, empty
        self.needs = _fields(TEMPLATES.get(template, template))
        self._referee: Referee
        if endpoint is not None:
            if boundary == "separate":
                raise InvalidValue(
                    "boundary must be 'joint' with an endpoint, which cuts the tokens",
                    code="boundary_not_joint",
                )
            self._referee = _server(endpoint, str(model), api_key_variable)
        else:
            self._referee = CausalModel(
                Checkpoint(model, download, cache_folder),
                boundary=boundary or "separate",
                bos=bos,
                window=window,
                overflow=overflow,
                dtype=dtype,
                padding=padding,
                device=device,
            )

    @cached_property
    def signature(self) -> str:
        fields = self._referee.signed()
        version = f"{VERSION}-{fields.pop('version')}"
        digest = f"sha256-{sha256(self.template.encode()).hexdigest()[:16]}"
        return sign(
            "nll",
            template=self.template if self.template in TEMPLATES else digest,
            lead=self.lead,
            empty=self.empty,
            **fields,
            version=version,
        )

    def prompt(self, example: Example) -> str:
        """The text that the response is to follow.

        Parameters
        ----------
        example : Example

        Returns
        -------
        str

        Examples
        --------
        >>> Nll().prompt(Example(item="1", system="a", response=" Hi.", context="Hello."))
        '###Speaker: Hello. ###Response:'
        """
        text = TEMPLATES.get(self.template, self.template)
        return _FIELD.sub(lambda field: getattr(example, field[1]) or "", text)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        responses = [self._response(example) for example in examples]
        prompts = [self.prompt(example) for example in examples]
        nonempty = [pair for pair in zip(prompts, responses, strict=True) if pair[1]]
        likelihoods = iter(self._referee.likelihoods(nonempty))
        return [self._scores(next(likelihoods)) if text else self._of_empty() for text in responses]

    def _response(self, example: Example) -> str:
        stripped = example.response.strip()
        if self.lead == "space":
            return f" {stripped}" if stripped else ""
        return example.response if stripped else ""

    def _of_empty(self) -> Scores:
        if self.empty == "undefined":
            return dict.fromkeys(self.outputs, undefined(CodedText("empty response", code="empty")))
        return {"nll": Score(EMPTY_NATS), "nll_score": Score(0.0)}

    def _scores(self, likelihood: Likelihood) -> Scores:
        if likelihood.problem:
            return dict.fromkeys(self.outputs, undefined(likelihood.problem))
        nats = likelihood.nats / likelihood.n_tokens
        sure = undefined("the model was certain of every token")
        return {"nll": Score(nats), "nll_score": Score(100 / nats) if nats > 0 else sure}


def _server(endpoint: str, model: str, api_key_variable: str) -> CompletionsServer:
    if not endpoint.startswith(("http://", "https://")):
        raise InvalidValue(
            f"endpoint must begin with http:// or https://, got {endpoint!r}",
            code="endpoint_scheme",
        )
    key = api_key_from(os.environ, api_key_variable)
    return CompletionsServer(Client(Endpoint(base_url=endpoint, model=model, api_key=key)))


def _fields(template: str) -> frozenset[str]:
    """What a template needs; its own words apart, it must name something to answer."""
    fields = frozenset(_FIELD.findall(template))
    if not fields or not fields <= set(_FIELDS):
        raise InvalidValue(
            f"template must be one of {', '.join(TEMPLATES)}, or a text with {{context}} or"
            f" {{condition}} and no other field, got {template!r}",
            code="unknown_template",
        )
    return fields
