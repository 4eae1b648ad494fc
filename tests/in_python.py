"""Acrobot and MountainCarContinuous under ids that are not built in, so that Python steps them."""

from dataclasses import replace

import gymnasium

ACROBOT = "InPython/Acrobot-v1"
CAR = "InPython/MountainCarContinuous-v0"

for _id in (ACROBOT, CAR):
    gymnasium.registry[_id] = replace(gymnasium.spec(_id.partition("/")[2]), id=_id)
