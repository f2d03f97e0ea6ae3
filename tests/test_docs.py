"""The documentation shows what the tool does now: generated tables, example output, example assembly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_generated_documentation_is_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_link_between_documents_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_names_both_commands_of_the_makefile() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command}" in readme and f"\n{command}:" in makefile


def test_the_summary_shown_is_the_one_printed(tmp_path: Path) -> None:
    words = ["lower", "examples/quant_int8.py", "--arch", "a5", "-o", str(tmp_path / "out.pto")]
    run = subprocess.run([sys.executable, "-m", "tilegg", *words], capture_output=True, text=True, cwd=ROOT)
    shown = re.findall(r"^a5: \d+ instructions.*$", (ROOT / "docs" / "cli.md").read_text(), re.M)
    assert shown == [line for line in run.stderr.splitlines() if line.startswith("a5:")]


def test_operations_are_listed_with_their_notes_and_with_what_takes_their_place() -> None:
    rows = (ROOT / "docs" / "operations.md").read_text().splitlines()
    (row,) = [line for line in rows if line.startswith("| `tile.tquant_mx` |")]
    assert "[N, K], transposed to [K, N] -> elements [K, N], scales [K/32, N]" in row
    assert "others: a2a3 -; a5 FP16 BF16 FP32" in row
