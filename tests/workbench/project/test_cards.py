"""The cards: all there, and held to their schema."""

import re
from pathlib import Path

import projects
import pytest
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.sampling.layers import LAYERS
from rlox_opt.system.files import NotReadError

ROOT = projects.ROOT
CARDS = cards.load(projects.HERE)
WRITTEN = re.sub(
    # As it was before it was measured.
    r'^finding = """.*?"""\n|^record = "[^\n]*\n|^status = "\w+',
    lambda found: 'status = "candidate' if found[0].startswith("status") else "",
    (projects.HERE.cards / "p02_flat_observations.toml").read_text(encoding="utf-8"),
    flags=re.MULTILINE | re.DOTALL,
)


def by_id(id_: str) -> Card:
    return next(card for card in CARDS if card.id == id_)


def test_every_planned_optimisation_has_a_card() -> None:
    """The plan's, P1 to P13 and R1 to R11, and whatever came after them without a gap."""
    for letter, planned in (("P", 13), ("R", 11)):
        numbers = [int(card.id[1:]) for card in CARDS if card.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= planned


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_a_card_is_complete_and_its_file_is_named_after_it(card: Card) -> None:
    files = list(projects.HERE.cards.glob(f"{card.id[0].lower()}{int(card.id[1:]):02d}_*.toml"))
    assert len(files) == 1
    assert card.feature == f"opt-{card.id.lower()}"
    assert card.claim.strip()
    assert card.title
    assert card.sizes or card.seam.kind == "build"
    assert card.spot or card.note, "a card without a spot says why it has none"


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_an_address_lies_where_its_kind_of_seam_does(card: Card) -> None:
    folders = {
        "build": ("Cargo.toml",),
        "python": ("rlox/learner/", "rlox/env/"),
        "setting": ("rlox/learner/",),
    }
    assert card.seam.address.startswith(folders.get(card.seam.kind, ("crates/rlox-",)))
    # Modules may be a file or a folder of twins.
    address = ROOT / card.seam.address
    assert address.exists() or address.with_suffix("").is_dir(), card.seam.address


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_spots_name_layers_and_phases_that_exist(card: Card) -> None:
    rollout = {"env_step", "policy_forward", "store", "gae_compute", "native_rollout"}
    tops = rollout | {"gradient_update", "wait_rollout"}
    for spot in card.spot:
        assert set(spot.layers) <= set(LAYERS)
        assert {phase.split("/")[0] for phase in spot.phases} <= tops
        assert set(spot.algos) <= {"ppo", "sac"}


def test_cards_off_every_trainers_path_have_no_spot() -> None:
    assert not by_id("P8").spot
    assert not by_id("P9").spot


def test_compiling_claims_the_update_alone() -> None:
    """What acting takes, and waiting for it, is none of what R2 and R3 could remove."""
    for id_ in ("R2", "R3"):
        assert {phase for spot in by_id(id_).spot for phase in spot.phases} == {"gradient_update"}


@pytest.mark.parametrize(
    ("id_", "algo", "settings", "applies"),
    [
        ("P1", "ppo", {"collector": "async"}, True),
        ("P1", "ppo", {"collector": "sync"}, False),
        ("P13", "ppo", {"collector": "async"}, True),
        ("P5", "sac", {"prioritized": True}, True),
        ("P5", "sac", {"prioritized": False}, False),
        ("P5", "ppo", {"prioritized": True}, False),
        ("P12", "sac", {}, True),
        ("P3", "sac", {}, False),
    ],
)
def test_a_spot_lies_only_on_runs_that_reach_it(
    id_: str, algo: str, settings: dict[str, object], applies: bool
) -> None:
    assert any(spot.applies(algo, settings) for spot in by_id(id_).spot) is applies


def test_a_spot_holds_samples_by_phase_layer_and_frame() -> None:
    spot = cards.Spot(("ppo",), phases=("env_step",), layers=("rust",), frames=("alloc", "free"))
    inner, outer = "malloc", "step_all"
    assert spot.holds("env_step", "rust", [outer, inner])
    assert spot.holds("env_step/python_env", "rust", [inner])
    assert not spot.holds("env_step", "rust", [outer])
    assert not spot.holds("env_step", "python", [inner])
    assert not spot.holds("env_stepper", "rust", [inner])
    assert cards.Spot(("ppo",)).holds("", "idle", [])
    # What a function is generic over is not what it calls.
    assert not spot.holds("env_step", "rust", ["with<alloc::vec::Vec<f32>>"])
    assert spot.holds("env_step", "rust", ["<Vec<T> as alloc::Own>::f"])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('status = "candidate"', 'status = "candidat"', "`status`"),
        ('id = "P2"', 'id = "X2"', "`id`"),
        ('id = "P2"', 'id = "P2"\ncolour = "red"', "unknown key `colour`"),
        ('kind = "type"', 'kind = "type"\nfile = "a"', "unknown key `seam.file`"),
        ('phases = ["env_step"]', 'phase = ["env_step"]', "unknown key `spot[0].phase`"),
        ('phases = ["env_step"]', 'phases = "env_step"', "`spot[0].phases`"),
        ('phases = ["env_step"]', "phases = [1]", "`spot[0].phases[0]` is 1"),
        ("'mmap'", "'(mmap'", "`spot[0].frames`"),
        ('layer = "rust"', "", "the key `layer` is missing"),
        (
            "needs = []",
            'needs = []\nrecord = "/tmp/p2.json"',
            "P2 has record '/tmp/p2.json'; it lies under ",
        ),
        ("[[spot]]", "[spot]", "not TOML"),
        ("needs = []", "needs = []\ntolerance = nan", "`tolerance` is nan; it takes"),
        ("ratio = [", "ratio = [9e9, ", "`prediction.ratio` is"),
        (
            '[seam]\nkind = "type"',
            'kind = "type"',
            "unknown key `prediction.kind`; it may be one of workload, size, ratio, why",
        ),
    ],
)
def test_a_broken_card_is_an_error_that_names_file_and_key(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in WRITTEN
    path = tmp_path / "p02.toml"
    path.write_text(WRITTEN.replace(old, new), encoding="utf-8")
    with pytest.raises(NotReadError) as caught:
        cards.load(projects.of(tmp_path, cards="."))
    assert told in str(caught.value)
    assert "p02.toml" in str(caught.value) or "P2 has record" in told


def test_two_cards_of_one_id_and_a_need_without_a_card_are_errors(tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(WRITTEN, encoding="utf-8")
    with pytest.raises(NotReadError, match="share an `id`"):
        cards.load(projects.of(tmp_path, cards="."))
    (tmp_path / "b.toml").write_text(
        WRITTEN.replace('id = "P2"', 'id = "P3"').replace("needs = []", 'needs = ["P12"]'),
        encoding="utf-8",
    )
    with pytest.raises(NotReadError, match="P3 needs 'P12'"):
        cards.load(projects.of(tmp_path, cards="."))


def test_a_folder_without_cards_has_none(tmp_path: Path) -> None:
    assert cards.load(projects.of(tmp_path)) == []
