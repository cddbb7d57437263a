"""What can go wrong between the marketplace and a recruiter.

The difference that matters is whether anything may have changed over there: after `Refused` and
`Unreachable` nothing has, after `Uncertain` nobody knows.
"""

from error_codes import CodedError


class RecruiterProblem(CodedError):
    """What a recruiter did not do; the text is for people and holds no secret."""

    # Seconds that were waited for what failed, where more was done than that.
    waited: float | None = None


class Refused(RecruiterProblem):
    """They read the request and said no: nothing has changed over there."""

    def __init__(self, message: str, *, status: int = 0, remote_code: str = "") -> None:
        super().__init__(message)
        # The HTTP status and the error code of the recruiter.
        self.status, self.remote_code = status, remote_code


class NotAuthorized(Refused):
    """The token is wrong, or has no right to this."""


class NotFound(Refused):
    """There is no such thing over there, or the token may not see it."""


class Unreachable(RecruiterProblem):
    """The request never left, or was turned away unread: repeat it later without fear."""

    def __init__(self, message: str, *, retry_after: float | None = None, code: str = "") -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Uncertain(RecruiterProblem):
    """The request left and no answer says what became of it: look before repeating."""


class Unreadable(RecruiterProblem):
    """They answered what is none of their words: nothing is done by it."""


class NotVerified(RecruiterProblem):
    """An arrival or an event that its recruiter did not send."""
