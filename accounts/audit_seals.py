"""Seals of the audit log, which nobody makes who has the database but not the ENCRYPTION_KEYS.

Hashes alone show a change to whoever does not compute them anew. Every entry is sealed, and so is
the end of its chain: entries that were cut off leave an end that was never sealed as one. Where
that seal does not hold it is left as it is, so that nothing written later covers up what happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.db import transaction

from accounts.models import AuditChain, AuditEntry
from encryption import is_sealed, seal
from error_codes import CodedText

PURPOSE = "audit log"
CHUNK = 1000


def seal_of_entry(entry_hash: str) -> str:
    """The seal of an entry; its hash covers all else of it, and the entries before."""
    return seal(_entry(entry_hash), purpose=PURPOSE)


def seal_of_end(name: str, length: int, last_hash: str) -> str:
    """The seal of a chain that ends there."""
    return seal(_end(name, length, last_hash), purpose=PURPOSE)


def _entry(entry_hash: str) -> str:
    return json.dumps(["entry", entry_hash])


def _end(name: str, length: int, last_hash: str) -> str:
    return json.dumps(["end", name, length, last_hash])


def is_entry_sealed(entry: AuditEntry) -> bool:
    return is_sealed(_entry(entry.hash), entry.seal, purpose=PURPOSE)


def is_end_sealed(chain: AuditChain) -> bool:
    """Whether the end that was sealed last is one of ours, and still in the chain."""
    last_hash = _hash_at(chain, chain.sealed_length)
    end = _end(chain.name, chain.sealed_length, last_hash)
    return is_sealed(end, chain.seal, purpose=PURPOSE)


def _hash_at(chain: AuditChain, position: int) -> str:
    if position == chain.length:
        return chain.last_hash
    entries = AuditEntry.objects.filter(chain=chain.name, position=position)
    return entries.values_list("hash", flat=True).first() or ""


def move_seal(chain: AuditChain) -> None:
    """Seal the present end of a chain, which the caller stores."""
    chain.sealed_length = chain.length
    chain.seal = seal_of_end(chain.name, chain.length, chain.last_hash)


def seal_faults(chain: AuditChain) -> Iterator[CodedText]:
    """What is wrong with the seals of a chain whose hashes hold, the first fault of each kind."""
    keys = "one of the ENCRYPTION_KEYS was taken away before `reseal_audit_log`"
    for entry in AuditEntry.objects.filter(chain=chain.name).order_by("position").iterator():
        if not is_entry_sealed(entry):
            text = (
                f"Entry {entry.position} of {chain.name} was not sealed by this site: it was "
                f"written anew past it, or {keys}."
            )
            yield CodedText(text, "unsealed_entry")
            break
    if not is_end_sealed(chain):
        text = (
            f"The end of {chain.name} was not sealed by this site: entries were cut off, or {keys}."
        )
        yield CodedText(text, "unsealed_end")
    elif chain.sealed_length != chain.length:
        text = (
            f"{chain.name} goes on after its sealed end, at entry {chain.sealed_length}: entries "
            "were written while its key was away. `reseal_audit_log` seals them."
        )
        yield CodedText(text, "unsealed_rest")


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
