"""The language's text: reading and writing programs in the field's Python syntax."""

from .reader import parse, parse_with_remarks
from .write_types import print_type
from .writer import print_op, print_program

__all__ = ["parse", "parse_with_remarks", "print_op", "print_program", "print_type"]
