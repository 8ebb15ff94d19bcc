"""What people read with: pandas, pyarrow, dask, fsspec's own helpers."""

from __future__ import annotations

import io
from typing import Any

import fsspec
import pandas as pd
import pytest

from unit.cache_filesystem.reading_stage import Stage

FRAME = pd.DataFrame(
    {"n": range(50_000), "text": [f"row {n} ü" for n in range(50_000)], "x": [n / 7 for n in range(50_000)]}
)


def parquet(frame: pd.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, **options)
    return buffer.getvalue()


@pytest.fixture
def filled(stage: Stage) -> Stage:
    pytest.importorskip("pyarrow")
    stage.source.put("s3://b/x.parquet", parquet(FRAME, row_group_size=5000))
    stage.source.put("s3://b/x.csv", FRAME.to_csv(index=False).encode())
    for part in range(3):
        stage.source.put(f"s3://b/parts/part-{part}.parquet", parquet(FRAME[part * 1000 : (part + 1) * 1000]))
    return stage


def options(stage: Stage) -> dict[str, Any]:
    return {"cluster": stage.cluster}


def test_pandas_reads_parquet_and_csv(filled: Stage) -> None:
    for _ in range(2):
        pd.testing.assert_frame_equal(
            pd.read_parquet("vcache://s3/b/x.parquet", storage_options=options(filled)), FRAME
        )
    read = pd.read_csv("vcache://s3/b/x.csv", storage_options=options(filled))
    pd.testing.assert_frame_equal(read, FRAME)
    columns = pd.read_parquet("vcache://s3/b/x.parquet", columns=["n"], storage_options=options(filled))
    assert list(columns["n"]) == list(FRAME["n"])


def test_the_second_time_nothing_is_read_from_the_source(filled: Stage) -> None:
    pd.read_parquet("vcache://s3/b/x.parquet", storage_options=options(filled))
    before = len(filled.source.reads)
    assert before > 0
    pd.read_parquet("vcache://s3/b/x.parquet", storage_options=options(filled))
    assert len(filled.source.reads) == before


def test_pyarrow_reads_a_dataset(filled: Stage) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    found = dataset.dataset("s3/b/parts", filesystem=filled.filesystem(), format="parquet")
    assert sorted(found.files) == [f"s3/b/parts/part-{n}.parquet" for n in range(3)]
    assert found.to_table().num_rows == 3000
    assert found.count_rows(filter=dataset.field("n") < 1500) == 1500


def test_dask_reads_bytes_in_blocks(filled: Stage) -> None:
    pytest.importorskip("dask")
    from dask.base import compute
    from dask.bytes import read_bytes

    sample, blocks = read_bytes("vcache://s3/b/x.csv", delimiter=b"\n", blocksize=300_000, **options(filled))
    parts = compute(*blocks[0], scheduler="threads")
    assert b"".join(parts) == filled.source.files["s3://b/x.csv"]
    assert sample.startswith(b"n,text,x")


def test_chains_and_many_files(filled: Stage) -> None:
    with fsspec.open("simplecache::vcache://s3/b/x.csv", vcache=options(filled)) as file:
        assert file.readline() == b"n,text,x\n"
    files = fsspec.open_files("vcache://s3/b/parts/*.parquet", **options(filled))
    assert len(files) == 3
    mapper = fsspec.get_mapper("vcache://s3/b/parts", **options(filled))
    assert sorted(mapper) == [f"part-{n}.parquet" for n in range(3)]
    assert mapper["part-1.parquet"] == filled.source.files["s3://b/parts/part-1.parquet"]
