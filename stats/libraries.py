"""numpy, pandas and scipy. A process that only lists what `stats` offers does not import them.

pandas and scipy take a second to import, and are imported when one of their names is first used.
numpy is imported by the first module that names it here.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
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

    def __getattr__(name: str) -> ModuleType:
        if name == "np":
            return import_module("numpy")
        raise AttributeError(name)


__all__ = ["np", "pd", "scipy"]
