"""Recording -> Parquet, readable by pandas, polars, DuckDB and Dask."""

from __future__ import annotations

import os

from taufit.core.files import replace_file
from taufit.recording.canonical import metadata_to_text, to_columns
from taufit.recording.readers.from_parquet import META_KEY
from taufit.recording.recording import Recording


def write_parquet(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write zstd-compressed doubles; JSON metadata in the schema under "taufit"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, page = to_columns(recording)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({META_KEY: metadata_to_text(page).encode()})
    with replace_file(path) as temporary, temporary.open("wb") as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(columns, "BYTE_STREAM_SPLIT"),
            write_page_checksum=True,
        )
