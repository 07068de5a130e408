from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from reporting_samples import FAILED, HOSTILE, make_run, small_run, trial

from proctor import plugins
from proctor.base.errors import StoreError, UsageError
from proctor.reporting.reporters import write_reports
from proctor.reporting.terminal.progress import terminal_svg
from proctor.results.verdict import verdict


def write(targets: dict[str, object], run: object = None, **environ: str) -> list[str]:
    run = small_run() if run is None else run
    return write_reports(run, verdict(run), {name: str(path) for name, path in targets.items()}, environ)


def test_each_report_lands_where_it_was_asked_for(tmp_path: Path) -> None:
    targets = {name: tmp_path / "deep" / "er" / f"report.{name}" for name in ("md", "json", "junit")}

    assert write(targets) == [str(path) for path in targets.values()]
    assert targets["md"].read_text(encoding="utf-8").startswith("# Test report: faq-bot")
    assert json.loads(targets["json"].read_text())["schema"] == "proctor.report/1"
    assert targets["junit"].read_text(encoding="utf-8").startswith("<?xml")
    assert sorted(item.name for item in (tmp_path / "deep" / "er").iterdir()) == [
        "report.json",
        "report.junit",
        "report.md",
    ]


def test_one_report_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(StoreError) as caught:
        write({"md": tmp_path / "folder.md", "junit": tmp_path / "file" / "x.xml", "json": tmp_path / "fine.json"})

    assert str(tmp_path / "folder.md") in str(caught.value)
    assert str(tmp_path / "file" / "x.xml") in str(caught.value)
    assert (tmp_path / "fine.json").is_file()
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_report_that_breaks_halfway_leaves_the_old_one(tmp_path: Path) -> None:
    class Torn:
        def __iter__(self) -> object:
            yield trial("a")
            raise OSError("the disk is gone")

    target = tmp_path / "report.json"
    target.write_text("old")

    with pytest.raises(StoreError, match="the disk is gone"):
        write({"json": target}, make_run([trial("a")], stream=Torn()))

    assert target.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["report.json"]


def test_a_report_can_be_read_by_others_like_any_new_file(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write({"md": tmp_path / "r.md"})

    assert stat.S_IMODE((tmp_path / "r.md").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_written_to_and_not_replaced() -> None:
    assert write({"json": "/dev/null"}) == ["/dev/null"]
    assert not Path("/dev/null").is_file()


def test_a_link_keeps_pointing_at_the_file_it_names(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write({"json": link})

    assert link.is_symlink()
    assert json.loads(real.read_text())["schema"] == "proctor.report/1"


def test_a_dash_is_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert write({"md": "-"}, make_run([trial("日本", FAILED, HOSTILE)])) == []

    assert "日本".encode() in capsysbinary.readouterr().out
    print("still open")
    assert b"still open" in capsysbinary.readouterr().out


def test_a_reader_that_stops_early_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert write({"json": "-"}, make_run([trial(f"c{n}") for n in range(500)])) == []


def test_an_unknown_report_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown report 'pdf'; available: html, md, json, junit, csv, code-quality"):
        write({"md": tmp_path / "r.md", "pdf": tmp_path / "r.pdf"})

    assert list(tmp_path.iterdir()) == []


def test_two_reports_cannot_share_a_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="md and json would both go to"):
        write({"md": tmp_path / "r", "json": tmp_path / "r"})


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[EntryPoint], None]]:
    """Makes an entry point known as if a package had brought it."""

    def install(entry: EntryPoint) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda **wanted: EntryPoints([entry]).select(**wanted))
        plugins.installed_plugins.cache_clear()

    yield install
    plugins.installed_plugins.cache_clear()


def test_a_plug_in_writes_under_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Callable[[EntryPoint], None]
) -> None:
    (tmp_path / "shouting_reporter.py").write_text(
        "def write(run, verdict, out):\n    out.write(verdict.outcome.upper() + '\\ud800')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("shout", "shouting_reporter:write", "proctor.reporters")
    install(entry)

    write({"shout": tmp_path / "r.txt"})

    assert (tmp_path / "r.txt").read_text() == "FAILED\\ud800"


def test_a_plug_in_that_cannot_be_loaded_says_so(install: Callable[[EntryPoint], None]) -> None:
    entry = EntryPoint("shout", "no_such_module:write", "proctor.reporters")
    install(entry)

    with pytest.raises(UsageError, match="no_such_module"):
        write({"shout": "-"})


def test_the_step_summary_is_appended_when_github_asks_for_it(tmp_path: Path) -> None:
    page = tmp_path / "summary.md"
    page.write_text("what the step before said\n")

    assert write({}, GITHUB_STEP_SUMMARY=str(page)) == []
    text = page.read_text(encoding="utf-8")
    assert text.startswith("what the step before said\n## Proctor: ")


def test_a_step_summary_that_cannot_be_written_is_shown(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="step summary"):
        write({}, GITHUB_STEP_SUMMARY=str(tmp_path))


def test_the_picture_is_the_same_for_the_same_run_and_loads_nothing() -> None:
    run = small_run()
    first, second = (terminal_svg(run, verdict(run), title="proctor test", command="proctor test") for _ in range(2))

    assert first == second
    assert first.startswith("<svg")
    assert "refund-policy" in first
    assert "http" not in first.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")
