"""Result types that are remembered are those the operations' rules give, and rules go on refusing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.ir import infer
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP16, FP32
from tilegg.ir.op import OPS
from tilegg.ir.program import Op, Value, walk
from tilegg.ir.text import parse
from tilegg.ir.types import tile

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import KERNELS


def test_remembered_types_are_those_of_the_rule() -> None:
    texts = KERNELS.values() if isinstance(KERNELS, dict) else KERNELS
    count = 0
    for text in texts:
        for f in parse(text).functions:
            for s in walk(f.body):
                if isinstance(s, Op) and s.name in OPS and not s.attrs and infer._tiles(s.operands) is not None:
                    decl = OPS[s.name]
                    once = infer.result_types(decl, s.operands, {})
                    assert once == infer.result_types(decl, s.operands, {}) == infer._result_types(
                        decl, s.operands, {}, None
                    )
                    count += 1
    assert count > 10


def test_another_type_is_another_question() -> None:
    add, wide, narrow = OPS["tile.add"], Value("a", tile((16, 64), FP32)), Value("b", tile((16, 64), FP16))
    assert infer.result_types(add, (wide, wide), {}) == (wide.type,)
    for _ in range(2):
        with pytest.raises(TileggError) as caught:
            infer.result_types(add, (wide, narrow), {})
        assert caught.value.diagnostics[0].code == "TG007"
    assert infer.result_types(add, (narrow, narrow), {}) == (narrow.type,)
