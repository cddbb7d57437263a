"""Names for annotators that a study may show and export."""

import hashlib
import hmac

from annotation.models import Study


def pseudonym(study: Study, identity: str) -> str:
    """The same person is the same annotator throughout a study, and nobody across studies."""
    digest = hmac.new(study.pseudonym_salt.encode(), identity.encode(), hashlib.sha256)
    return f"A{digest.hexdigest()[:10]}"
