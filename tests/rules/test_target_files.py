"""Target files: names, aliases, a user's own file, extending, faults with their lines, formulas."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tilegg import lower, parse
from tilegg.ir.diagnostics import TileggError
from tilegg.rules.cost import Instr
from tilegg.rules.formula import Formula, FormulaError
from tilegg.rules.target import load_target, target_names

A5 = load_target("a5")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("a2", "a2a3"),
        ("A3", "a2a3"),
        ("910b", "a2a3"),
        ("Ascend910B", "a2a3"),
        ("950", "a5"),
        ("ascend950", "a5"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert load_target(alias).name == name


def test_names_and_cache() -> None:
    assert target_names() == ("a2a3", "a5")
    assert load_target("a5") is A5
    assert pickle.loads(pickle.dumps(A5)) is A5 and load_target(str(A5.path)) is A5
    more = A5.with_assembler(["tpow", "tadd"])
    assert pickle.loads(pickle.dumps(more)).ops == more.ops


def test_unknown_target_lists_the_known() -> None:
    with pytest.raises(TileggError) as caught:
        load_target("a6")
    found = caught.value.diagnostics[0]
    assert found.code == "TG040" and "a2a3, a5" in found.hint


MINIMAL = """
[target]
name = "mine"

[hardware]
ub_bytes = 1024
ub_reserved_bytes = 0
repeat_bytes = 256
repeat_limit = 255
block_bytes = 32
barrier_cycles = 1

[capabilities]
assembler_arch = "a3"
"""


def _write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_user_can_add_a_target_with_one_file(tmp_path: Path) -> None:
    text = (
        MINIMAL
        + """
        [[op]]
        names = "tadd"
        asm = "FP32"
        isa = "FP32"
        [[cast]]
        from = "FP32"
        to = "FP16"
        modes = "rint"
        fixed = "rint"
        [[cost]]
        ops = "tadd tcvt"
        form = "repeat"
        head = 1
        slope = 2
        tail = 3
    """
    )
    target = load_target(_write(tmp_path, text))
    assert target.name == "mine" and target.legal("tadd", "FP32") and ("FP32", "FP16") in target.casts
    assert target.prices.cycles(Instr("tadd", ("FP32",), 4, 64, 64)) == 1 + 2 * 4 + 3


def _extended(folder: Path, cycles: int) -> Path:
    """Write a target that another extends, and return the path of the other."""
    cost = f"[[cost]]\nops = 'tadd'\nform = 'element'\nfixed = 0\neach = {cycles}\n"
    (folder / "base.toml").write_text("[target]\nname = 'base'\nextends = 'a5'\n" + cost)
    path = folder / "mine.toml"
    path.write_text("[target]\nname = 'mine'\nextends = 'base.toml'\n")
    return path


def _add(name: str) -> float:
    return load_target(name).prices.cycles(Instr("tadd", ("FP32",), 4, 64, 64))


def test_files_that_change_are_read_again(tmp_path: Path) -> None:
    path = str(_extended(tmp_path, 2))
    first = load_target(path)
    assert load_target(path) is first and _add(path) == 512
    # As long, and perhaps within one tick of the file system's clock.
    _extended(tmp_path, 3)
    assert _add(path) == 768 and load_target(path) is not first
    cost = "[[cost]]\nops = 'tadd'\nform = 'element'\nfixed = 0\neach = 5\n"
    (tmp_path / "mine.cost.toml").write_text(cost)
    assert _add(path) == 1280
    (tmp_path / "mine.toml").unlink()
    with pytest.raises(TileggError) as caught:
        load_target(path)
    assert caught.value.diagnostics[0].code == "TG013"


def test_a_relative_path_is_that_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, cycles in (("one", 2), ("two", 3)):
        (tmp_path / name).mkdir()
        _extended(tmp_path / name, cycles)
    monkeypatch.chdir(tmp_path / "one")
    one = load_target("mine.toml")
    assert _add("mine.toml") == _add("../two/../one/mine.toml") == 512
    assert load_target(str(tmp_path / "one" / "mine.toml")) is one
    monkeypatch.chdir(tmp_path / "two")
    assert _add("mine.toml") == 768
    assert one.path == tmp_path / "one" / "mine.toml" and pickle.loads(pickle.dumps(one)) is one


KERNEL = """
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
        a = pl.load(x, [0, 0], [4, 64])
        return pl.store(pl.add(a, pl.exp(a)), [0, 0], y)
