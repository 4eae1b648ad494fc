"""What is recorded of this repository."""

import projects
from rlox_opt.history import recording


def test_the_twins_that_cards_predict_are_named_as_asv_names_them() -> None:
    found = recording.predicted(projects.HERE)
    cell = found["pairs.Pairs.time_ten_calls('P5 sample_256 n=1000000', 'optimized')"]
    assert cell.key == ["P5", "sample_256", {"n": 1_000_000}]
    assert any("'P3 push act_dim=1,obs_dim=28224'" in name for name in found)


def test_unasked_training_is_told_by_its_profiles() -> None:
    assert not projects.HERE.recorded.search("trainers.Ppo.time_update")
    assert projects.HERE.recorded.search("train.ppo")
    assert projects.HERE.recorded.search("data_plane.Gae.time_gae(128)")
