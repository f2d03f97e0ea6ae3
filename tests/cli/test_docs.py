"""``docs/cli.md`` names every verb and option there is, and no other; its output is the tool's own."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tilegg.cli.options import parser

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def verbs() -> dict[str, argparse.ArgumentParser]:
    (action,) = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(action.choices)


def test_every_verb_is_in_the_table():
    assert sorted(re.findall(r"^\| `(\w+)` \|", DOCS, re.M)) == sorted(verbs())


def test_options_are_those_of_the_parsers():
    known = {s for p in verbs().values() for a in p._actions for s in a.option_strings if s.startswith("--")}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCS))
    assert named - {"--help", "--version"} == known - {"--help", "--output"}


def test_shown_output_is_real(tilegg):
    command, shown = re.findall(r"^```\n\$ tilegg (.*)\n((?:.*\n)*?)```$", DOCS, re.M)[0]
    assert tilegg(*command.split()).out == shown
