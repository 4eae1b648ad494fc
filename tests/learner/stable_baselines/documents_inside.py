"""Imported first by each program that `documents.py` runs, to keep the program short."""

import importlib
import os
import sys
from contextlib import suppress

LIBRARY, STEPS = os.environ["DOCUMENTS_LIBRARY"], int(os.environ["DOCUMENTS_STEPS"])
PREDICTIONS = int(os.environ["DOCUMENTS_PREDICTIONS"] or sys.maxsize)


class Unwaiting:
    """pygame's clock, without the wait for the next frame."""

    def tick(self, *_):
        return 0


def shorten(trainer):
    learn, predict, calls, learning = trainer.learn, trainer.predict, [], []

    def short_learn(self, total_timesteps, *args, **kwargs):
        learning.append(self)
        try:
            return learn(self, min(int(total_timesteps), STEPS), *args, **kwargs)
        finally:
            learning.pop()

    def counted_predict(self, *args, **kwargs):
        if not learning:  # where a trainer may call its own
            calls.append(self)
        if len(calls) > PREDICTIONS:
            sys.exit(0)
        return predict(self, *args, **kwargs)

    trainer.learn, trainer.predict = short_learn, counted_predict


with suppress(ImportError):
    import pygame

    pygame.time.Clock = Unwaiting
with suppress(ImportError):
    import cv2

    cv2.imshow = cv2.waitKey = lambda *_: -1
with suppress(ImportError):
    import ale_py  # noqa: F401 - registers its environments
library = importlib.import_module(LIBRARY)
for name in ("PPO", "SAC", "A2C", "DQN", "TD3", "DDPG"):
    if hasattr(library, name):
        shorten(getattr(library, name))
