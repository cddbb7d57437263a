"""Prolific: its API as a recruiter of the marketplace."""

from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.prolific.transport import Transport

__all__ = ["Prolific", "Transport"]
