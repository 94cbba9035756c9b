"""Kernels take what their signatures say, and refuse everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evermat.engines.embedded.kernels import closures as kernels_closures
from evermat.engines.embedded.kernels import keys as kernels

if TYPE_CHECKING:
    from pathlib import Path

KEYS = np.array([3, 1, 2], np.uint64)
SPARE = np.empty_like(KEYS)
sort_keys: Any = kernels.sort_keys
group: Any = kernels_closures.group


def rows(*items: int) -> Any:
    return np.array(items, np.int32)


def test_an_argument_that_is_returned_is_the_same_object() -> None:
    keys = KEYS.copy()
    assert sort_keys(keys, SPARE) is keys
    assert keys.tolist() == [1, 2, 3]


def test_new_arrays_belong_to_python() -> None:
    starts = group(rows(0, 1, 1), rows(5, 6, 7), 2, rows(0, 0, 0))
    assert starts.dtype == np.int32
    assert starts.tolist() == [0, 1, 3]
    assert starts.flags.owndata
    assert starts.flags.writeable


@pytest.mark.parametrize(
    "arguments",
    [
        (KEYS,),
        (KEYS, SPARE, SPARE),
        (KEYS, None),
        (KEYS, [1, 2, 3]),
        (KEYS, SPARE[::2]),
        (KEYS, SPARE.reshape(1, 3)),
        (KEYS, SPARE.astype(np.int64)),
        (KEYS, SPARE.astype(np.float64)),
        (KEYS, SPARE.astype(np.uint32)),
        (KEYS, SPARE.astype(SPARE.dtype.newbyteorder())),
        (KEYS, np.frombuffer(b"12345678")),
        (KEYS, np.frombuffer(b"12345678", np.uint64)),
        (KEYS, np.frombuffer(b"123456789", np.uint8)[1:].view(np.uint64)),
    ],
)
def test_arguments_of_other_types_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=r"do not fit sort_keys\("):
        sort_keys(*arguments)


def test_arrays_may_be_of_a_class_of_their_own(tmp_path: Path) -> None:
    keys: Any = np.memmap(tmp_path / "keys", np.uint64, "w+", shape=3)
    keys[:] = [3, 1, 2]
    assert sort_keys(keys, SPARE).tolist() == [1, 2, 3]


def test_numbers_may_be_of_numpy() -> None:
    for count in (2, np.int64(2), np.uint8(2)):
        assert group(rows(), rows(), count, rows()).size == 3
    for unfit in (2.0, "2", None):
        with pytest.raises(TypeError):
            group(rows(), rows(), unfit, rows())
    with pytest.raises(OverflowError):
        group(rows(), rows(), 1 << 70, rows())


def test_what_a_kernel_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        group(rows(), rows(), -7, rows())
