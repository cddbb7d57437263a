"""How often each flag of an annotator hits careful ones in simulation: docs/quality.md."""

from __future__ import annotations

from types import MappingProxyType

N_CAREFUL = 16_000
"""Simulated careful annotators, by ``python -m benchmarks.quality``."""
SHARE_OF_CHECKS_FAILED = 0.02
"""Of single checks, by the same annotators."""
N_HIT: MappingProxyType[str, int] = MappingProxyType(
    {
        "failed_checks": 9,
        "straight_lines": 0,
        "too_fast": 0,
        "copied_reasons": 0,
        "machine_like": 0,
        "colluding": 0,
        "late_change": 6,
    }
)
N_ON_ONE_DEVICE: MappingProxyType[str, int] = MappingProxyType(
    {"open": 1, "country": 79, "friends": 13, "university": 100, "class": 925}
)
"""Of 1,000 simulated honest workers, by crowd: ``python -m benchmarks.shared_devices``."""
