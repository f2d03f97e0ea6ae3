"""Memory forms of sub-byte data: two four-bit elements per byte, and predicate masks of one bit per element.

Nibbles: the even column lies in the low nibble (pto-isa ``TCvt.hpp`` and the A2/A3 test generators); a row of
odd length leaves the last high nibble zero.  Masks: element j of a row is bit ``j % 8`` of byte ``j // 8``,
rows padded to a multiple of 32 bytes (the form that ``tcmp`` writes and ``tsel`` reads).
"""

from __future__ import annotations

from . import lazy_numpy as np
from .codes import Array, bits_of, from_bits
from .diagnostics import error
from .dtypes import DType

#: Every row of a packed mask starts on a multiple of this many bytes.
MASK_ROW_ALIGNMENT = 32


def mask_row_bytes(columns: int) -> int:
    """Return the row stride, in bytes, of the packed mask of a tile with that many physical columns."""
    needed = mask_valid_bytes(columns)
    return -(-needed // MASK_ROW_ALIGNMENT) * MASK_ROW_ALIGNMENT


def mask_valid_bytes(valid_columns: int) -> int:
    """Return how many bytes of a mask row hold bits of valid columns."""
    return -(-valid_columns // 8)


def pack_mask(mask: Array) -> Array:
    """Pack a bool array [..., C] into uint8 [..., mask_row_bytes(C)]; bits past C are zero.

    Raises TG006 for an array that is not bool or has no axis.
    """
    if mask.dtype != np.bool_ or mask.ndim == 0:
        raise error("TG006", f"a predicate must be a bool array of rows, not {mask.dtype} {mask.shape}")
    columns = mask.shape[-1]
    packed = np.zeros((*mask.shape[:-1], mask_row_bytes(columns)), np.uint8)
    packed[..., : mask_valid_bytes(columns)] = np.packbits(mask, axis=-1, bitorder="little")
    return packed


def unpack_mask(packed: Array, columns: int) -> Array:
    """Return the bool array [..., columns] of a packed mask uint8 [..., B]; B may be padded or not.

    Raises TG006 for an array that is not uint8, TG008 when the rows hold fewer than ``columns`` bits.
    """
    if packed.dtype != np.uint8 or packed.ndim == 0:
        raise error("TG006", f"a packed mask must be a uint8 array of rows, not {packed.dtype}")
    if packed.shape[-1] * 8 < columns:
        raise error("TG008", f"rows of {packed.shape[-1]} bytes hold no mask of {columns} columns")
    return np.unpackbits(packed, axis=-1, count=columns, bitorder="little").view(np.bool_)


def pack_nibbles(array: Array, dtype: DType) -> Array:
    """Pack a storage array [..., C] of a four-bit dtype into uint8 [..., ceil(C/2)].

    Raises TG007 for another dtype or storage, TG008 for an array without an axis.
    """
    _require_nibble(dtype)
    if array.ndim == 0:
        raise error("TG008", "packing needs at least one axis")
    codes = bits_of(array, dtype)
    packed = codes[..., 0::2].copy()
    high = codes[..., 1::2]
    packed[..., : high.shape[-1]] |= high << np.uint8(4)
    return packed


def unpack_nibbles(packed: Array, dtype: DType, columns: int) -> Array:
    """Return the storage array [..., columns] of packed uint8 [..., B]; INT4 is sign-extended.

    Raises TG007 for a dtype that is not four bits wide, TG006 for an array that is not uint8, TG008 when the
    rows hold fewer than ``columns`` elements.
    """
    _require_nibble(dtype)
    if packed.dtype != np.uint8 or packed.ndim == 0:
        raise error("TG006", f"packed elements must be a uint8 array of rows, not {packed.dtype}")
    if packed.shape[-1] * 2 < columns:
        raise error("TG008", f"rows of {packed.shape[-1]} bytes hold no {columns} elements of {dtype.name}")
    codes = np.empty((*packed.shape[:-1], packed.shape[-1] * 2), np.uint8)
    codes[..., 0::2] = packed & np.uint8(15)
    codes[..., 1::2] = packed >> np.uint8(4)
    return from_bits(codes[..., :columns], dtype)


def _require_nibble(dtype: DType) -> None:
    if not dtype.is_numeric or dtype.values_per_byte != 2:
        raise error("TG007", f"{dtype.name} elements are not packed two to a byte")


def to_memory(array: Array, dtype: DType) -> Array:
    """Return the bytes, uint8 [..., nbytes of a row], of a storage array [..., C] as they lie in memory."""
    if dtype.values_per_byte == 2:
        return pack_nibbles(array, dtype)
    return np.ascontiguousarray(array).view(np.uint8)


def from_memory(packed: Array, dtype: DType, columns: int) -> Array:
    """Return the storage array [..., columns] of bytes uint8 [..., B] as :func:`to_memory` lays them out."""
    if dtype.values_per_byte == 2:
        return unpack_nibbles(packed, dtype, columns)
    return np.ascontiguousarray(packed).view(dtype.storage)[..., :columns]
