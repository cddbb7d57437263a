"""A team's connections to language models: where they are, and the key, which is encrypted."""

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from encryption import UndecryptableSecret, decrypt, encrypt, reencrypt
from metrics.exceptions import ParameterRefused
from metrics.models import JudgeConnection
from metrics.scorers.judges.endpoint import Endpoint, api_key_from
from work.addresses import checked_addresses


@transaction.atomic
def connect_judge(
    *, team: Team, name: str, base_url: str, api_key: str, length_field: str, actor: User
) -> JudgeConnection:
    connection = JudgeConnection(
        team=team,
        name=name.strip(),
        base_url=base_url.strip(),
        length_field=length_field,
        created_by=actor,
    )
    try:
        Endpoint(base_url=connection.base_url, model="")
        key = api_key_from({"key": api_key}, "key")
        connection.encrypted_key = encrypt(key) if key else ""
        connection.full_clean(validate_constraints=False)
        with transaction.atomic():
            connection.save(force_insert=True)
    except ValidationError as error:
        raise ParameterRefused(" ".join(error.messages)) from error
    except ValueError as error:
        raise ParameterRefused(f"{error}.") from error
    except IntegrityError as error:
        raise ParameterRefused(
            _("This team has a connection named “{name}” already.").format(name=connection.name)
        ) from error
    _record("judge_connection.create", connection, actor)
    return connection


@transaction.atomic
def close_judge_connection(*, connection: JudgeConnection, actor: User) -> None:
    rows = JudgeConnection.objects.filter(pk=connection.pk, closed_at=None)
    if rows.update(closed_at=timezone.now(), encrypted_key=""):
        _record("judge_connection.close", connection, actor)


def endpoint_variables(connection: JudgeConnection, model: str) -> dict[str, str]:
    """The `JUDGE_...` variables of a connection that may be called now, or ParameterRefused."""
    if connection.closed_at is not None:
        raise ParameterRefused(_("The connection “{name}” is closed.").format(name=connection.name))
    addresses = outside_addresses(connection.base_url)
    try:
        key = decrypt(connection.encrypted_key) if connection.encrypted_key else ""
    except UndecryptableSecret as error:
        raise ParameterRefused(str(error)) from error
    return {
        "JUDGE_BASE_URL": connection.base_url,
        "JUDGE_MODEL": model,
        "JUDGE_API_KEY": key,
        "JUDGE_LENGTH_FIELD": connection.length_field,
        "JUDGE_ADDRESSES": " ".join(addresses),
    }


def outside_addresses(base_url: str) -> list[str]:
    """Where to connect to for as long as the run lasts; none where any address will do.

    Refuses those inside the site's own network, which a team has no business to call. A name's
    owner may let it lead elsewhere a moment later, so whoever asks connects to these.
    """
    host = urlsplit(base_url).hostname or ""
    try:
        addresses = checked_addresses(host)
    except OSError as error:
        raise ParameterRefused(
            _("There is nothing at “{host}”: {error}.").format(host=host, error=error)
        ) from error
    if addresses is None:
        raise ParameterRefused(
            _("“{host}” is an address inside this site's own network.").format(host=host)
        )
    return addresses


@transaction.atomic
def reencrypt_judge_connections() -> int:
    n_changed = 0
    rows = JudgeConnection.objects.exclude(encrypted_key="").select_for_update(of=("self",))
    for connection in rows:
        stored = reencrypt(connection.encrypted_key)
        if stored != connection.encrypted_key:
            same = JudgeConnection.objects.filter(pk=connection.pk)
            n_changed += same.update(encrypted_key=stored)
    return n_changed


def _record(action: str, connection: JudgeConnection, actor: User) -> None:
    record(
        team=connection.team,
        actor=actor,
        action=action,
        subject=connection.name,
        details={"address": connection.base_url},
    )
