"""Links that a recruiter signed: who arrives is who it sent, to this study, a moment ago.

The token is a JSON Web Token under RS256, whose public keys the recruiter publishes. Everything
in it is checked before it is believed: the algorithm is ours and never the token's choice.
"""

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import requests
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256

from error_codes import require
from marketplace.recruiting.records import Arrival, NotVerified, Unreachable

ALGORITHM = "RS256"
PARAMETER = "prolific_token"
# A clock may be off by so much, here or there.
LEEWAY_SECONDS = 30
# Longer than a link is good for, so that a link kept from elsewhere is none.
LONGEST_LIFE_SECONDS = 600
LONGEST_TOKEN = 8_192
SHORTEST_KEY_BITS = 2_048
KEPT_SECONDS = 24 * 3600
# Made-up key ids must not make us ask again and again.
ASK_AGAIN_SECONDS = 60
MOST_BYTES = 256 * 1024
SECONDS_TO_ANSWER = 5


class Expired(NotVerified):
    """Only the link's age is wrong."""


class PublishedKeys:
    def __init__(self, url: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url, self._monotonic, self._lock = url, monotonic, threading.Lock()
        self._keys: dict[str, RSAPublicKey] = {}
        self._asked_at: float | None = None
        self._had_at: float | None = None

    def key(self, kid: str) -> RSAPublicKey:
        """Return the key of this id. Raises NotVerified if it is not published, Unreachable if
        that cannot be known now."""
        if self._must_ask(kid):
            keys = _fetch(self._url)
            with self._lock:
                self._keys, self._had_at = keys, self._monotonic()
        with self._lock:
            if kid in self._keys:
                return self._keys[kid]
            if self._had_at is None or self._had_at < (self._asked_at or 0):
                raise Unreachable("The recruiter's public keys can't be had.", code="no_keys")
            raise NotVerified(
                "The link is signed with a key that was not published.", code="unknown_key"
            )

    def _must_ask(self, kid: str) -> bool:
        with self._lock:
            now = self._monotonic()
            is_old = self._had_at is None or now - self._had_at > KEPT_SECONDS
            may_ask = self._asked_at is None or now - self._asked_at > ASK_AGAIN_SECONDS
            if may_ask and (is_old or kid not in self._keys):
                self._asked_at = now
                return True
            return False


@cache
def published_keys(url: str) -> PublishedKeys:
    return PublishedKeys(url)


def verify_signed_link(
    keys: PublishedKeys,
    study: str,
    parameters: Mapping[str, str],
    *,
    url: str,
    now: datetime,
) -> Arrival:
    """Return who arrived at `study`, whose page is `url`, by the token among the parameters. Every
    parameter that link and token both state must be the same. Raises NotVerified, its subclass
    Expired, or Unreachable if the keys cannot be fetched."""
    signed, signature, header, claims = _parts(parameters.get(PARAMETER, ""))
    require(
        header.get("alg") == ALGORITHM,
        NotVerified(f"The link's token must be signed by {ALGORITHM}.", code="other_algorithm"),
    )
    key = keys.key(str(header.get("kid", "")))
    try:
        key.verify(signature, signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        raise NotVerified(
            "The link's signature is not its recruiter's.", code="bad_signature"
        ) from None
    _check_place(claims, url)
    arrival = _arrival(claims, study, parameters)
    _check_time(claims, now)
    return arrival


def _parts(token: str) -> tuple[bytes, bytes, Mapping[str, Any], Mapping[str, Any]]:
    """What is signed, the signature, the header and the claims. Raises NotVerified."""
    require(
        token and len(token) <= LONGEST_TOKEN and token.count(".") == 2,
        NotVerified("The link has no signed token, or a damaged one.", code="damaged_token"),
    )
    signed, _dot, signature = token.rpartition(".")
    try:
        header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        parts = signed.encode("ascii"), _decoded(signature), header, claims
    except (ValueError, RecursionError):
        raise NotVerified("The link's token is damaged.", code="damaged_token") from None
    if not (isinstance(header, dict) and isinstance(claims, dict)):
        raise NotVerified("The link's token is damaged.", code="damaged_token")
    return parts


def _check_time(claims: Mapping[str, Any], now: datetime) -> None:
    start, end, present = claims.get("iat"), claims.get("exp"), now.timestamp()
    if start is None or end is None or not (_is_moment(start) and _is_moment(end)):
        raise NotVerified(
            "The link's token does not say how long it is good for.", code="missing_times"
        )
    require(
        start <= present + LEEWAY_SECONDS and 0 < end - start <= LONGEST_LIFE_SECONDS,
        NotVerified("The link's times can't be right.", code="bad_times"),
    )
    require(present <= end + LEEWAY_SECONDS, Expired("The link has expired."))


def _check_place(claims: Mapping[str, Any], url: str) -> None:
    require(
        claims.get("iss") == "https://www.prolific.com",
        NotVerified("The link's token is another issuer's.", code="other_issuer"),
    )
    audience = claims.get("aud")
    places = audience if isinstance(audience, list) else [audience]
    here = _host(url)
    require(
        here and here in {_host(place) for place in places},
        NotVerified("The link's token is for another site.", code="other_site"),
    )


def _arrival(claims: Mapping[str, Any], study: str, parameters: Mapping[str, str]) -> Arrival:
    said = claims.get("prolific")
    if not isinstance(said, dict):
        raise NotVerified("The link's token does not say who arrives.", code="missing_participant")
    facts = {name.upper(): value for name, value in said.items()}
    submission, participant = facts.get("SESSION_ID"), facts.get("PROLIFIC_PID")
    require(
        facts.get("STUDY_ID") == study,
        NotVerified("The link's token is for another study.", code="other_study"),
    )
    if not submission or submission != claims.get("sub"):
        raise NotVerified("The link's token is for another submission.", code="other_submission")
    if not isinstance(participant, str) or not participant:
        raise NotVerified("The link's token does not say who arrives.", code="missing_participant")
    for name in ("SESSION_ID", "PROLIFIC_PID", "STUDY_ID"):
        require(
            name not in parameters or parameters[name] == facts[name],
            NotVerified(f"The link's {name} is not the one that was signed.", code="changed_id"),
        )
    return Arrival(study=study, submission=submission, participant=participant)


def _fetch(url: str) -> dict[str, RSAPublicKey]:
    try:
        with requests.get(
            url, timeout=SECONDS_TO_ANSWER, allow_redirects=False, stream=True
        ) as response:
            content = next(response.iter_content(MOST_BYTES + 1), b"")
            require(
                response.status_code == 200 and len(content) <= MOST_BYTES,
                Unreachable("The recruiter's public keys can't be had.", code="no_keys"),
            )
            return {
                row["kid"]: _key(row) for row in json.loads(content)["keys"] if _is_for_signing(row)
            }
    except requests.RequestException:
        raise Unreachable("The recruiter's public keys can't be had.", code="no_keys") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreachable("The recruiter's public keys can't be read.", code="no_keys") from None


def _is_for_signing(row: Mapping[str, Any]) -> bool:
    is_used_so = row.get("use", "sig") == "sig" and row.get("alg", ALGORITHM) == ALGORITHM
    return row.get("kty") == "RSA" and isinstance(row.get("kid"), str) and is_used_so


def _key(row: Mapping[str, Any]) -> RSAPublicKey:
    numbers = (int.from_bytes(_decoded(row[name]), "big") for name in ("e", "n"))
    key = RSAPublicNumbers(*numbers).public_key()
    require(key.key_size >= SHORTEST_KEY_BITS, ValueError("the key is too short"))
    return key


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _is_moment(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _host(url: Any) -> str:
    try:
        return (urlsplit(url).hostname or "").lower() if isinstance(url, str) else ""
    except ValueError:
        return ""
