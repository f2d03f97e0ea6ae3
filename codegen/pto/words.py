"""Enumerated attributes of the PTO dialect: one row per family, one generated class per row.

The assembler spells them in two ways which do not mix (assembler v0.60, attribute definitions): *enum*
attributes are written ``#pto<cmp lt>``, *parameter* attributes ``#pto.layout<nd>``.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer

from .classes import Classes

if TYPE_CHECKING:
    from xdsl.parser import AttrParser

_PRECISION = "default high_precision"
_PHASE = "unspecified partial final"
_SYNC_OPS = (
    "TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V TMOV_V2M TMATMUL TVEC TVECWAIT_EVENT"
)

#: ``#pto<family word>``: the words of each family, in the order of the assembler's enum.
ENUM_WORDS: dict[str, str] = {
    "cmp": "eq ne lt le gt ge",
    "round_mode": "NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT",
    "saturation_mode": "ON OFF",
    "atomic_type": "atomic_none atomic_add",
    "st_phase": _PHASE,
    "acc_phase": _PHASE,
    "relu_pre_mode": "no_relu normal_relu scalar_relu vector_relu pwl",
    "notify_op": "atomic_add set",
    "wait_cmp": "eq ne gt ge lt le",
    "reduce_op": "sum max min",
    "quant_type": "INT8_SYM INT8_ASYM MXFP8 MXFP4_E2M1",
    "quant_scale_alg": "ocp nv",
    "mx_group_axis": "axis0 axis1",
    "vec_store_mode": "nd nz",
    "gather_oob": "undefined clamp wrap zero",
    "coalesce": "row elem",
    "scatter_atomic_op": "none add max min",
    "scatter_oob": "undefined skip clamp wrap",
    "scatter_conflict": "default last",
    "div_precision": _PRECISION,
    "exp_precision": _PRECISION,
    "log_precision": _PRECISION,
    "recip_precision": _PRECISION,
    "rem_precision": _PRECISION,
    "rsqrt_precision": _PRECISION,
    "sqrt_precision": _PRECISION,
    "fmod_precision": _PRECISION,
    "pow_precision": _PRECISION,
}

#: ``#pto.family<word>``: the same for the parameter attributes.
PARAMETER_WORDS: dict[str, str] = {
    "layout": "nd dn nz mx_a_zz mx_b_nn",
    "pipe": "PIPE_S PIPE_V PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL PIPE_MTE4 PIPE_MTE5 PIPE_V2 "
    "PIPE_FIX VIRTUAL_PIPE_MTE2_L1A VIRTUAL_PIPE_MTE2_L1B PIPE_NUM PIPE_UNASSIGNED",
    "event": "EVENT_ID0 EVENT_ID1 EVENT_ID2 EVENT_ID3 EVENT_ID4 EVENT_ID5 EVENT_ID6 EVENT_ID7",
    "kernel_kind": "cube vector",
    "pipe_event_type": _SYNC_OPS,
    "sync_op_type": _SYNC_OPS,
    "pad_value": "null zero max min",
    "padmode": "PadNull PadFirstElem PadValue",
    "mask_pattern": "P0101 P1010 P0001 P0010 P0100 P1000 P1111",
    "sync_all_mode": "hard soft",
    "sync_core_type": "aiv_only aic_only mix",
    "address_space": "zero gm mat left right acc vec bias scaling",
    "fence_scope": "local_memory gm all",
}


class WordAttr(Data[str]):
    """An attribute that is one word of a fixed set; ``data`` is the word."""

    words: ClassVar[tuple[str, ...]]
    family: ClassVar[str]

    @classmethod
    def parse_word(cls, parser: AttrParser) -> str:
        """Read one word of the family, or raise a parse error that lists them."""
        at = parser.pos
        text = parser.parse_optional_identifier()
        if text not in cls.words:
            parser.raise_error(f"expected one of {', '.join(cls.words)} for {cls.name}", at)
        return text

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        if issubclass(cls, SpacedOpaqueSyntaxAttribute):
            return cls.parse_word(parser)
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    def print_parameter(self, printer: Printer) -> None:
        spaced = isinstance(self, SpacedOpaqueSyntaxAttribute)
        printer.print_string(self.data if spaced else f"<{self.data}>")


def _family(family: str, words: str, spaced: bool) -> type[WordAttr]:
    bases: tuple[type, ...] = (WordAttr, SpacedOpaqueSyntaxAttribute) if spaced else (WordAttr,)
    name = "".join(part.capitalize() for part in family.split("_")) + "Attr"
    body: dict[str, Any] = {
        "name": f"pto.{family}",
        "words": tuple(words.split()),
        "family": family,
        "__module__": __name__,
        "__doc__": f"``pto.{family}``: one of {', '.join(words.split())}.",
    }
    # A class object made at run time has no static type to give to the decorator.
    cls: Any = type(name, bases, body)
    made: type[WordAttr] = irdl_attr_definition(cls)
    return made


#: Family name to class, for every family.
WORD_ATTRS: Classes[type[WordAttr]] = Classes({
    **{family: partial(_family, family, words, True) for family, words in ENUM_WORDS.items()},
    **{family: partial(_family, family, words, False) for family, words in PARAMETER_WORDS.items()},
})


@cache
def _interned(family: str) -> dict[str, WordAttr]:
    """Return the (shared) attribute of each word of a family, which there may be none of."""
    if family not in WORD_ATTRS:
        return {}
    cls = WORD_ATTRS[family]
    return {word: cls(word) for word in cls.words}


def word(family: str, text: str) -> WordAttr:
    """Return the (shared) attribute, e.g. ``word("cmp", "lt")`` for ``#pto<cmp lt>``.

    Raises:
        ValueError: no such family, or no such word in it.
    """
    found = _interned(family).get(text)
    if found is None:
        known = WORD_ATTRS.get(family)
        options = f"the words of {family}: {', '.join(known.words)}" if known else "an attribute family"
        raise ValueError(f"{text!r} is not one of {options}" if known else f"{family!r} is not {options}")
    return found


def parse_word_in_brackets(parser: AttrParser, family: str) -> WordAttr:
    """Read a parameter attribute in any form an operation accepts: ``<W>``, ``#pto.family<W>`` or ``"W"``."""
    cls = WORD_ATTRS[family]
    at = parser.pos
    if parser.parse_optional_punctuation("<") is not None:
        text = cls.parse_word(parser)
        parser.parse_punctuation(">")
        return _interned(family)[text]
    attr: Attribute = parser.parse_attribute()
    if isinstance(attr, StringAttr) and attr.data in cls.words:
        return _interned(family)[attr.data]
    if not isinstance(attr, cls):
        parser.raise_error(f"expected {cls.name}", at)
    return attr
