"""Observation and action spaces: what networks are shown of them, what a file keeps of them."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


def is_image(space: spaces.Box) -> bool:
    """Whether observations are images: bytes from 0 to 255 in three axes. Networks are shown
    these as floats from 0 to 1, and other bytes (one-hot vectors, boards) as they are. So does
    Stable-Baselines3."""
    bounds = not space.low.any() and bool((space.high == 255).all())
    return space.dtype == np.uint8 and len(space.shape) == 3 and bounds


def warn_of_flattening(space: spaces.Box, given: str) -> None:
    """Say so where images go into fully connected networks; `given` are the arguments by which a
    trainer takes others."""
    shape = space.shape
    if len(shape) == 3 or (len(shape) == 2 and space.dtype == np.uint8):
        n, axes = int(np.prod(shape)), ", ".join(map(str, shape))
        warnings.warn(
            f"observations of shape {shape} are flattened into {n} numbers for fully connected "
            "networks, which do not know what is beside what in an image. For convolutions give "
            f"modules of your own ({given}): they are shown [B, {n}], "
            f"and obs.view(-1, {axes}) has the images back; see rlox.learner.policies",
            stacklevel=3,
        )


def given_observations(obs: Any, space: spaces.Box) -> tuple[NDArray[Any], bool]:
    """`obs` as a new batch `[n, *space.shape]`, float32 or, if the space's are, uint8, and whether
    it was one observation alone.

    Raises ValueError for what is no array of numbers of this shape, holds what the space's type
    cannot hold, or is not finite.
    """
    try:
        array = np.asarray(obs)
    except ValueError as error:
        raise ValueError(f"obs: is no array ({error})") from error
    one = array.shape == space.shape
    if not one and array.shape[1:] != space.shape:
        batch = ", ".join(map(str, ("n", *space.shape)))
        raise ValueError(
            f"obs: has shape {array.shape}; one observation has {space.shape}, a batch ({batch})"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"obs: has dtype {array.dtype}, expected numbers as {space.dtype}")
    dtype = space.dtype if space.dtype == np.uint8 else np.dtype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = array.astype(dtype)
    if dtype == np.uint8:
        wrong = rows != array
        if wrong.any():
            raise ValueError(f"obs: holds {array[wrong][0]}, which {dtype} cannot")
    elif not np.isfinite(rows).all():
        raise ValueError(f"obs: holds {rows[~np.isfinite(rows)][0]}, expected finite numbers")
    return rows[None] if one else rows, one


def as_saved(space: spaces.Space[Any]) -> dict[str, Any]:
    """A `Box` or `Discrete` in plain values."""
    if isinstance(space, spaces.Discrete):
        return {"n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.Box)
    low, high = space.low.tobytes(), space.high.tobytes()
    return {"low": low, "high": high, "shape": space.shape, "dtype": str(space.dtype)}


def _from_saved(saved: Mapping[str, Any]) -> spaces.Space[Any]:
    if "n" in saved:
        return spaces.Discrete(saved["n"], start=saved["start"])
    shape, dtype = saved["shape"], np.dtype(saved["dtype"])
    low, high = (np.frombuffer(saved[end], dtype).reshape(shape) for end in ("low", "high"))
    return spaces.Box(low, high, shape, dtype.type)


def require_same_space(what: str, saved: Mapping[str, Any], space: spaces.Space[Any]) -> None:
    """ValueError if `space` is another than the one that was saved; `what` it is of."""
    was = _from_saved(saved)
    if was != space:
        raise ValueError(
            f"env: its {what} space is {space}, and the model was trained with {was}; "
            "load it into an environment with the same spaces"
        )
