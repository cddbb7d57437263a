"""Whether a restored site works: its keys open what is stored, its ledger balances, and no entry of
the audit log was changed."""

from collections.abc import Iterator

from django.apps import apps
from django.db.models import Model

from accounts.audit import chain_faults
from accounts.models import AuditChain
from config.backups.creation import KEY_CHECK
from encryption import UndecryptableSecret, decrypt
from marketplace.money.reconciliation import audit

ENCRYPTED = "encrypted_"


def key_error(key_check: str) -> str | None:
    """Why the site's keys are not those of a backup; None where they are."""
    try:
        return None if decrypt(key_check) == KEY_CHECK else "The backup's check of keys is damaged."
    except UndecryptableSecret:
        return (
            "ENCRYPTION_KEYS has no key of the site that this backup was made of. Set the keys "
            "that were kept apart from it: without them no stored secret can be read."
        )


def site_faults() -> list[str]:
    """What is wrong with the site as it is now, in sentences."""
    chains = [
        fault for chain in AuditChain.objects.order_by("name") for fault in chain_faults(chain)
    ]
    return [*undecryptable_secrets(), *audit(), *chains]


def undecryptable_secrets() -> Iterator[str]:
    """How many secrets of each model the site's keys do not open, in sentences."""
    for model, column in encrypted_columns():
        n_closed = sum(
            not _opens(value)
            for value in model._base_manager.exclude(**{column: ""})
            .values_list(column, flat=True)
            .iterator()
        )
        if n_closed:
            label = model._meta.label
            yield f"{n_closed} secrets of {label} are opened by none of ENCRYPTION_KEYS."


def encrypted_columns() -> list[tuple[type[Model], str]]:
    """The columns whose values are encrypted as a whole, which their names say."""
    return [
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.startswith(ENCRYPTED)
    ]


def _opens(token: str) -> bool:
    try:
        decrypt(token)
    except UndecryptableSecret:
        return False
    return True
