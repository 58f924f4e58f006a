"""The pure parts of measuring: tables, plots and the page that is made of what runs left."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree

import pytest
from benchmarks import __main__ as whole
from benchmarks import document, report
from benchmarks.measure import Group, Row, times
from benchmarks.peers.picture import picture
from benchmarks.peers.table import Line, Table, line
from benchmarks.peers.words import cells, number, text

_SVG = "{http://www.w3.org/2000/svg}"
_LINE = line("list", 0.002, 0.001, 0.02, "has none", 0.2)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.00123, "s", "1.23 ms"),
        (0.25, "s", "250 ms"),
        (12.06, "s", "12.1 s"),
        (0.0, "%", "0 %"),
        (121.4, "MiB", "121 MiB"),
    ],
)
def test_numbers_have_the_unit_that_people_read(value: float, unit: str, shown: str) -> None:
    assert number(value, unit) == shown


def test_a_line_compares_mas_with_tmux_and_the_peer_with_mas() -> None:
    assert cells(_LINE) == ("list", "2 ms", "1 ms", "20 ms", "(has none)", "200 ms", "2.00", "100")


def test_there_is_no_ratio_to_what_was_not_measured() -> None:
    assert cells(line("list", 0.002, "has none", 0.02, 0.02, 0.0))[-2:] == ("", "0.00")


def test_a_table_for_the_terminal_has_its_columns_in_line() -> None:
    printed = text(Table("Listing", (_LINE, Line("a longer name", _LINE.cells)))).splitlines()
    assert [row.index("1 ms") for row in printed[2:]] == [printed[1].index("raw tmux")] * 2


def test_a_result_file_is_read_as_it_was_written() -> None:
    rows = (times("pack", 0.1, "tar | zstd", 0.05, 3), Row("another", 0.2))
    found = report.read(report.markdown([Group("Some", rows)], ["a machine"]))
    assert [row[0] for row in found] == ["pack", "another"]
    assert found[0] == ("pack", "100 ms", "50.0 ms (tar | zstd)", "2.00", "3 × floor = 150 ms", "yes")


@pytest.mark.parametrize(("limit", "code"), [(0.3, 0), (0.1, 1)], ids=["held", "not held"])
def test_a_run_fails_if_a_bound_is_not_held(monkeypatch: pytest.MonkeyPatch, limit: float, code: int) -> None:
    group = Group("Some", (Row("work", 0.2, limit=limit),))
    monkeypatch.setitem(whole._GROUPS, "start", lambda effort: group)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "start"])
    assert whole.main() == code


def test_a_dot_stands_further_right_the_more_it_is() -> None:
    drawn = ElementTree.fromstring(picture("a < b", [_LINE, line("nothing", 0.0, 0.01, "", "", 0.02)]))
    assert [title.text for title in drawn.iter(f"{_SVG}title")] == ["a < b"]
    at = [float(dot.attrib["cx"]) for dot in drawn.iter(f"{_SVG}circle")]
    first, second = at[:4], at[4:]
    assert first[1] < first[0] < first[2] < first[3]
    assert first[1] == second[0] < second[1] < second[2]
    decade = first[2] - first[1]
    assert first[3] - first[2] == pytest.approx(decade * 10 / 13.0103, abs=1)


def test_every_bound_is_measured() -> None:
    with open(document.RESULTS, encoding="utf-8") as file:
        results = file.read()
    with open(document.PEERS, encoding="utf-8") as file:
        peers = json.load(file)
    assert "not measured" not in document.page(results, peers)
    assert "not measured" in document.page("", peers)


def test_the_page_and_its_plots_are_what_the_last_runs_left() -> None:
    with open(document.RESULTS, encoding="utf-8") as file:
        results = file.read()
    with open(document.PEERS, encoding="utf-8") as file:
        peers = json.load(file)
    with open(document.PAGE, encoding="utf-8") as file:
        written = file.read()
    assert written == document.page(results, peers), "run: .venv/bin/python -m benchmarks.document"
    for name, drawn in document.pictures(document.tables(peers)).items():
        assert f"(pictures/{name})" in written
        with open(os.path.join(os.path.dirname(document.PAGE), "pictures", name), encoding="utf-8") as file:
            assert file.read() == drawn


def test_the_figures_of_the_readme_are_those_of_the_result_file() -> None:
    with open(document.RESULTS, encoding="utf-8") as file:
        results = file.read()
    with open(document.README, encoding="utf-8") as file:
        written = file.read()
    assert written == document.readme(written, results), "run: .venv/bin/python -m benchmarks.document"
    started = next(row for row in report.read(results) if row[0] == document._STARTED)
    other = results.replace(" | ".join(started[1:4]), "1.0 ms | 0.1 ms (one tmux invocation) | 9.94")
    assert "9.9 times" in document.readme(written, other)
    assert "9.9 times" not in written


def test_no_figure_of_speed_in_the_readme_is_typed_by_hand() -> None:
    with open(document.README, encoding="utf-8") as file:
        by_hand = document._FIGURES.sub("", file.read())
    assert not re.findall(r"\d+(?:\.\d+)? (?:times|ms)\b", by_hand)
