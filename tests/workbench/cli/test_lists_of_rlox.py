"""The lists and records of this repository are whole."""

import projects
from rlox_opt.history import ledger
from rlox_opt.plan.features import features
from rlox_opt.plan.testing import planted
from rlox_opt.project import calibration
from rlox_opt.race import environments as racing
from rlox_opt.race.primitives import cases
from rlox_opt.views.site import trust as trust_page


def test_what_is_in_the_tree_is_read() -> None:
    assert racing.load(projects.HERE, "ppo")[1]
    assert cases.load(projects.HERE)[0]
    assert planted.load(projects.ROOT / projects.HERE.settings.twins.planted)
    assert features(projects.HERE).known()
    assert ledger.lines(projects.HERE)
    assert trust_page.trust(trust_page.read(projects.HERE.records))
    assert calibration.smallest(projects.HERE.records)
