"""What endpoints were found to do, kept in a folder, so that each is probed once."""

import json
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from metrics.scorers.judges.capabilities import Capabilities, probe
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.templates import digest


def probed(client: Client, folder: Path, *, anew: bool = False) -> Capabilities:
    """Say what an endpoint does with a model: as it was found before, or by probing it now.

    Parameters
    ----------
    client : Client
    folder : Path
        Where findings are kept, one file for an address and a model. Where it cannot be written,
        the endpoint is probed each time.
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
    >>> probed(Client(Endpoint(base_url="", model="tiny")), Path("probes"))
    Traceback (most recent call last):
    metrics.scorers.errors.EndpointRefusedError: no judge is set: set JUDGE_BASE_URL and ...
    """
    seen = None if anew else kept(client.endpoint, folder)
    if seen is None:
        seen = probe(client)
        _keep(seen, _path(client.endpoint, folder))
    return seen


def kept(endpoint: Endpoint, folder: Path) -> Capabilities | None:
    """Look up what an endpoint was found to do with a model.

    Parameters
    ----------
    endpoint : Endpoint
    folder : Path

    Returns
    -------
    Capabilities or None
        None where it was never probed, or what was found cannot be read.

    Examples
    --------
    >>> kept(Endpoint(base_url="http://127.0.0.1/v1", model="tiny"), Path("no such folder"))
    """
    try:
        return Capabilities.from_json(_path(endpoint, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _path(endpoint: Endpoint, folder: Path) -> Path:
    address = {"base_url": endpoint.base_url.rstrip("/"), "model": endpoint.model}
    return folder / f"{digest(address)}.json"


def _keep(seen: Capabilities, path: Path) -> None:
    """Write whole or not at all: another process may be reading."""
    draft = path.with_suffix(f".{token_hex(4)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(json.loads(seen.to_json()), indent=1), encoding="utf-8")
        draft.replace(path)
