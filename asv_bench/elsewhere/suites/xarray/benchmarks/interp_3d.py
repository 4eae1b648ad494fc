"""One dimension of three is interpolated: xarray's own benchmarks have arrays of two."""

import numpy as np
import xarray as xr


class Interpolate:
    """Onto other points of the last dimension."""

    def setup(self):
        random = np.random.default_rng(42)
        coords = {
            "t": np.linspace(0, 1, 60),
            "r": np.linspace(0, 4, 40),
            "z": np.linspace(0, 4, 40),
        }
        self.array = xr.DataArray(random.random((60, 40, 40)), coords, ("t", "r", "z"))
        self.at = xr.DataArray(random.random(60), {"t": coords["t"]}, ("t",))

    def time_one_dimension_of_three(self):
        self.array.interp(z=self.at)
