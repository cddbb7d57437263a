"""What the scorers that ask an endpoint have in common."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence

from error_codes import CodedText
from metrics.scorers.errors import (
    EndpointRefusedError,
    PromptRefusedError,
    RepeatedSamplesWarning,
)
from metrics.scorers.judges.budget import Estimate, Usage
from metrics.scorers.judges.capabilities import Capabilities
from metrics.scorers.judges.client import Client, Messages, client_from, most_usage
from metrics.scorers.judges.samples import Sample, Sampler, Sampling, concurrently
from metrics.scorers.judges.settings import JudgeSettings
from metrics.scorers.scorer import Example, Score, Scorer, Scores, undefined


class EndpointJudge(Scorer):
    """A scorer that asks a language model about each example.

    A batch is begun only if it fits into the budget as a whole, and its examples are asked about
    in threads. A text that the endpoint refuses, or a reply that cannot be read, is NaN with the
    reason; whatever stops the endpoint stops the run, and what was scored before stands.

    Every score carries, as ``raw``, a line of JSON: the replies verbatim, and how they were
    obtained.

    Parameters
    ----------
    client : Client, optional
        Without one the judge describes itself, and refuses to score.
    honours_n : bool
        Whether the endpoint gives several replies at a time, as `probe` found; where that turns
        out untrue, single requests make up for it.

    Attributes
    ----------
    settings : JudgeSettings
    capabilities : Capabilities or None
        What the endpoint was found to do, once `learn` was called.
    """

    batch_size = 8
    settings: JudgeSettings

    def __init__(self, client: Client | None = None, *, honours_n: bool = True) -> None:
        self.client = client or client_from({})
        self.batch_size = max(self.batch_size, self.client.limits.concurrency)
        self.capabilities: Capabilities | None = None
        self._sampler = Sampler(self.client, honours_n=honours_n)

    @property
    @abstractmethod
    def sampling(self) -> Sampling:
        """How replies are drawn."""

    @abstractmethod
    def messages(self, example: Example) -> Messages:
        """Put an example into the prompt."""

    @abstractmethod
    def read(self, sample: Sample) -> Score:
        """Make a score of the replies."""

    @property
    def is_probed_first(self) -> bool:
        """Whether what the endpoint can do decides how many requests a score takes."""
        return self.sampling.n > 1 or self.sampling.top_logprobs is not None

    def learn(self, capabilities: Capabilities) -> None:
        """Go by what the endpoint was found to do.

        Parameters
        ----------
        capabilities : Capabilities

        Warns
        -----
        RepeatedSamplesWarning
            If several samples are to be drawn, and it does not draw at random.

        Raises
        ------
        EndpointRefusedError
            If log-probabilities are to be asked for, and it gives none.
        """
        if self.sampling.top_logprobs and not capabilities.top_logprobs:
            raise EndpointRefusedError(
                "the endpoint was found to give no log-probabilities; set distribution to "
                "samples, or probe it anew if that has changed",
                code="no_logprobs",
            )
        if self.sampling.n > 1 and not capabilities.samples_differ:
            finding = "the endpoint was found to reply the same twice at temperature 1: "
            warnings.warn(
                f"{finding}{self.sampling.n} samples may be one reply {self.sampling.n} times",
                RepeatedSamplesWarning,
                stacklevel=2,
            )
        self.capabilities = capabilities
        self.expect_several_replies(capabilities.several_replies)

    def expect_several_replies(self, honours_n: bool) -> None:
        """Count on several replies to a request, or on one.

        Parameters
        ----------
        honours_n : bool
        """
        self._sampler.honours_n = honours_n

    def fit_batches(self) -> None:
        """Make batches small enough for the cap on requests: one is begun only as a whole."""
        budget = self.client.budget
        if budget.max_requests is not None:
            n_requests = budget.max_requests - budget.requests
            self.batch_size = max(1, min(self.batch_size, n_requests // self._calls))

    def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
        """Ask about each example; see `Scorer.measure`."""
        expected = self.estimate(examples)
        usage = Usage(expected.prompt_tokens, expected.completion_tokens)
        self.client.budget.begin(expected.requests, usage)
        return concurrently(self._judged, examples, self.client.limits.concurrency)

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate what scoring would take, before anything is sent.

        Parameters
        ----------
        examples : sequence of Example, length n

        Returns
        -------
        Estimate
            With one request for each reply where the endpoint does not honour ``n``, and then
            the prompt counted for each. Examples that lack what `needs` names take none.
        """
        calls = self._calls
        replies = self.sampling.n if self._sampler.honours_n else 1
        each = [
            most_usage(self.messages(example), replies, self.sampling.max_tokens)
            for example in examples
            if not self._missing(example)
        ]
        usage = Usage(
            calls * sum(one.prompt_tokens for one in each),
            calls * sum(one.completion_tokens for one in each),
        )
        return Estimate(calls * len(each), *usage, self.client.budget.prices.usd(usage))

    @property
    def _calls(self) -> int:
        """How many requests an example takes."""
        return 1 if self._sampler.honours_n else self.sampling.n

    def _judged(self, example: Example) -> Scores:
        try:
            sample = self._sampler.sample(self.messages(example), self.sampling)
        except PromptRefusedError as error:
            return {self.name: undefined(CodedText(str(error), code="prompt_refused"))}
        return {self.name: self.read(sample)}
