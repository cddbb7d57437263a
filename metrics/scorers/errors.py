"""What can go wrong while scoring.

    ScorerError
        ModelUnavailableError   the model is neither here nor allowed to be fetched
        ModelChangedError       the weights are not the ones that were asked for
        EndpointError           a model behind an address did not do its work
            EndpointUnavailableError  it does not answer, not in time, or not intelligibly
                TransientError            one request failed, and may not if it is sent again
                    UnansweredError       no answer came, or none that can be read
            EndpointRefusedError      it turns every request away: the key, the model, an ability
            PromptRefusedError        it turns away this text (too long, say); others may pass
        NoScoreError            not one of the texts that were needed has a score
        BudgetSpentError        the cap on requests or on money is reached
    ScoringWarning              (a UserWarning) the score is defined but may mislead
        UntokenisedTextWarning  the tokeniser drops most of a text, so it scores near 0
        TruncatedTextWarning    the model reads only the beginning of a text
        RepeatedSamplesWarning  the endpoint does not draw at random, so n samples may be one

A caller's mistake (an unknown name, a parameter out of range) is a ValueError.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from error_codes import CodedError


class ScorerError(CodedError):
    """Something a person can mend; its text says what and how."""


class ModelUnavailableError(ScorerError):
    """The model is neither on this machine nor allowed to be fetched."""


class ModelChangedError(ScorerError):
    """The weights on disk are not the ones that were asked for."""


class EndpointError(ScorerError):
    """A model behind an address did not do its work."""


class EndpointUnavailableError(EndpointError):
    """The endpoint does not answer, not in time, or not intelligibly; later it may."""


class TransientError(EndpointUnavailableError):
    """One request failed; `wait_seconds` is when the endpoint wants it again, if it says so."""

    def __init__(self, message: str, wait_seconds: float | None = None, *, code: str = "") -> None:
        super().__init__(message, code=code)
        self.wait_seconds = wait_seconds


class UnansweredError(TransientError):
    """No answer came, or none that can be read: what the request used is unknown."""


class EndpointRefusedError(EndpointError):
    """The endpoint turns every such request away: the key, the model, or an ability it lacks."""


class PromptRefusedError(EndpointError):
    """The endpoint turns away this text, and may take another."""


class NoScoreError(ScorerError, ValueError):
    """Not one of the texts that were needed has a score."""


class BudgetSpentError(ScorerError):
    """The cap on requests or on money is reached; what was scored before stands."""


class ScoringWarning(UserWarning):
    """The score is defined as the metric defines it, but may mislead: `n_texts` of `n_all` texts
    (or pairs of texts) that were scored. `code` is stored with the scores."""

    code = "misleading"

    def __init__(self, message: str, *, n_texts: int = 0, n_all: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.n_texts, self.n_all = n_texts, n_all
        self.code = code or self.code


class UntokenisedTextWarning(ScoringWarning):
    """The tokeniser drops most of the letters of a text."""

    code = "untokenised"


class TruncatedTextWarning(ScoringWarning):
    """The model reads only the beginning of a text, or (`windows`) reads it in parts."""

    code = "truncated"


class RepeatedSamplesWarning(ScoringWarning):
    """The endpoint does not draw its replies at random."""

    code = "repeated_samples"


@contextmanager
def model_libraries() -> Iterator[None]:
    """Say what to install if a library that runs models is missing.

    Raises
    ------
    ModelUnavailableError
        If an import within fails.

    Examples
    --------
    >>> with model_libraries():
    ...     import no_such_library
    Traceback (most recent call last):
    metrics.scorers.errors.ModelUnavailableError: No module named 'no_such_library'. ...
    """
    try:
        yield
    except ImportError as error:
        raise ModelUnavailableError(
            f"{error}. This metric needs libraries that run models. Install them: "
            "pip install -r requirements-models.txt",
            code="models_not_installed",
        ) from error
