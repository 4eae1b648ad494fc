"""A peer that trains nothing, for as long as the job says."""

import json
import os
import sys
import time
from pathlib import Path

job = json.loads(sys.argv[1])
time.sleep(float(os.environ.get("RLOX_FAULTS_SLOW", "0")))
episodes = [[0.01 * n, 8 * n, 2.0] for n in range(1, 9)]
told = {"train_s": 0.1, "compile_s": 0.0, "steps": 64, "episodes": episodes}
Path(job["out"]).write_text(json.dumps(told))
