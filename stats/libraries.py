"""pandas and scipy, which take a second to import, imported when one of their names is first used.

A process that only lists what `stats` offers, or computes with numpy alone, does not pay for them.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import scipy
else:

    class _LazyModule(ModuleType):
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    pd = _LazyModule("pandas")
    scipy = _LazyModule("scipy")

__all__ = ["pd", "scipy"]
