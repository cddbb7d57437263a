"""G-Eval: a form filled in many times, or once with its probabilities, and the mean of that."""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from error_codes import CodedText, InvalidValue
from metrics.scorers.judges.client import Client, Messages
from metrics.scorers.judges.distributions import Distribution, from_samples, from_tokens
from metrics.scorers.judges.geval_settings import FORM_FIELDS, GEvalSettings
from metrics.scorers.judges.judge import EndpointJudge
from metrics.scorers.judges.presets import PRESETS
from metrics.scorers.judges.readings import (
    Reading,
    count_unread,
    read_rating,
    read_rating_as_released,
)
from metrics.scorers.judges.samples import Sample, Sampling
from metrics.scorers.judges.templates import chat, check_template, fill, needed
from metrics.scorers.scorer import Example, Score, sign


class GEval(EndpointJudge):
    """The probability-weighted rating of one aspect by a language model.

    Parameters
    ----------
    settings : GEvalSettings or str
        Or the name of a preset (coherence, naturalness, engagingness, groundedness, dialogue),
        or the path of a JSON file.
    client : Client, optional
        Without one the judge describes itself, and refuses to score.
    honours_n : bool
        Whether the endpoint gives several replies at a time, as `probe` found.

    References
    ----------
    .. [1] Y. Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment.
       EMNLP, 2511-2522.

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> GEval("groundedness", client=Client(Endpoint(base_url="", model="tiny"))).signature
    'geval|model:tiny|aspect:Groundedness|scale:0-1|unit:response|distribution:samples|n:20|...'
    """

    name = "geval"
    outputs = ("geval",)
    settings: GEvalSettings

    def __init__(
        self,
        settings: GEvalSettings | str = "coherence",
        *,
        client: Client | None = None,
        honours_n: bool = True,
    ) -> None:
        super().__init__(client, honours_n=honours_n)
        self.settings = read_settings(settings) if isinstance(settings, str) else settings
        self.needs = needed(check_template("form", self.settings.form_in_use, FORM_FIELDS))

    @property
    def signature(self) -> str:
        settings = self.settings
        by_logprobs = settings.distribution == "logprobs"
        drawn = {"top_logprobs": settings.top_logprobs} if by_logprobs else {"n": settings.n}
        optional = {"top_p": settings.top_p, "seed": settings.seed}
        return sign(
            self.name,
            model=self.client.endpoint.model,
            aspect=settings.aspect,
            scale=f"{settings.low}-{settings.high}",
            unit=settings.unit,
            distribution=settings.distribution,
            **drawn,
            temperature=f"{settings.temperature:g}",
            **{name: value for name, value in optional.items() if value is not None},
            max_tokens=settings.max_tokens,
            settings=settings.fingerprint,
            least_mass=f"{settings.least_mass:g}",
            reading="released" if settings.released else "labelled",
            version=1 if settings.released else 2,
        )

    @cached_property
    def sampling(self) -> Sampling:
        """How replies are drawn, as the settings say."""
        return self.settings.sampling

    def messages(self, example: Example) -> Messages:
        """Fill in the form; see `EndpointJudge`."""
        return chat("", fill(self.settings.form_in_use, example, **self.settings.texts))

    def read(self, sample: Sample) -> Score:
        """Weight the levels by their probabilities; see `EndpointJudge`."""
        readings = [self._reading(reply.text) for reply in sample.replies]
        weighted = self._distribution(sample, readings)
        unread = count_unread(readings)
        raw = sample.record(
            probabilities={f"{level:g}": share for level, share in weighted.probabilities.items()},
            mass=weighted.mass,
            unread=unread,
        )
        if not weighted.weights:
            codes = ", ".join(f"{code}: {n}" for code, n in unread.items())
            problem = f"no rating in {_counted(len(sample.replies))}"
            problem += f" ({codes})" if codes else ""
            return Score(math.nan, CodedText(problem, code="no_rating"), raw)
        if weighted.mass < self.settings.least_mass:
            problem = f"the scale holds {weighted.mass:.3g} of the distribution, under "
            problem += f"{self.settings.least_mass:g}"
            return Score(math.nan, CodedText(problem, code="too_little_mass"), raw)
        return Score(weighted.expectation, None, raw)

    def _distribution(self, sample: Sample, readings: Sequence[Reading]) -> Distribution:
        settings = self.settings
        if settings.distribution == "logprobs":
            levels = range(settings.low, settings.high + 1)
            return from_tokens(sample.replies[0].tokens, levels, settings.aspect)
        return from_samples([reading.value for reading in readings])

    def _reading(self, text: str) -> Reading:
        settings = self.settings
        if settings.released:
            return read_rating_as_released(text)
        return read_rating(text, settings.aspect, settings.low, settings.high)


def read_settings(name: str) -> GEvalSettings:
    """Read the settings of that name.

    Parameters
    ----------
    name : str
        A preset, or the path of a JSON file.

    Returns
    -------
    GEvalSettings

    Raises
    ------
    ValueError
        If there is neither, or the file is not of that form.

    Examples
    --------
    >>> read_settings("groundedness").high
    1
    """
    if name in PRESETS:
        return PRESETS[name]
    if Path(name).is_file():
        return GEvalSettings.from_file(name)
    raise InvalidValue(
        f"settings must be one of {', '.join(PRESETS)}, or the path of a JSON file, got {name!r}",
        code="unknown_settings",
    )


def _counted(n: int) -> str:
    return "the reply" if n == 1 else f"any of {n} replies"
