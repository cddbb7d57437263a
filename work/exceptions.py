"""What can go wrong with background work.

WorkError
├── JobKindUnknown   no app registered a handler of that name
├── JobPostponed     what the job needs is in use; it is tried again later
├── JobStopped       a person stopped the job
├── JobWaiting       what the job waits for is under way; it goes to the end of the queue
├── LeaseLost        the job was stopped or taken over; nothing more may be written for it
├── AddressUnfit     the site cannot be served there
├── ContentMissing   an object that a row refers to is not in the site's storage
└── PartFailed       a part of the site ends as soon as it is started

WorkerStopping       the worker was asked to end: not an Exception, as no handler may catch it
"""

from error_codes import CodedError


class WorkError(CodedError):
    """Something a person can mend; its text says what and how."""


class JobKindUnknown(WorkError):
    """No app registered a handler of that name."""


class JobPostponed(WorkError):
    """What the job needs is in use; it is tried again later."""


class JobStopped(WorkError):
    def __init__(self) -> None:
        super().__init__("Stopped; what was done until then is kept.")


class JobWaiting(WorkError):
    """What the job waits for is under way; it goes to the end of the queue."""


class LeaseLost(WorkError):
    """The job was stopped or taken over; nothing more may be written for it."""


class AddressUnfit(WorkError):
    """The site cannot be served there."""


class ContentMissing(WorkError):
    """An object that a row refers to is not in the site's storage, or was changed there."""


class PartFailed(WorkError):
    """A part of the site ends as soon as it is started."""


class WorkerStopping(BaseException):
    """The worker was asked to end while it ran a job."""