"""


def test_lowering_knows_that_a_target_changed(tmp_path: Path) -> None:
    path, program = str(_extended(tmp_path, 2)), parse(KERNEL)
    before = lower(program, path).totals.cycles
    _extended(tmp_path, 3)
    assert lower(program, path).totals.cycles == before + 256
    _extended(tmp_path, 2)
    assert lower(program, path).totals.cycles == before


def test_a_user_can_extend_a_target(tmp_path: Path) -> None:
    text = """
        [target]
        name = "a5x"
        extends = "a5"
        [hardware]
        ub_bytes = { value = 131072, unit = "bytes" }
        [[op]]
        names = "tadd"
        asm = "FP32"
        isa = "FP32"
        [[cast]]
        from = "FP32"
        to = "INT8"
        modes = "rint"
        fixed = "rint"
        [[cost]]
        ops = "tadd"
        form = "element"
        fixed = 0
        each = 2
    """
    target = load_target(_write(tmp_path, text))
    assert target.figure("ub_bytes") == 131072 and not target.legal("tadd", "FP16") and target.legal("tsub", "FP16")
    assert set(target.casts) == set(A5.casts) | {("FP32", "INT8")}
    add, sub = (target.prices.cycles(Instr(op, ("FP32",), 4, 64, 64)) for op in ("tadd", "tsub"))
    assert add == 512 and sub == A5.prices.cycles(Instr("tsub", ("FP32",), 4, 64, 64))


@pytest.mark.parametrize(
    ("extra", "line", "words"),
    [
        ("[[cast]]\nfrom = 'FP32'\nto = 'FP99'\n", 15, "FP99"),
        ("[[cast]]\nfrom = 'FP32'\nto = 'FP16'\nmodes = 'upward'\nfixed = 'rint'\n", 15, "upward"),
        ("[[cast]]\nfrom = 'FP32'\nto = 'FP16'\nexact = true\nmodes = 'rint'\nfixed = 'rint'\n", 15, "exact"),
        ("[[cast]]\nfrom = 'FP32'\nto = 'FP16'\ncolour = 'red'\n", 15, "colour"),
        (
            "[[op]]\nnames = 'tadd'\nasm = 'FP32'\nisa = 'FP32'\n\n[[op]]\nnames = 'tsub'\nasm = 'FP32'\n",
            20,
            "isa",
        ),
        ("[[op]]\nnames = 'tadd'\nasm = 3\nisa = 'FP32'\n", 15, "string"),
        (
            "[[op]]\nnames = 'tadd'\nasm = ''\nisa = ''\nscratch = [{rows = '__import__(1)', cols = '1'}]\n",
            15,
            "__import__",
        ),
        ("[[cost]]\nops = 'tadd'\nform = 'cubic'\n", 15, "cubic"),
        ("[[cost]]\nops = 'tadd'\nform = 'repeat'\nhead = 1\n", 15, "slope"),
        ("[[cost]]\nops = 'tadd'\nform = 'element'\nfixed = 'x'\neach = 1\n", 15, "finite"),
        ("[[cost]]\nops = 'tadd'\nform = 'element'\nfixed = nan\neach = 1\n", 15, "finite"),
        ("[[cost]]\nops = 'tadd'\nform = 'loop'\nflat = [1]\n", 15, "parameters"),
        ("[[cost]]\nops = 'tadd'\nform = 'sum'\nparts = ['tnone']\n", 15, "tnone"),
        ("[[cost]]\nops = 'tadd'\nform = 'sum'\nparts = ['tadd']\n", 15, "itself"),
        ("[matrix]\nx = 1\n", 15, "matrix"),
        ("[sets]\nf = 'FP31'\n", 15, "FP31"),
        ("[[cast]\nfrom = 'FP32'\n", 15, "TOML"),
    ],
)
def test_faults_of_a_users_file_name_line_and_reason(tmp_path: Path, extra: str, line: int, words: str) -> None:
    path = _write(tmp_path, MINIMAL + extra)
    with pytest.raises(TileggError) as caught:
        load_target(path)
    found = caught.value.diagnostics[0]
    assert found.code == "TG040" and found.span is not None and found.span.file == path
    assert words in f"{found.message} {found.reason} {found.hint}"
    assert found.span.line == line


@pytest.mark.parametrize("broken", ["[target]", "[hardware]", "[capabilities]"])
def test_missing_tables_are_named(tmp_path: Path, broken: str) -> None:
    text = MINIMAL.replace(broken, "[sources]" if broken == "[target]" else f"[{broken[1]}x]")
    with pytest.raises(TileggError) as caught:
        load_target(_write(tmp_path, text))
    assert caught.value.diagnostics[0].code == "TG040"


def test_unreadable_and_circular_files(tmp_path: Path) -> None:
    with pytest.raises(TileggError) as missing:
        load_target(str(tmp_path / "none.toml"))
    assert missing.value.diagnostics[0].code == "TG013"
    circular = MINIMAL.replace('name = "mine"', 'name = "mine"\nextends = "mine.toml"')
    with pytest.raises(TileggError) as caught:
        load_target(_write(tmp_path, circular))
    assert "extends itself" in caught.value.diagnostics[0].message


@pytest.mark.parametrize(("base", "message"), [("a6", "unknown target 'a6'"), ("gone.toml", "cannot read the target")])
def test_a_base_that_is_missing_is_an_error_at_its_place(tmp_path: Path, base: str, message: str) -> None:
    text = "# what it extends is not there\n" + MINIMAL.replace('name = "mine"', f'name = "mine"\nextends = "{base}"')
    with pytest.raises(TileggError) as caught:
        load_target(_write(tmp_path, text))
    (found,) = caught.value.diagnostics
    assert found.code == "TG040" and found.message.startswith(f"extends = '{base}': {message}")
    assert found.span is not None and (found.span.file, found.span.line) == (str(tmp_path / "mine.toml"), 3)


def test_a_figure_that_is_missing_is_an_error_at_its_table(tmp_path: Path) -> None:
    target = load_target(_write(tmp_path, MINIMAL))
    with pytest.raises(TileggError) as caught:
        target.figure("no_such_figure")
    (found,) = caught.value.diagnostics
    assert found.span is not None and (found.span.file, found.span.line) == (str(tmp_path / "mine.toml"), 5)


def test_formulas() -> None:
    names = frozenset({"rows", "cols", "block"})
    formula = Formula.parse("align(rows * ceil(cols, 8)) + max(1, min(rows, 2)) - 7 % 4", names)
    assert formula.value({"rows": 3, "cols": 17, "block": 8}) == 16 + 2 - 3
    for bad in (
        "rows.__class__",
        "open('x')",
        "rows if cols else 1",
        "1.5",
        "x",
        "ceil(1)",
        "rows ** 99",
        "(" * 500,
        "",
    ):
        with pytest.raises(FormulaError):
            Formula.parse(bad, names)
