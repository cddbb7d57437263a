"""The operations there are. A new one is a function with this decorator and a
row in marketplace.api.inputs."""

from collections.abc import Callable
from typing import Any

from marketplace.models import Requester

Parameters = dict[str, Any]
Operation = Callable[[Requester, Parameters], dict[str, Any]]
OPERATIONS: dict[str, Operation] = {}


def operation(name: str) -> Callable[[Operation], Operation]:
    """Offer a function as the operation of this name."""

    def register(function: Operation) -> Operation:
        if name in OPERATIONS:
            raise ValueError(f"name {name} is registered twice")
        OPERATIONS[name] = function
        return function

    return register
