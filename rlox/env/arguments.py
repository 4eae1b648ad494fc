"""Checks of integers that a caller gives."""

from __future__ import annotations

import operator
import reprlib
from typing import Any

import numpy as np


def integer(argument: str, value: Any) -> int:
    """`value` as Python's int; TypeError if it is no integer. True and 2.0 are refused as well."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        found = reprlib.repr(value)
        raise TypeError(f"{argument}: is {found}, expected an integer") from None
