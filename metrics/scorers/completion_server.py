"""Log-likelihood of a response through a server that returns the log-probabilities of a prompt.

OpenAI's completions have ``echo`` and ``logprobs`` for this; vLLM and llama-cpp-python keep them
(the latter started with ``--logits_all true``). Many servers ignore both in silence, which is
reported as an `EndpointRefusedError` and never taken for a likelihood. A text that the server
turns away (too long, say) has no likelihood, and the others go on. The server cuts prompt and
response into tokens together; a token that holds a character of the response counts for it.
"""

import math
from collections.abc import Sequence

from error_codes import CodedText
from metrics.scorers.errors import EndpointError, EndpointRefusedError, PromptRefusedError
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.readings import Token
from metrics.scorers.judges.samples import concurrently
from metrics.scorers.likelihood import Likelihood


class CompletionsServer:
    """A language model behind OpenAI's completions as a referee.

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
        """The fields of a signature; what runs behind the name is known to the server alone.

        Returns
        -------
        dict of str to object
        """
        model = self.client.endpoint.model
        return {"boundary": "joint", "through": "server", "model": model, "version": "echo"}

    def likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """The likelihood of each response after its prompt; each distinct pair is asked for once.

        Parameters
        ----------
        pairs : sequence of (str, str), length n
            Prompt and response.

        Returns
        -------
        list of Likelihood, length n

        Raises
        ------
        EndpointUnavailableError
            If the server does not answer, or not as OpenAI's completions do.
        EndpointRefusedError
            If it turns every request away, or gives no log-probabilities of the prompt.
        """
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
    following = [*offsets[1:], end]
    of_response = [
        logprob
        for start, after, logprob in zip(offsets, following, logprobs, strict=True)
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
