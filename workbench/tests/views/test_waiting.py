"""Who waits for whom and what parts are worth, as sections."""

import pytest

from rlox_opt.views import waiting

FOUND = {
    "wall_s": 10.0,
    "replayed": {"recorded_s": 10.0, "replayed_s": 9.8},
    "threads": [],
    "kinds": [
        {
            "kind": "env worker", "threads": 4, "busy": 0.5, "spread": [0.4, 0.8], "kept": 0.01,
            "waiting": 0.49, "idle": 0.0,
            "waits": [
                {"on": "pipe", "what": "pipe: receive", "whom": "main", "share": 0.48},
                {"on": "gil", "what": "as seen from outside", "whom": "main: T", "share": 0.01},
                {"on": "lock", "what": "lock: a.py:7", "whom": "main", "share": 0.001},
            ],
        },
        {
            "kind": "main", "threads": 1, "busy": 1.0, "spread": [1.0, 1.0], "kept": 0.0,
            "waiting": 0.0, "idle": 0.0, "waits": [],
        },
    ],
    "work": {},
    "gains": [
        {"what": "env worker 2 alone: step", "kind": "straggler", "seconds": 8.0, "on_path": 0.7,
         "twice": 1.5, "gone": 3.0, "evened": 1.4},
        {"what": "main: log", "kind": "phase", "seconds": 3.0, "on_path": 0.0, "twice": 1.0,
         "gone": 1.0, "evened": None},
    ],
    "critical_path": {"env worker: step": 0.7, "main: learn": 0.299, "main: log": 0.001},
    "notes": ["Take care."],
}  # fmt: skip


def test_components_say_for_whom_they_wait_and_how_far_apart_equals_are() -> None:
    states, _, _ = waiting.sections(FOUND)
    (table,) = states.tables
    workers, main = table.rows
    assert workers[0] == "env worker (4)"
    assert workers[1] == ["main: pipe: receive 48.0 %", "main: T: gil as seen from outside 1.0 %"]
    assert workers[2] == "50.0 % (40.0–80.0 %)"
    assert (main[0], main[1], main[2]) == ("main", "nobody", "100.0 %")
    assert "Take care." in states.text


def test_what_is_worth_nothing_is_not_told() -> None:
    _, gains, path = waiting.sections(FOUND)
    (table,) = gains.tables
    assert [row[0] for row in table.rows] == ["env worker 2 alone: step"]
    assert table.rows[0][4:] == ("1.50×", "3.00×", "1.40×")
    assert [row[0] for row in path.tables[0].rows] == ["env worker: step", "main: learn"]
    assert waiting.worth(FOUND) == [("env worker 2 alone: step", "1.50×", "3.00×")]
    assert waiting.worth(None) == []


def test_of_one_thread_that_waits_for_nobody_no_gains_and_no_path_are_told() -> None:
    main = FOUND["kinds"][1]  # type: ignore[index]
    only = FOUND | {"kinds": [main]}
    assert waiting.sections(only) == []
    assert waiting.worth(only) == []
    waits = main | {"waits": [{"on": "pipe", "what": "pipe", "whom": "a process", "share": 0.2}]}
    for kinds in ([waits], [main | {"threads": 2}], [main, main]):
        assert len(waiting.sections(FOUND | {"kinds": kinds})) == 3


def test_where_nothing_was_replayed_only_the_waits_are_told() -> None:
    unplayed = FOUND | {"replayed": None, "gains": [], "critical_path": {}}
    assert [section.id for section in waiting.sections(unplayed)] == ["waiting"]
    assert waiting.worth(unplayed) == []


def test_a_part_that_is_all_there_is_has_no_number_of_times() -> None:
    whole = {**FOUND["gains"][0], "gone": 1000.0}  # type: ignore[index]
    ((_, _, without),) = waiting.worth(FOUND | {"gains": [whole]})
    assert without == "all of it"


@pytest.mark.parametrize("cpu", [1.3, None])
def test_what_the_processes_cost_is_said_in_a_sentence(cpu: float | None) -> None:
    side = {"train_s": 2.0, "cpu_s": 3.0, "waits": {"pipe": 0.5}}
    found = {"processes": side, "serial": side | {"train_s": 3.0}, "faster": 1.5, "cpu": cpu}
    section = waiting.cost(found)
    assert "training is 1.50× as fast as in one" in section.text[0]
    assert ("for 1.30× the CPU" in section.text[0]) is (cpu is not None)
    assert section.tables[0].rows[0] == ("in its processes", "2.00 s", "3.00 s", "pipe 500 ms")
