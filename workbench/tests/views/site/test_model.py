"""The history as pages need it."""

from pathlib import Path

import made_up_history
from made_up_history import Step

from rlox_opt.views.site.model import History, cost, read, slug


def test_the_recording_before_is_of_the_same_features_on_the_same_machine(history: History) -> None:
    moved = history.commits[24]  # on another machine from here on
    assert [history.before(recording) for recording in moved.recordings] == [None, None]
    for recording in history.commits[25].recordings:
        before = history.before(recording)
        assert before is not None
        assert before.entry.commit == moved.hash
        assert before.entry.features == recording.entry.features


def test_a_commit_that_is_recorded_again_counts_with_its_newest_recording(tmp_path: Path) -> None:
    for minutes in (30, 50):
        made_up_history.write(tmp_path, commits=2, minutes=minutes)
    first = History.of(read(tmp_path)).commits[0]
    assert len(first.recordings) == 2  # of each feature set
    assert {recording.entry.date.minute for recording in first.recordings} == {20}  # of 9:30


def test_steps_are_found_at_their_commits_and_told_by_their_kind(history: History) -> None:
    found = {
        (m.commit.index, m.series.benchmark, m.series.kind, m.worse, m.word) for m in history.moved
    }
    for kind, words in (("time", ("slower", "faster")), ("instructions", ("more", "fewer"))):
        assert (12, made_up_history.NAMES[1], kind, True, words[0]) in found
        assert (20, made_up_history.NAMES[3], kind, False, words[1]) in found
    assert {index for index, *_ in found} == {12, 20}


def test_fewer_steps_a_second_are_slower(tmp_path: Path) -> None:
    training = len(made_up_history.NAMES)
    made_up_history.write(tmp_path, moved_at=None, steps=[Step(training, 15, 1.2)])
    moved = [m for m in History.of(read(tmp_path)).moved if m.series.kind == "steps"]
    assert {m.series.benchmark for m in moved} == {"train.ppo", "train.sac"}
    assert all(m.worse and m.word == "slower" and m.change.ratio < 1 for m in moved)


def test_the_cost_of_a_step_is_the_inverse_of_its_speed(history: History) -> None:
    entry = history.commits[3].recordings[0].entry
    (cell,) = (cell for cell in entry.cells if cell.benchmark == "train.ppo")
    assert cell.ratio is not None
    assert cost(entry, "ppo") == 1 / cell.ratio
    assert cost(entry, "dqn") is None


def test_names_of_files_are_safe_and_differ_where_names_do() -> None:
    names = ["a.B.time_c(1, 2)", "a.B.time_c((1, 2))", "a.B.time_c(1-2)", "a.B.time_c", "../x"]
    names += [f"a.time_it('{'SELECT' * 60}{n}')" for n in (1, 2)]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert slugs[3] == "a.B.time_c"
    assert max(map(len, slugs)) < 200
    assert not any(set("/ ()'") & set(one) for one in slugs)
