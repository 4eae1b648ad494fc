"""A process that trains with one build of the extension: `python -m` cannot be used, since the
build must be in place before `rlox` is imported. `python training_worker.py EXTENSION JOB`.

The job is JSON: `algo`, `env_id`, `settings` of the trainer, `steps`, `warmup` (steps of a first,
untimed training), `repeats`, `threads`. Prints JSON: `seconds` of each training without those of
compiling, `features` and `profile` of the build, and a `digest` of the trained parameters, which
must not depend on it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

# Where the package lies, in place of this folder.
sys.path[0] = str(Path(__file__).resolve().parents[1])


def main(extension: str, job_text: str) -> None:
    """Train as the job says."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = ExtensionFileLoader("rlox._core", extension)
    spec = spec_from_loader("rlox._core", loader)
    assert spec is not None
    core = module_from_spec(spec)
    loader.exec_module(core)
    sys.modules["rlox._core"] = core

    import torch

    import rlox

    job = json.loads(job_text)
    torch.set_num_threads(job["threads"])
    algorithm = {"ppo": rlox.PPO, "sac": rlox.SAC}[job["algo"]]

    def train(steps: int) -> tuple[float, str]:
        trainer = algorithm(job["env_id"], seed=0, threads=job["threads"], **job["settings"])
        start = time.perf_counter()
        trainer.learn(steps, progress_bar=False)
        seconds = time.perf_counter() - start
        seconds -= sum(report.seconds for report in trainer.compilations)
        digest = hashlib.sha256()
        for parameter in trainer.policy.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        trainer.env.close()
        return seconds, digest.hexdigest()

    train(job["warmup"])
    trained = [train(job["steps"]) for _ in range(job["repeats"])]
    build = core.build_info()
    answer = {
        "seconds": [seconds for seconds, _ in trained],
        "digest": trained[0][1],
        "features": build["features"],
        "profile": build["profile"],
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
