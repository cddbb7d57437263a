"""How often workers who did nothing wrong look as if they shared a device.

``python -m benchmarks.shared_devices`` draws studies of honest workers, each with a device and a
network of their own, and prints for each kind of crowd how many of them `same device` would name.
A device is known by its network's address and by what its browser says of itself (system, browser,
version, language); two people are taken for one where both agree. Every number of the model is
in `CROWDS` and below, and is an assumption: nobody publishes how workers share networks.
The source's revision is printed first. Takes twenty seconds.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.commands import parse_options, source

# What browsers say of themselves, by their shares. Chrome on Android names no model and Safari no
# version of a device, so that most telephones say one of few things.
DESKTOP = (0.34, 0.14, 0.12, 0.09, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01, 0.01)
PHONE = (0.35, 0.25, 0.12, 0.1, 0.08, 0.05, 0.05)
# The crowd's commonest language that browsers ask for, and the others.
LANGUAGES = (0.8, 0.1, 0.05, 0.03, 0.02)
# A mobile network, in which many subscribers share an address, gives another each time.
SESSIONS = 3
MANY_ADDRESSES = 50_000


@dataclass(frozen=True)
class Crowd:
    """Who works at a study: shares of workers by where they are, and how many are so together."""

    key: str
    name: str
    n_workers: int
    on_phones: float
    households: float  # of workers who live with another worker of the study, two and two
    in_labs: float  # of workers who sit in rooms with one address
    room: int  # workers of the study in one such room
    managed: float  # of a room's machines that are of one image, and say the same
    on_mobile_networks: float  # of phones
    n_mobile_addresses: int  # addresses of the networks that these workers use


CROWDS = (
    Crowd(
        "open", "open marketplace, 1,000 workers", 1000, 0.3, 0.01, 0.0, 1, 0.0, 0.3, MANY_ADDRESSES
    ),
    Crowd("country", "a small country, 300", 300, 0.6, 0.02, 0.0, 1, 0.0, 0.6, 500),
    Crowd("friends", "friends and families, 100", 100, 0.4, 0.2, 0.0, 1, 0.0, 0.3, MANY_ADDRESSES),
    Crowd("university", "a university's own, 60", 60, 0.3, 0.03, 0.3, 6, 0.2, 0.3, 5_000),
    Crowd("class", "a class in a computer room, 30", 30, 0.0, 0.0, 1.0, 30, 0.9, 0.0, 5_000),
)


def devices(crowd: Crowd, rng: np.random.Generator) -> np.ndarray:
    """Network, browser and worker of each session, one row a session."""
    n = crowd.n_workers
    is_phone = rng.random(n) < crowd.on_phones
    browser = np.where(is_phone, 100 + _drawn(PHONE, n, rng), _drawn(DESKTOP, n, rng)) * 10
    browser += _drawn(LANGUAGES, n, rng)
    network = np.arange(n)  # an address of one's own
    order = rng.permutation(n)
    n_in_labs, n_at_home = round(crowd.in_labs * n), 2 * round(crowd.households * n / 2)
    labs, homes = order[:n_in_labs], order[n_in_labs : n_in_labs + n_at_home]
    network[labs] = n + np.arange(len(labs)) // crowd.room
    is_managed = rng.random(len(labs)) < crowd.managed
    browser[labs[is_managed]] = -1 - network[labs[is_managed]]
    network[homes] = 2 * n + np.arange(len(homes)) // 2
    rest = order[n_in_labs + n_at_home :]
    mobile = rest[is_phone[rest] & (rng.random(len(rest)) < crowd.on_mobile_networks)]
    sessions = []
    for _session in range(SESSIONS):
        network[mobile] = 3 * n + rng.integers(0, crowd.n_mobile_addresses, len(mobile))
        sessions.append(np.column_stack((network, browser, np.arange(n))))
    return np.concatenate(sessions)


def _drawn(shares: tuple[float, ...], n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(shares), n, p=np.array(shares) / sum(shares))


def n_named(rows: np.ndarray) -> int:
    rows = np.unique(rows, axis=0)
    _each, inverse, counts = np.unique(
        rows[:, :-1], axis=0, return_inverse=True, return_counts=True
    )
    return len(np.unique(rows[counts[inverse.ravel()] > 1, -1]))


def named_shares(n_seeds: int, first: int = 0) -> dict[str, tuple[float, float]]:
    shares = {}
    for crowd in CROWDS:
        drawn = [devices(crowd, np.random.default_rng(first + n)) for n in range(n_seeds)]
        by_device, by_network = (
            sum(n_named(rows[:, columns]) for rows in drawn) for columns in ([0, 1, 2], [0, 2])
        )
        n = n_seeds * crowd.n_workers
        shares[crowd.key] = by_device / n, by_network / n
    return shares


def table(n_seeds: int, first: int = 0) -> Iterator[str]:
    yield "| crowd | as on one device | as in one network |\n|---|---|---|\n"
    shares = named_shares(n_seeds, first)
    for crowd in CROWDS:
        by_device, by_network = shares[crowd.key]
        yield f"| {crowd.name} | {by_device:.4f} | {by_network:.4f} |\n"


def main() -> None:
    options = parse_options(__doc__, seeds=(1000, "studies"), first=(0, "the first seed"))
    sys.stdout.write(f"source {source()}, {options.seeds:,} seeds from {options.first}\n\n")
    sys.stdout.writelines(table(options.seeds, options.first))
    # An even birthday bound, for SHA-256.
    chance = 10**6 * (10**6 - 1) / 2 / 2.0**256
    sys.stdout.write(f"\nTwo of a million devices with one hash: {chance:.1e}.\n")


if __name__ == "__main__":
    main()
