"""The proof that an answer is of this site's own simulated crowd: its times then mean nothing.

An answer says itself that it is simulated, since nothing else comes back through any marketplace.
A worker who copies that must not escape the flags on times by it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from hits.models import Assignment


def simulation_mark(assignment_id: str, *, secret: str) -> str:
    """What the crowd adds to a simulated answer for this assignment."""
    message = f"simulated:{assignment_id}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def is_proved(mark: str, assignment: Assignment) -> bool:
    """Whether an answer's mark was made by this site for this assignment."""
    expected = simulation_mark(assignment.assignment_id, secret=settings.SECRET_KEY)
    return hmac.compare_digest(mark.encode(errors="replace"), expected.encode())
