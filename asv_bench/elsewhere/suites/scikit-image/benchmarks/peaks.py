"""Peaks of noise: scikit-image's own benchmark has few, far apart."""

import numpy as np
from skimage.feature import peak_local_max


class ManyPeaks:
    """Some thousand in an image."""

    def setup(self):
        self.image = np.random.default_rng(1).random((150, 150))

    def time_peak_local_max(self):
        peak_local_max(self.image, min_distance=1)
