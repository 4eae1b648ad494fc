import pytest

from rlox_opt.system.output import cells, folded, number_of, unbroken

LONG = "benchmark_classes.GraphBenchmark.time_add_edges_from('DiGraph')"
PATH = "optimizations/record/amd-epyc-2c/2026-11-23T004604Z_r3.json"


@pytest.mark.parametrize(
    ("line", "width", "lines"),
    [
        (LONG, 80, [LONG]),
        (LONG, 45, ["benchmark_classes.GraphBenchmark.", "  time_add_edges_from('DiGraph')"]),
        (
            LONG,
            29,
            ["benchmark_classes.", "  GraphBenchmark.", "  time_add_edges_from", "  ('DiGraph')"],
        ),
        ("a.time_x(0.25, (1, 22), 'b')", 20, ["a.time_x(0.25, (1,", "  22), 'b')"]),
        ("time_one_two_three_four_five", 20, ["time_one_two_three_", "  four_five"]),
        ("x" * 30, 20, ["x" * 30]),
        ("  a sentence that goes on", 15, ["  a sentence", "    that goes", "    on"]),
        ("suite   all of its files", 16, ["suite   all of", "        its", "        files"]),
        (f"it is in {PATH}, there", 40, [f"it is in {PATH},", "  there"]),
    ],
)
def test_a_line_breaks_between_words_and_a_name_where_a_part_ends(
    line: str, width: int, lines: list[str]
) -> None:
    assert folded(line, width) == lines


@pytest.mark.parametrize("width", range(10, 70))
def test_nothing_of_a_name_is_lost(width: int) -> None:
    assert "".join(part.strip() for part in folded(LONG, width)) == LONG


@pytest.mark.parametrize("width", range(30, 100))
def test_no_line_is_wider_than_asked_where_its_parts_allow_it(width: int) -> None:
    line = f"{LONG}: 1.23× (1.20–1.26), slower, as 例 of wide letters 例例例 is"
    assert max(map(cells, folded(line, width))) <= max(width, unbroken(line))


def test_a_pipe_has_no_width() -> None:
    line = "word " * 100
    assert folded(line, None) == [line]


def test_letters_take_the_columns_that_a_terminal_gives_them() -> None:
    assert [cells(of) for of in ("abc", "é", "例", "×–")] == [3, 1, 2, 2]


def test_one_thing_has_no_plural() -> None:
    assert [number_of(n, "benchmark") for n in (0, 1, 2)] == [
        "0 benchmarks", "1 benchmark", "2 benchmarks",
    ]  # fmt: skip
