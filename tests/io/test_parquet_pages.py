"""What pages of Parquet unpack to is known before they are unpacked."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest

from evermat.errors import EvermatError
from evermat.io.parquet_pages import unpacked_pages
from evermat.kb.inputs import read_fact_file
from evermat.pipeline.config import FactMap, Source
from evermat.pipeline.intake import LocalIntake
from evermat.runtime.input_limits import UnpackedSizeError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 30_011
TAIL = 8


def table() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "number": numbers,
            "word": [f"word {number % 7}" for number in numbers],
            "seldom": [None if number % 3 else f"{number}" for number in numbers],
            "pair": [[number, number] for number in numbers],
            "both": [{"x": number, "y": None} for number in numbers],
        }
    )


def pages(path: Path) -> list[int]:
    data = path.read_bytes()
    return list(unpacked_pages(lambda at, size: data[at : at + size], len(data)))


@pytest.mark.parametrize(("version", "compression"), [("1.0", "none"), ("2.0", "zstd")])
@pytest.mark.parametrize("named", [(), ("word", "seldom")])
def test_honest_files_say_in_both_places_the_same(
    version: str, compression: str, named: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "p.parquet"
    arrow_parquet.write_table(
        table(),
        path,
        compression=compression,
        use_dictionary=list(named),
        data_page_version=version,
        row_group_size=ROWS // 2,
        data_page_size=10_000,
    )
    metadata = arrow_parquet.read_metadata(path)
    told = sum(
        metadata.row_group(group).column(column).total_uncompressed_size
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    found = pages(path)
    # The footer counts the headers as well; runs have fewer bytes than values.
    assert told - 100 * len(found) <= sum(found) <= told + 2 * ROWS


def test_files_without_rows_have_no_pages(tmp_path: Path) -> None:
    arrow_parquet.write_table(table().slice(0, 0), tmp_path / "p.parquet")
    assert not sum(pages(tmp_path / "p.parquet"))


def test_pages_larger_than_the_footer_tells(tmp_path: Path) -> None:
    """Reading such a file of 31 kB took two gigabytes."""
    path = tmp_path / "p.parquet"
    bomb = pa.table({"a": ["x" * 10_000_000] * 10})
    arrow_parquet.write_table(
        bomb, path, compression="zstd", use_dictionary=False, write_statistics=False
    )
    size = arrow_parquet.read_metadata(path).row_group(0).total_byte_size
    replace_in_footer(path, number(size), number(1000, like=size), times=2)
    assert arrow_parquet.read_metadata(path).row_group(0).total_byte_size == 1000
    refuse(path, UnpackedSizeError)


def test_columns_with_other_numbers_of_values_than_rows(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    arrow_parquet.write_table(pa.table({"a": ["x"] * ROWS}), path)
    replace_in_footer(path, number(ROWS), number(1, like=ROWS), times=2)
    refuse(path, EvermatError)


def test_columns_that_share_their_pages(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    columns = {f"c{at}": [f"{at % 10}" * 1000] * 10 for at in range(500)}
    arrow_parquet.write_table(
        pa.table(columns), path, use_dictionary=False, compression="none"
    )
    metadata = arrow_parquet.read_metadata(path).row_group(0).column(0)
    size = metadata.total_compressed_size
    larger = number(size + 5000, like=size)
    replace_in_footer(path, number(size), larger, times=1000)
    refuse(path, EvermatError, match="share pages|cannot be read")


def test_any_cut_of_a_footer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    arrow_parquet.write_table(pa.table({"a": ["x", "y"], "b": [1, 2]}), path)
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-TAIL : -TAIL + 4])
    for start in range(0, length, 7):
        footer = data[-TAIL - length : -TAIL - start - 1]
        end = struct.pack("<I", len(footer)) + data[-4:]
        path.write_bytes(data[: -TAIL - length] + footer + end)
        with pytest.raises(EvermatError, match=r"p\.parquet"):
            read_fact_file(path)


def refuse(path: Path, error: type[EvermatError], match: str = r"p\.parquet") -> None:
    with pytest.raises(error, match=match):
        read_fact_file(path)
    source = Source("s", "parquet", paths=(str(path),), facts=(FactMap("p"),))
    with pytest.raises(error, match=match):
        LocalIntake().take(source, source.paths, "")


def number(value: int, *, like: int | None = None) -> bytes:
    """A number as Thrift has it, in as many bytes as another one needs."""
    wanted = 0 if like is None else len(number(like))
    found = bytearray()
    value *= 2
    while True:
        value, low = value >> 7, value & 127
        found.append(low)
        if not value and len(found) >= wanted:
            break
    return bytes(byte | 128 for byte in found[:-1]) + bytes(found[-1:])


def replace_in_footer(path: Path, old: bytes, new: bytes, *, times: int) -> None:
    """Have the footer tell other numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-TAIL : -TAIL + 4])
    start = len(data) - TAIL - length
    footer = data[start:-TAIL]
    assert footer.count(old) >= times
    path.write_bytes(data[:start] + footer.replace(old, new, times) + data[-TAIL:])
