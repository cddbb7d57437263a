"""On what a model runs. Not part of a signature: the numeric type changes scores, this does not."""

from error_codes import InvalidValue
from metrics.scorers.errors import model_libraries

DEVICES = ("cuda", "mps", "cpu")


def chosen_device(device: str | None = None) -> str:
    """Take the device that was asked for, or the fastest there is.

    Parameters
    ----------
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If `device` is of no kind known here, or this machine has none.

    Examples
    --------
    >>> chosen_device("cpu")
    'cpu'
    >>> chosen_device("abacus")
    Traceback (most recent call last):
    error_codes.InvalidValue: device must be one of cuda, mps, cpu, got 'abacus'
    """
    devices = available()
    if device is None:
        return devices[0]
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise InvalidValue(
            f"device must be one of {', '.join(DEVICES)}, got {device!r}", code="unknown_device"
        )
    if kind not in devices:
        raise InvalidValue(
            f"device {device!r} is not on this machine, which has {', '.join(devices)}",
            code="device_absent",
        )
    return device


def available() -> list[str]:
    """List the kinds of device this machine has, the fastest first.

    Returns
    -------
    list of str

    Examples
    --------
    >>> available()[-1]
    'cpu'
    """
    with model_libraries():
        import torch

    has = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return [kind for kind in DEVICES if has[kind]]
