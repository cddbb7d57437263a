"""Worked examples of inference: inputs, expected values, tolerances, and how they were computed.

Each file names its source under "how": the upstream program and its version, or by hand.
"""

import json
from pathlib import Path
from typing import Any


def worked_example(number: int) -> dict[str, Any]:
    """The example of that number: name, question, inputs, expected, tolerance, how, notes."""
    [path] = Path(__file__).parent.glob(f"{number:02d}-*.json")
    example: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return example
