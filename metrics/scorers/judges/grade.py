"""Judges behind an endpoint, and the grade from 0 to 100 of LMStyle."""

import re
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from error_codes import CodedText, InvalidValue
from metrics.scorers.errors import (
    EndpointRefusedError,
    PromptRefusedError,
    RepeatedSamplesWarning,
)
from metrics.scorers.interface import Example, Score, Scorer, Scores, sign, undefined
from metrics.scorers.judges.budget import Estimate, Usage
from metrics.scorers.judges.capabilities import Capabilities
from metrics.scorers.judges.client import Client, Messages, client_from, most_usage
from metrics.scorers.judges.readings import count_unread, read_grade_as_released, read_rating
from metrics.scorers.judges.samples import Sample, Sampler, Sampling, concurrently
from metrics.scorers.judges.settings import (
    EXAMPLE_FIELDS,
    NEEDED_FIELDS,
    JudgeSettings,
    chat,
    check_template,
    digest,
    fill,
)

# LMStyle's prompt as released, to the letter: a different one is a different metric.
SYSTEM = (
    "Given a turn of dialogue, score the appropriateness of the Response with respect to the "
    "Speaker on a scale of 0-100 in the following format, with 100 being extremely appropriate "
    "and 0 being extremely inaccurate or unreasonable. The evaluation format is as follows: \n"
    "Speaker: [] \nResponse: [] \nAppropriateness Score: []"
)
USER = "\nSpeaker: [$context] \nResponse: [$response] \nAppropriateness Score: "


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
                RepeatedSamplesWarning(
                    f"{finding}{self.sampling.n} samples may be one reply {self.sampling.n} times"
                ),
                stacklevel=2,
            )
        self.capabilities = capabilities
        self.expect_several_replies(capabilities.several_replies)

    def expect_several_replies(self, honours_n: bool) -> None:
        self._sampler.honours_n = honours_n

    def fit_batches(self) -> None:
        """Make batches small enough for the cap on requests: one is begun only as a whole."""
        budget = self.client.budget
        if budget.max_requests is not None:
            n_requests = budget.max_requests - budget.requests
            self.batch_size = max(1, min(self.batch_size, n_requests // self._calls))

    def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
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
        return 1 if self._sampler.honours_n else self.sampling.n

    def _judged(self, example: Example) -> Scores:
        try:
            sample = self._sampler.sample(self.messages(example), self.sampling)
        except PromptRefusedError as error:
            return {self.name: undefined(CodedText(str(error), code="prompt_refused"))}
        return {self.name: self.read(sample)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeSettings(JudgeSettings):
    """A version of the judge, for a study to keep.

    Attributes
    ----------
    system, user : str
        Templates, which may use ``$context``, ``$response``, ``$reference``, ``$condition`` and
        ``$dialogue``.
    temperature : float
    max_tokens : int
    lmstyle_released : bool
        Read replies as LMStyle's released script does: a reply without a number counts 50.
        Only for replication.

    Raises
    ------
    ValueError
        If a template is malformed or a number is out of range.

    Examples
    --------
    >>> GradeSettings.from_json(GradeSettings(temperature=0.0).to_json()).temperature
    0.0
    """

    system: str = SYSTEM
    user: str = USER
    temperature: float = 0.6
    max_tokens: int = 64
    lmstyle_released: bool = False

    def __post_init__(self) -> None:
        for name in ("system", "user"):
            check_template(name, getattr(self, name), EXAMPLE_FIELDS)
        Sampling(temperature=self.temperature, max_tokens=self.max_tokens)

    @property
    def quality(self) -> str:
        """What is graded, as the last line of the prompt names it; "" if it does not.

        Examples
        --------
        >>> GradeSettings().quality
        'Appropriateness'
        """
        last = self.user.rstrip().rpartition("\n")[2]
        named = re.fullmatch(r"([^:$\d]{1,60}?)(?:\s+(?:score|rating|grade))?\s*:", last, re.I)
        return named.group(1).strip(" *_-") if named else ""

    @property
    def fingerprint(self) -> str:
        return digest(asdict(self))


class Grade(EndpointJudge):
    """A grade from 0 to 100 by a language model.

    Parameters
    ----------
    settings : GradeSettings or str
        Or the path of a JSON file that holds them; by default LMStyle's prompt.
    client : Client, optional
        Without one the judge describes itself, and refuses to score.

    References
    ----------
    .. [1] J. Chen (2024). LMStyle Benchmark: Evaluating Text Style Transfer for Chatbots.
       arXiv:2403.08943.

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> Grade(client=Client(Endpoint(base_url="", model="tiny"))).signature
    'judge|model:tiny|scale:0-100|temperature:0.6|max_tokens:64|settings:...|reading:...|version:2'
    """

    name = "judge"
    outputs = ("judge",)
    settings: GradeSettings

    def __init__(self, settings: GradeSettings | str = "", *, client: Client | None = None) -> None:
        super().__init__(client)
        self.settings = read_settings(settings) if isinstance(settings, str) else settings
        texts = self.settings.system + self.settings.user
        self.needs = check_template("user", texts, EXAMPLE_FIELDS) & NEEDED_FIELDS

    @property
    def signature(self) -> str:
        settings = self.settings
        return sign(
            self.name,
            model=self.client.endpoint.model,
            scale="0-100",
            temperature=f"{settings.temperature:g}",
            max_tokens=settings.max_tokens,
            settings=settings.fingerprint,
            reading="lmstyle_released" if settings.lmstyle_released else "labelled",
            version=1 if settings.lmstyle_released else 2,
        )

    @property
    def sampling(self) -> Sampling:
        return Sampling(temperature=self.settings.temperature, max_tokens=self.settings.max_tokens)

    def messages(self, example: Example) -> Messages:
        return chat(fill(self.settings.system, example), fill(self.settings.user, example))

    def read(self, sample: Sample) -> Score:
        text = sample.replies[0].text
        if self.settings.lmstyle_released:
            grade = read_grade_as_released(text)
        else:
            grade = read_rating(text, self.settings.quality)
        return Score(grade.value, grade.reason, sample.record(unread=count_unread([grade])))


def read_settings(path: str) -> GradeSettings:
    """Read the settings in a file.

    Parameters
    ----------
    path : str
        Of a JSON file; ``""`` is LMStyle's prompt.

    Returns
    -------
    GradeSettings

    Raises
    ------
    ValueError
        If there is no such file, or it is not of that form.

    Examples
    --------
    >>> read_settings("").temperature
    0.6
    """
    if not path:
        return GradeSettings()
    if not Path(path).is_file():
        raise InvalidValue(
            f"settings must be the path of a JSON file, got {path!r}", code="unknown_settings"
        )
    return GradeSettings.from_file(path)
