"""metarank on a cluster of Dask workers, with the results of a local run (extra `dask`).

`DaskMetaRanker` fits on a cluster what `MetaRanker` fits in one process, to the byte, and answers by parts of
the rows; `read` makes partitions of Parquet or repository text on any file system.
"""

from metarank._util.extra import require_extra

require_extra("dask", "dask", "distributed")

from metarank.distributed.partitions import Partitions, read  # noqa: E402
from metarank.distributed.ranker import DaskMetaRanker  # noqa: E402

__all__ = ["DaskMetaRanker", "Partitions", "read"]
