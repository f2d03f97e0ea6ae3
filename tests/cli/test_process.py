"""The command as a process: start-up time, version, usage, pipes, interrupts, crash files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import tilegg as api
from tilegg.cli import main

from .conftest import EXAMPLES, cast_kernel

COMMAND = [sys.executable, "-m", "tilegg"]
VERBS = ("lower", "explain", "casts", "run", "equiv", "verify", "check", "fmt", "rules", "targets", "ops", "reproduce")


def process(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_help_imports_nothing_heavy_and_answers_soon():
    probe = "import sys; from tilegg.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert all(re.search(rf"^    {verb}\b", done.stdout, re.M) for verb in VERBS)
    heavy = {"numpy", "egglog", "xdsl", "highspy", "ml_dtypes", "dataclasses", "json", "tilegg.ir.program"}
    assert not {f"'{m}'" for m in heavy} & set(done.stderr.strip("[]\n").split(", "))
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        process("--help")
        spent.append(time.perf_counter() - start)
    assert min(spent) < 1.0


def imported(kernel: str, *words: str) -> set[str]:
    """Return the modules that lowering a kernel of the corpus has loaded when it ends."""
    path = EXAMPLES.parent / "benchmarks" / "corpus" / f"{kernel}.py"
    probe = "import sys; from tilegg.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    words = ("lower", str(path), "--arch", "a5", "--contract", "exact", "-q", *words)
    done = subprocess.run([sys.executable, "-c", probe, *words], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize("kernel", ["logsumexp", "dequant_norm_rope", "softmax_bf16_scores"])
def test_lowering_loads_only_what_it_needs(kernel):
    # Most of them take longer to load than the kernel to lower.
    heavy = {"numpy", "ml_dtypes", "networkx", "highspy", "egglog", "xdsl.parser", "xdsl.dialects.arith",
             "xdsl.dialects.scf", "xdsl.dialects.func", "xdsl.irdl.declarative_assembly_format"}  # fmt: skip
    own = {"rules.collectives", "codegen.signals.check", "codegen.emit_around", "codegen.pto.comm", "codegen.pto.simt"}
    assert not (heavy | {f"tilegg.{m}" for m in own}) & imported(kernel)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb, capsys):
    assert main([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out and f"tilegg {verb}" in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tilegg {api.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [(), ("nothing",), ("lower",), ("lower", "x"), ("lower", "x", "--arch", "a5", "--objective", "joy"),
     ("lower", "x", "--arch", "a5", "--node-limit", "0"), ("lower", "x", "--arch", "a5", "--time-limit", "-1"),
     ("lower", "x", "--arch", "a5", "--time-limit", "nan"), ("equiv", "a"), ("equiv", "a", "b", "--samples", "x"),
     ("casts", "fp32", "fp16", "--arch", "a5", "--json", "--svg"), ("lower", "x", "--ar", "a5")],
)  # fmt: skip
def test_wrong_usage_is_two(words, capsys):
    assert main(list(words)) == 2
    assert "usage:" in capsys.readouterr().err


def test_closed_pipe_is_quiet():
    shell = f"{sys.executable} -m tilegg ops --json | head -c 100"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stderr == "" and len(done.stdout) == 100


def in_shell(words: str, streams: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell that closes or turns its streams."""
    shell = f"{sys.executable} -m tilegg {words} {streams}"
    return subprocess.run(["bash", "-c", shell], capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


LOWER = f"lower {EXAMPLES / 'quant_int8.py'} --arch a5"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", ["", "--emit json"])
@pytest.mark.parametrize(("streams", "why"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")])
def test_result_that_cannot_be_written(streams, why, form, unbuffered):
    done = in_shell(f"{LOWER} -q {form}", streams, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1 and done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first == "error[TG013]: cannot write to stdout"
    assert rest[0] == f"  why: {why}" and rest[1].startswith("  hint: ") and len(rest) == 2
    asked = json.loads(in_shell(f"{LOWER} -q {form} --diagnostics json", streams).stderr)
    assert [d["code"] for d in asked["diagnostics"]] == ["TG013"]


def test_other_verbs_on_a_full_device():
    for words in ("ops --json", "rules", "casts fp32 int8 --arch a5"):
        done = in_shell(words, ">/dev/full")
        assert done.returncode == 1 and done.stderr.startswith("error[TG013]: cannot write to stdout\n"), words
        assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    # The standard library's parser keeps quiet about help that nobody can read.
    assert not re.search("Traceback|Exception", in_shell("--help", ">/dev/full").stderr)


def test_closed_stdout_that_nobody_needs(tmp_path):
    out = tmp_path / "out.pto"
    assert in_shell(f"{LOWER} -q -o {out}", ">&-").stderr == ""
    assert out.read_text() == process(*LOWER.split(), "-q").stdout


def test_closed_stdin():
    done = in_shell("lower - --arch a5 -q", "<&-")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("error[TG013]: cannot read stdin\n  why: it is closed\n  hint: ")


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_messages_nobody_takes_change_nothing(streams, tmp_path):
    done = in_shell(LOWER, streams)
    assert done.returncode == 0 and done.stdout == process(*LOWER.split(), "-q").stdout
    wrong = tmp_path / "kernel.py"
    wrong.write_text(cast_kernel("FP32", "FP33"))
    for words, code in ((f"check {wrong}", 1), (f"check {wrong} --diagnostics json", 1), ("lower", 2), ("nothing", 2)):
        done = in_shell(words, streams)
        assert (done.returncode, done.stdout) == (code, ""), words
    assert in_shell(LOWER, f"<&- >&- {streams}").returncode == 1


def test_interrupt_is_quiet():
    words = ["equiv", str(EXAMPLES / "quant_int8.py"), str(EXAMPLES / "quant_int8.py"), "--samples", "1000000"]
    # Jobs in the background of a shell are started with interrupts ignored, which children would inherit.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(
        [*COMMAND, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=heed
    )
    try:
        time.sleep(1.5)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "Traceback" not in err


def test_pipeline_of_processes(tmp_path):
    lowered = process("lower", "-", "--arch", "a5", "--emit", "ir", input=cast_kernel("FP32", "BF16"))
    assert lowered.returncode == 0
    again = process("check", "-", input=lowered.stdout)
    assert again.returncode == 0 and "ok" in again.stdout


def test_output_is_utf8_in_any_locale():
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, "casts", "fp32", "int8", "--arch", "a5"], capture_output=True, env=env)
    assert "→" in done.stdout.decode("utf-8")


def test_same_bytes_whatever_the_hash_seed():
    def emitted(seed):
        return process("lower", EXAMPLES / "quant_int8.py", "--arch", "a5", env={**os.environ, "PYTHONHASHSEED": seed})

    first = emitted("1")
    assert first.returncode == 0 and first.stdout == emitted("2").stdout


# -- faults of the tool ------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """Make the lowering fail, and crash files go to a folder of their own."""
    from tilegg.extract import lower as module

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault made for the test")

    folder = tmp_path / "crashes"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(module, "lower", fail)
    return folder


def test_a_fault_leaves_a_crash_file_and_no_trace(broken, tmp_path, capsys, monkeypatch):
    kernel, out = tmp_path / "kernel.py", tmp_path / "out.pto"
    kernel.write_text(cast_kernel("FP32", "BF16"))
    monkeypatch.delenv("TILEGG_DEBUG", raising=False)
    assert main(["lower", str(kernel), "--arch", "a5", "-o", str(out)]) == 1
    err = capsys.readouterr().err
    assert "error[TG090]: ZeroDivisionError: a fault made for the test" in err and "Traceback" not in err
    (crash,) = broken.iterdir()
    assert str(crash) in err and not out.exists()
    stored = json.loads(crash.read_text())
    assert stored["arguments"][0] == "lower" and stored["inputs"][str(kernel)] == kernel.read_text()

    kernel.unlink()
    monkeypatch.setenv("TILEGG_DEBUG", "0")
    assert main(["reproduce", str(crash)]) == 1
    assert "Traceback" in capsys.readouterr().err and not out.exists()


def test_no_crash_file(tmp_path, capsys):
    path = tmp_path / "x.json"
    for text in ("", "[]", "{}", '{"arguments": 3, "inputs": {}}', '{"arguments": ["reproduce"], "inputs": {}}'):
        path.write_text(text)
        assert main(["reproduce", str(path)]) == 1
        assert "error[TG013]" in capsys.readouterr().err


# -- terminals ---------------------------------------------------------------------------------------------


def on_terminal(*words: object, **env: str) -> str:
    """Return what a command writes to stderr when that is a terminal."""
    master, slave = os.openpty()
    env = {**os.environ, "TERM": "xterm", **env}
    running = subprocess.Popen([*COMMAND, *map(str, words)], stderr=slave, stdout=subprocess.DEVNULL, env=env)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    running.wait(timeout=60)
    os.close(master)
    return shown.decode()


def test_terminal_gets_colour_unless_told_not_to(tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(cast_kernel("FP32", "FP33"))
    assert "\x1b[1;31merror[TG004]\x1b[0m" in on_terminal("check", kernel, NO_COLOR="")
    assert "\x1b" not in on_terminal("check", kernel, NO_COLOR="1")
    assert "\x1b" not in process("check", kernel).stderr


def test_terminal_shows_progress_and_wipes_it(tmp_path):
    shown = on_terminal("equiv", EXAMPLES / "fp4.py", EXAMPLES / "fp4.py", "--samples", "20")
    assert "runs [########................] 7/20, " in shown and shown.endswith("\r\x1b[K")
    assert on_terminal("equiv", EXAMPLES / "fp4.py", EXAMPLES / "fp4.py", "--samples", "2", "-q") == ""


def test_solver_prints_nothing_into_the_result():
    done = process("lower", EXAMPLES / "quant_int8.py", "--arch", "a5", "--exact", "--no-memo", "--emit", "json", "-q")
    assert json.loads(done.stdout)["optimum"] == "proved" and done.stderr == ""
