"""Observation and action spaces: the form in which networks get observations, and the form in which
a file stores a space."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


def is_image(space: spaces.Space[Any]) -> bool:
    """Whether observations are images: bytes from 0 to 255 in three axes. Networks are shown
    these as floats from 0 to 1, and other bytes (one-hot vectors, boards) as they are. So does
    Stable-Baselines3."""
    if not isinstance(space, spaces.Box):
        return False
    bounds = not space.low.any() and bool((space.high == 255).all())
    return space.dtype == np.uint8 and len(space.shape) == 3 and bounds


def parts(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """The spaces that observations consist of, by key; one, without a name, unless a `Dict`."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}


def require_supported_observations(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """`space`; ValueError if it is none that the trainers take."""
    kinds = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    if not all(isinstance(part, kinds) for part in parts(space).values()):
        raise ValueError(
            f"observation space {space} is not supported: the trainers take Box, Discrete, "
            "MultiDiscrete, MultiBinary, and a Dict of these; "
            "`gymnasium.wrappers.FlattenObservation(env)` turns any other into a Box"
        )
    return space


def part_shape(space: spaces.Space[Any]) -> tuple[int, ...]:
    """Shape of one observation of a part."""
    assert space.shape is not None
    return tuple(space.shape)


def row_dtype(space: spaces.Space[Any]) -> Any:
    """The dtype of the rows that store observations: uint8 if all parts are uint8, else float32."""
    if isinstance(space, spaces.Box):
        return np.uint8 if space.dtype == np.uint8 else np.float32
    every = space.values() if isinstance(space, spaces.Dict) else [None]
    as_bytes = all(isinstance(part, spaces.Box) and part.dtype == np.uint8 for part in every)
    return np.uint8 if as_bytes else np.float32


def row_length(space: spaces.Space[Any]) -> int:
    """The length of the row of one observation: a `Discrete` takes one number, a `Dict` the sum of
    its parts."""
    return sum(int(np.prod(part_shape(part))) for part in parts(space).values())


def flatten_obs(obs: Any, space: spaces.Space[Any]) -> NDArray[Any]:
    """A batch of observations as fresh rows `[n, row_length(space)]`.

    Always a copy: a vector environment with `copy=False` writes the next step into the same array.
    """
    # In this order, since asking for a `Dict`, which is abstract, would take longer at every step.
    if isinstance(space, spaces.Box) or not isinstance(space, spaces.Dict):
        array = np.array(obs, dtype=row_dtype(space), order="C")
        return array.reshape(len(array), -1)
    dtype = row_dtype(space)
    columns = (np.asarray(obs[key], dtype=dtype) for key in space.spaces)
    return np.concatenate([column.reshape(len(column), -1) for column in columns], axis=1)


def unflattened(rows: NDArray[Any], space: spaces.Space[Any]) -> Any:
    """Rows as a batch of observations in the space's shape; of a `Dict`, by key."""
    found = [column for column, _ in of_parts(rows, space)]
    if isinstance(space, spaces.Dict):
        return dict(zip(space.spaces, found, strict=True))
    return found[0]


def of_parts(
    rows: NDArray[Any], space: spaces.Space[Any]
) -> Iterator[tuple[NDArray[Any], spaces.Space[Any]]]:
    """The numbers `[n, *part_shape(part)]` of each part of a space, and the part."""
    at = 0
    for part in parts(space).values():
        shape = part_shape(part)
        end = at + math.prod(shape)
        yield rows[:, at:end].reshape(-1, *shape), part
        at = end


def stacked(observations: Sequence[Any], space: spaces.Space[Any]) -> Any:
    """Single observations as a batch."""
    if isinstance(space, spaces.Dict):
        return {key: np.stack([one[key] for one in observations]) for key in space.spaces}
    return np.stack(observations)


def warn_of_flattening(space: spaces.Space[Any], given: str) -> None:
    """Warn where images go into fully connected networks; `given` names the arguments by which a
    trainer takes other networks."""
    if not isinstance(space, spaces.Box):
        return
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


def given_observations(obs: Any, space: spaces.Space[Any]) -> tuple[NDArray[Any], bool]:
    """`obs` as rows `[n, row_length(space)]`, and whether it was one observation alone.

    Raises ValueError for anything but an array of finite numbers of this shape that the space's
    dtype can hold.
    """
    if not isinstance(space, spaces.Dict):
        array, one = _given_part("obs", obs, space)
        return array.reshape(len(array), -1), one
    if not isinstance(obs, Mapping) or not obs.keys() >= space.spaces.keys():
        keys = ", ".join(space.spaces)
        raise ValueError(f"obs: is {_kind(obs)}; expected a dictionary with {keys}")
    found = [_given_part(f"obs[{key!r}]", obs[key], part) for key, part in space.spaces.items()]
    if len({(len(array), one) for array, one in found}) > 1:
        lengths = [len(array) for array, _ in found]
        raise ValueError(f"obs: its parts hold {lengths} observations; give each the same number")
    rows = [array.reshape(len(array), -1).astype(row_dtype(space)) for array, _ in found]
    return np.concatenate(rows, axis=1), found[0][1]


def _kind(obs: Any) -> str:
    """For a message: the type, and of a dictionary its keys."""
    of = f" with {', '.join(map(str, obs))}" if isinstance(obs, Mapping) else ""
    return f"{type(obs).__name__}{of}"


def _given_part(name: str, obs: Any, space: spaces.Space[Any]) -> tuple[NDArray[Any], bool]:
    try:
        array = np.asarray(obs)
    except ValueError as error:
        raise ValueError(f"{name}: is no array ({error})") from error
    shape = part_shape(space)
    one = array.shape == shape
    if not one and array.shape[1:] != shape:
        batch = ", ".join(map(str, ("n", *shape)))
        raise ValueError(
            f"{name}: has shape {array.shape}; one observation has {shape}, a batch ({batch})"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: has dtype {array.dtype}, expected numbers as {space.dtype}")
    dtype = np.dtype(row_dtype(space))
    with np.errstate(over="ignore", invalid="ignore"):
        rows = array.astype(dtype)
    if dtype == np.uint8:
        wrong = rows != array
        if wrong.any():
            raise ValueError(f"{name}: holds {array[wrong][0]}, expected integers from 0 to 255")
    elif not np.isfinite(rows).all():
        raise ValueError(f"{name}: holds {rows[~np.isfinite(rows)][0]}, expected finite numbers")
    elif (wrong := unlisted(rows, space)).any():
        raise ValueError(f"{name}: holds {rows[wrong][0]:g}, which is not in {space}")
    return rows[None] if one else rows, one


def unlisted(values: NDArray[Any], space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """Which of the numbers `[…, *part_shape(space)]` are none that a `Discrete` or `MultiDiscrete`
    lists. Networks would be shown zeros for each; of other spaces any number can be shown."""
    least: Any
    n: Any
    if isinstance(space, spaces.Discrete):
        least, n = space.start, space.n
    elif isinstance(space, spaces.MultiDiscrete):
        least, n = space.start, space.nvec
    else:
        return np.zeros(values.shape, np.bool_)
    return np.asarray((values < least) | (values >= least + n) | (values != np.floor(values)))


def as_saved(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space as plain values."""
    if isinstance(space, spaces.Dict):
        return {"spaces": {key: as_saved(part) for key, part in space.spaces.items()}}
    if isinstance(space, spaces.Discrete):
        return {"n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiDiscrete):
        nvec, starts = space.nvec.tolist(), space.start.tolist()
        return {"nvec": nvec, "starts": starts, "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"bits": list(space.shape)}
    assert isinstance(space, spaces.Box)
    low, high = space.low.tobytes(), space.high.tobytes()
    return {"low": low, "high": high, "shape": space.shape, "dtype": str(space.dtype)}


def from_saved(saved: Mapping[str, Any]) -> spaces.Space[Any]:
    """The space from which `as_saved` was made."""
    if "spaces" in saved:
        # Pairs keep their order; of a dictionary's keys, Gymnasium makes a sorted one.
        return spaces.Dict([(key, from_saved(part)) for key, part in saved["spaces"].items()])
    dtype = np.dtype(saved.get("dtype", "int64"))  # not in files of earlier versions
    if "nvec" in saved:
        return spaces.MultiDiscrete(saved["nvec"], start=saved["starts"], dtype=dtype.type)
    if "bits" in saved:
        bits = saved["bits"]
        return spaces.MultiBinary(bits[0] if len(bits) == 1 else bits)
    if "n" in saved:
        return spaces.Discrete(saved["n"], start=saved["start"], dtype=dtype.type)
    shape = saved["shape"]
    low, high = (np.frombuffer(saved[end], dtype).reshape(shape) for end in ("low", "high"))
    return spaces.Box(low, high, shape, dtype.type)


def are_same(one: spaces.Space[Any], other: spaces.Space[Any]) -> bool:
    """Whether two spaces have the same elements. To Gymnasium `MultiBinary(4)` and
    `MultiBinary([4])` differ."""
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict):
        return one.keys() == other.keys() and all(are_same(one[key], other[key]) for key in one)
    if isinstance(one, spaces.MultiBinary) and isinstance(other, spaces.MultiBinary):
        return one.shape == other.shape
    return bool(one == other)


def require_same_space(what: str, saved: Mapping[str, Any], space: spaces.Space[Any]) -> None:
    """ValueError if `space` differs from the one that was saved; `what` is its kind, for the
    message."""
    was = from_saved(saved)
    if not are_same(was, space):
        raise ValueError(
            f"env: its {what} space is {space}, and the model was trained with {was}; "
            "load it into an environment with the same spaces"
        )
    if [*parts(was)] != [*parts(space)]:
        raise ValueError(
            f"env: its {what} space has {', '.join(parts(space))}, and the model was trained with "
            f"them in the order {', '.join(parts(was))}; make it with "
            "gymnasium.spaces.Dict([(name, space), …]), which keeps the order"
        )
