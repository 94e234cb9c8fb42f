"""`trueload report` as a user types it."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import ROOT, Trueload
from report_samples import put, put_records, read
from samples import good_record
from trueload.store.rows import Run
from trueload.store.runs import Store

SVG = "{http://www.w3.org/2000/svg}"


def stored(trueload: Trueload, *names: str) -> list[Run]:
    """Put real runs into the command's store."""
    with Store.open(trueload.store) as store:
        return [put(store, read(name)) for name in names]


def test_a_report_is_one_file_and_its_name_is_said(trueload: Trueload, tmp_path: Path) -> None:
    stored(trueload, "ab")
    page = tmp_path / "report.html"
    ended = trueload.run("report", "last", "-o", page)
    assert (ended.code, ended.out, ended.err) == (0, "", f"written      {page}\n")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_dash_is_stdout(trueload: Trueload) -> None:
    (run,) = stored(trueload, "tcp")
    ended = trueload.run("report", run.id, "-o", "-")
    assert ended.code == 0, ended
    assert ended.out.startswith("<!DOCTYPE html>")
    assert ended.out.rstrip().endswith("</html>")


def test_plots_are_the_charts_of_the_page_as_svg_and_png(
    trueload: Trueload, tmp_path: Path
) -> None:
    stored(trueload, "stages")
    folder, page = tmp_path / "made" / "charts", tmp_path / "report.html"
    ended = trueload.run("report", "last", "--plots", folder, "-o", page)
    assert ended.code == 0, ended
    names = sorted(path.name for path in folder.iterdir())
    drawings = [name for name in names if name.endswith(".svg")]
    assert [name.removesuffix(".svg") + ".png" for name in drawings] == [
        name for name in names if name.endswith(".png")
    ]
    assert any("latency-against-load" in name for name in drawings)
    assert page.read_text(encoding="utf-8").count("<svg") == len(drawings)
    for name in drawings:
        drawing = ElementTree.parse(folder / name).getroot()
        assert drawing.tag == f"{SVG}svg"
        assert drawing.find(f".//{SVG}path") is not None
        pixels = (folder / name).with_suffix(".png").read_bytes()
        assert pixels.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(pixels) > 2_000


def test_a_run_that_is_named_twice_is_shown_once(trueload: Trueload, tmp_path: Path) -> None:
    with Store.open(trueload.store) as store:
        run = put_records(store, [good_record()])
    page = tmp_path / "report.html"
    assert trueload.run("report", run.id, "last", "-o", page).code == 0
    assert "side by side" not in page.read_text(encoding="utf-8")


def test_an_exported_run_gives_the_page_that_its_run_gives(
    trueload: Trueload, tmp_path: Path
) -> None:
    (run,) = stored(trueload, "suite")
    file, before, after = tmp_path / "run.json", tmp_path / "before.html", tmp_path / "after.html"
    assert trueload.run("report", run.id, "-o", before).code == 0
    assert trueload.run("runs", "export", run.id, "-o", file).code == 0
    assert trueload.run("runs", "delete", run.id).code == 0
    packed = tmp_path / "run.json.xz"  # as those of whole published suites
    packed.write_bytes(lzma.compress(file.read_bytes()))
    for each in (file, packed):
        assert trueload.run("report", each, "-o", after).code == 0
        assert after.read_text(encoding="utf-8") == before.read_text(encoding="utf-8")


def test_a_file_and_a_stored_run_lie_side_by_side(trueload: Trueload, tmp_path: Path) -> None:
    here, elsewhere = stored(trueload, "tcp", "tcp")
    file, page = tmp_path / "run.json", tmp_path / "report.html"
    assert trueload.run("runs", "export", elsewhere.id, "-o", file).code == 0
    words = (here.id, file, elsewhere.id, "-o", page)  # the file's run is named twice
    assert trueload.run("report", *words).code == 0
    text = page.read_text(encoding="utf-8")
    assert "side by side" in text
    assert here.id in text
    assert elsewhere.id in text


# (arguments, words of the error, words of the hint)
MISTAKES = [
    (["no.json", "-o", "x.html"], "no.json cannot be read: No such file", "runs export"),
    (["/dev/null", "-o", "x.html"], "/dev/null", "runs export"),
    ([str(Path(__file__)), "-o", "x.html"], "is not JSON", "runs export"),
    ([str(ROOT / "schema/to-engine.schema.json"), "-o", "x.html"], "holds no run", "runs export"),
    (["last"], "there is nothing to write", "-o report.html"),
    (["nothing", "-o", "x.html"], "there is no run 'nothing'", "runs list"),
    (["last", "-o", "/no/such/folder/x.html"], "/no/such/folder/x.html", "another file"),
    (["last", "--plots", "/proc/no"], "/proc/no", "another place"),
    (["last"] * 13 + ["-o", "x.html"], "13 runs are more than a page", "name up to 12"),
]


@pytest.mark.parametrize(("words", "error", "hint"), MISTAKES, ids=lambda value: str(value)[:30])
def test_a_mistake_gets_one_line_and_one_hint(
    trueload: Trueload, tmp_path: Path, words: list[str], error: str, hint: str
) -> None:
    stored(trueload, "tcp")
    ended = trueload.run("report", *words, cwd=tmp_path)
    lines = ended.err.splitlines()
    assert ended.code == 2, ended
    assert len(lines) == 2, ended
    assert lines[0].startswith("error: ")
    assert error in lines[0]
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]
    assert list(tmp_path.glob("*.html")) == []


def test_no_other_command_waits_for_what_draws() -> None:
    heavy = "altair", "vl_convert", "jinja2", "scipy", "numpy"
    program = (
        "import sys; from trueload.cli.app import build_command; build_command('--help');"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "[]"
