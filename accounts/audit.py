"""The audit log: what spends, decides, exports, views identities or deletes is appended here.

An entry's hash covers its content and the entry before it. A chain's end is stored apart, so
that neither a changed nor a missing entry goes unnoticed (`check_audit_log`); both are sealed, so
that a chain which was written anew is noticed as well (accounts.audit).
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import AuditChain, AuditEntry, Team, User, chain_of
from encryption import is_sealed, seal
from error_codes import CodedText

# Seals of the audit log, which nobody makes who has the database but not the ENCRYPTION_KEYS.
#
# Hashes alone show a change to whoever does not compute them anew. Every entry is sealed, and so is
# the end of its chain: entries that were cut off leave an end that was never sealed as one. Where
# that seal does not hold it is left as it is, so that nothing written later covers up what
# happened.

PURPOSE = "audit log"
CHUNK = 1000


def seal_of_entry(entry_hash: str) -> str:
    return seal(_entry(entry_hash), purpose=PURPOSE)


def seal_of_end(name: str, length: int, last_hash: str) -> str:
    return seal(_end(name, length, last_hash), purpose=PURPOSE)


def _entry(entry_hash: str) -> str:
    return json.dumps(["entry", entry_hash])


def _end(name: str, length: int, last_hash: str) -> str:
    return json.dumps(["end", name, length, last_hash])


def is_entry_sealed(entry: AuditEntry) -> bool:
    return is_sealed(_entry(entry.hash), entry.seal, purpose=PURPOSE)


def is_end_sealed(chain: AuditChain) -> bool:
    """Whether the end that was sealed last is one of ours, and still in the chain."""
    end = _end(chain.name, chain.sealed_length, _hash_at(chain, chain.sealed_length))
    return is_sealed(end, chain.seal, purpose=PURPOSE)


def _hash_at(chain: AuditChain, position: int) -> str:
    if position == chain.length:
        return chain.last_hash
    entries = AuditEntry.objects.filter(chain=chain.name, position=position)
    return entries.values_list("hash", flat=True).first() or ""


def move_seal(chain: AuditChain) -> None:
    chain.sealed_length = chain.length
    chain.seal = seal_of_end(chain.name, chain.length, chain.last_hash)


def seal_faults(chain: AuditChain) -> Iterator[CodedText]:
    """What is wrong with the seals of a chain whose hashes hold, the first fault of each kind."""
    keys = "one of the ENCRYPTION_KEYS was taken away before `reseal_audit_log`"
    for entry in AuditEntry.objects.filter(chain=chain.name).order_by("position").iterator():
        if not is_entry_sealed(entry):
            yield CodedText(
                f"Entry {entry.position} of {chain.name} was not sealed by this site: it was "
                f"written anew past it, or {keys}.",
                "unsealed_entry",
            )
            break
    if not is_end_sealed(chain):
        yield CodedText(
            f"The end of {chain.name} was not sealed by this site: entries were cut off, or "
            f"{keys}.",
            "unsealed_end",
        )
    elif chain.sealed_length != chain.length:
        yield CodedText(
            f"{chain.name} goes on after its sealed end, at entry {chain.sealed_length}: "
            "entries were written while its key was away. `reseal_audit_log` seals them.",
            "unsealed_rest",
        )


@transaction.atomic
def reseal(chain: AuditChain) -> int:
    """Seal anew, under the first key, what is sealed under any; return how many entries.

    What is not sealed stays so, and is a fault as before.
    """
    chain = AuditChain.objects.select_for_update().get(pk=chain.pk)
    changed: list[AuditEntry] = []
    n_changed = 0
    for entry in AuditEntry.objects.filter(chain=chain.name).order_by("position").iterator():
        present = seal_of_entry(entry.hash)
        if entry.seal != present and is_entry_sealed(entry):
            entry.seal = present
            changed.append(entry)
        if len(changed) == CHUNK:
            n_changed += AuditEntry.objects.bulk_update(changed, ["seal"])
            changed.clear()
    n_changed += AuditEntry.objects.bulk_update(changed, ["seal"])
    if is_end_sealed(chain):
        move_seal(chain)
        chain.save(update_fields=["seal", "sealed_length"])
    return n_changed


def name_for_good(user: User) -> str:
    """What the log, which forgets nothing, calls somebody that something was done to: whoever is in
    no team, a worker above all, may be erased, and is a number from the beginning."""
    is_known = user.is_staff or user.memberships.exists()
    return user.get_username() if is_known else f"account {user.pk}"


@transaction.atomic(savepoint=False)
def record(
    *,
    team: Team | None,
    actor: User | None,
    action: str,
    subject: str = "",
    details: dict[str, Any] | None = None,
) -> AuditEntry:
    """Append an entry, in the transaction of what it reports where there is one.

    Entries of one team wait for each other until the transaction ends: call it last. What fails
    here fails the whole transaction, so that no savepoint is needed.

    What a read-only account, which many share, does again within a day is there already: visitors
    make no log grow without end.
    """
    name = chain_of(team)
    chain, _ = AuditChain.objects.select_for_update().get_or_create(
        name=name, defaults={"seal": seal_of_end(name, 0, "")}
    )
    if actor is not None and actor.is_read_only:
        noted = AuditEntry.objects.filter(
            actor=actor, chain=name, action=action, subject=subject[:200], details=details or {}
        )
        if entry := noted.filter(at__gt=timezone.now() - timedelta(days=1)).first():
            return entry
    was_sealed = is_end_sealed(chain)
    entry = AuditEntry(
        chain=chain.name,
        position=chain.length + 1,
        at=timezone.now(),
        actor=actor,
        actor_name=actor.get_username() if actor else "",
        action=action,
        subject=subject[:200],
        details=details or {},
        previous_hash=chain.last_hash,
    )
    entry.hash = _hash(entry)
    entry.seal = seal_of_entry(entry.hash)
    entry.save(force_insert=True)
    chain.length, chain.last_hash = entry.position, entry.hash
    if was_sealed:
        move_seal(chain)
    chain.save(update_fields=["length", "last_hash", "seal", "sealed_length"])
    return entry


def chain_faults(chain: AuditChain) -> Iterator[CodedText]:
    """What is wrong with a chain, the first fault at most of each kind; nothing where it holds."""
    previous_hash, position = "", 0
    for entry in AuditEntry.objects.filter(chain=chain.name).order_by("position").iterator():
        position += 1
        if entry.position != position:
            yield CodedText(f"Entry {position} of {chain.name} is missing.", "missing_entry")
            return
        if entry.previous_hash != previous_hash or entry.hash != _hash(entry):
            yield CodedText(
                f"Entry {position} of {chain.name} was changed after it was written.",
                "changed_entry",
            )
            return
        previous_hash = entry.hash
    if (position, previous_hash) != (chain.length, chain.last_hash):
        yield CodedText(
            f"The last entries of {chain.name} are missing: {position} are there, and "
            f"{chain.length} were written.",
            "missing_end",
        )
    yield from seal_faults(chain)


def _hash(entry: AuditEntry) -> str:
    content = [
        entry.chain,
        entry.position,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.actor_name,
        entry.action,
        entry.subject,
        entry.details,
        entry.previous_hash,
    ]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
