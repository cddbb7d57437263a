"""The grade from 0 to 100 of LMStyle, for any model, prompt and quality."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path

from error_codes import InvalidValue
from metrics.scorers.judges.client import Client, Messages
from metrics.scorers.judges.judge import EndpointJudge
from metrics.scorers.judges.readings import count_unread, read_grade, read_grade_as_released
from metrics.scorers.judges.samples import Sample, Sampling
from metrics.scorers.judges.settings import JudgeSettings
from metrics.scorers.judges.templates import (
    EXAMPLE_FIELDS,
    chat,
    check_template,
    digest,
    fill,
    needed,
)
from metrics.scorers.scorer import Example, Score, sign

SYSTEM = (
    "Given a turn of dialogue, score the appropriateness of the Response with respect to the "
    "Speaker on a scale of 0-100 in the following format, with 100 being extremely appropriate "
    "and 0 being extremely inaccurate or unreasonable. The evaluation format is as follows: \n"
    "Speaker: [] \nResponse: [] \nAppropriateness Score: []"
)
"""LMStyle's prompt as released, to the letter: a different one is a different metric."""
USER = "\nSpeaker: [$context] \nResponse: [$response] \nAppropriateness Score: "


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
        """A hash of all of them."""
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
        if isinstance(settings, str):
            settings = read_settings(settings)
        self.settings = settings
        names = check_template("user", settings.system + settings.user, EXAMPLE_FIELDS)
        self.needs = needed(names)

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
        """One reply."""
        return Sampling(temperature=self.settings.temperature, max_tokens=self.settings.max_tokens)

    def messages(self, example: Example) -> Messages:
        """Put an example into the prompt; see `EndpointJudge`."""
        return chat(fill(self.settings.system, example), fill(self.settings.user, example))

    def read(self, sample: Sample) -> Score:
        """Read the grade; see `EndpointJudge`."""
        text = sample.replies[0].text
        if self.settings.lmstyle_released:
            grade = read_grade_as_released(text)
        else:
            grade = read_grade(text, aspect=self.settings.quality)
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
