"""The twins of this repository's cards."""

import projects
from rlox_opt.history import recording


def test_the_twins_that_cards_predict_are_named_as_asv_names_them() -> None:
    found = recording.predicted(projects.HERE)
    cell = found["pairs.Pairs.time_ten_calls('P5 sample_256 n=1000000', 'optimized')"]
    assert cell.key == ["P5", "sample_256", {"n": 1_000_000}]
    assert any("'P3 push act_dim=1,obs_dim=28224'" in name for name in found)
