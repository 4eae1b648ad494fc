"""What a profile run leaves behind: `report.json`, a page, Markdown, a trace, folded stacks.

The report is a plain dictionary, so that it is also the file. Its keys, beside those every run has
(`schema algo env_id total_timesteps n_envs seed commit dirty features machine versions sps init_s
train_s wall_s mean_return`), may be missing in a run that was cut short; a section whose data is
missing says so:

- `date`: ISO 8601. `settings`: the run's other options (`collector`, `prioritized`, `n_steps`, …).
- `incomplete`: sentences on what is missing and why; `warnings`: on what makes the figures
  doubtful. Both are shown first.
- `phases`: [{`name` "outer/inner", `seconds` (inner ones included), `share` of training, `calls`}].
- `layers`: [{`name`, `seconds`, `share`, `ci95`}] of the training thread, from tool `layer_source`.
- `tools`: {name: {`slowdown`, `samples`, `errors`, `layers`; where it did not run: `reason`,
  `remedy`}}.
- `micro`: [{`group`, `name`, `us`, and `share` where the group is a breakdown}].
- `crossings`: [{`name`, `kind`, `per_iteration`, `bytes`, `us`}]; an iteration is
  `crossings_per` ("rollout", "step").
- `bottlenecks`, `cards`: as `rlox.profiling.bottlenecks` makes them.
"""

from rlox.report.files import write

__all__ = ["write"]
