"""Polygons, made one by one and many at once: shapely's own benchmark of them is called
`test_polygon_from_numpy`, so asv never runs it."""

import numpy as np
import shapely


class MakePolygons:
    """From coordinates, which are the same in every process."""

    params = (4, 100)
    param_names = ("points",)

    def setup(self, points):
        angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
        self.coords = np.column_stack([np.cos(angles), np.sin(angles)])
        self.ring = shapely.LinearRing(self.coords)

    def time_polygon_from_numpy(self, points):
        shapely.Polygon(self.coords)

    def time_polygon_from_ring(self, points):
        shapely.Polygon(self.ring)

    def time_polygons_of_one_ring(self, points):
        shapely.polygons(self.ring)


class MakeManyPolygons:
    """1000 in one call: what is done once a call hardly shows."""

    def setup(self):
        angles = np.linspace(0, 2 * np.pi, 10, endpoint=False)
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        self.coords = circle + np.arange(1000)[:, None, None]

    def time_polygons(self):
        shapely.polygons(self.coords)
