"""What endpoints can do, stored in a folder, so that each is probed once."""

import json
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from metrics.scorers.judges.capabilities import Capabilities, probe
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.templates import digest


def capabilities_of(client: Client, folder: Path, *, anew: bool = False) -> Capabilities:
    """What an endpoint can do with a model: as stored, or by probing it now.

    Parameters
    ----------
    client : Client
    folder : Path
        Where capabilities are stored, one file for an address and a model. Where it cannot be
        written, the endpoint is probed each time.
    anew : bool
        Probe whatever was found before.

    Returns
    -------
    Capabilities

    Raises
    ------
    EndpointError
        If it does not answer a plain chat.
    BudgetSpentError

    Examples
    --------
    >>> capabilities_of(Client(Endpoint(base_url="", model="tiny")), Path("probes"))
    Traceback (most recent call last):
    metrics.scorers.errors.EndpointRefusedError: no judge is set: set JUDGE_BASE_URL and ...
    """
    capabilities = None if anew else stored_capabilities(client.endpoint, folder)
    if capabilities is None:
        capabilities = probe(client)
        _store(capabilities, _path(client.endpoint, folder))
    return capabilities


def stored_capabilities(endpoint: Endpoint, folder: Path) -> Capabilities | None:
    """Look up what is stored of an endpoint and a model.

    Parameters
    ----------
    endpoint : Endpoint
    folder : Path

    Returns
    -------
    Capabilities or None
        None where it was never probed, or the file cannot be read.

    Examples
    --------
    >>> endpoint = Endpoint(base_url="http://127.0.0.1/v1", model="tiny")
    >>> stored_capabilities(endpoint, Path("no such folder"))
    """
    try:
        return Capabilities.from_json(_path(endpoint, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _path(endpoint: Endpoint, folder: Path) -> Path:
    address = {"base_url": endpoint.base_url.rstrip("/"), "model": endpoint.model}
    return folder / f"{digest(address)}.json"


def _store(capabilities: Capabilities, path: Path) -> None:
    """Write whole or not at all: another process may be reading."""
    draft = path.with_suffix(f".{token_hex(4)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(json.loads(capabilities.to_json()), indent=1), encoding="utf-8")
        draft.replace(path)
