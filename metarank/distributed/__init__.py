"""metarank on a cluster of Dask workers, with the results of a local run (extra `dask`).

`DaskMetaRanker` fits on a cluster what `MetaRanker` fits in one process, to the byte; `rank` lets a fitted
model rank any number of rows there; `read` makes partitions of Parquet or repository text on any file system.
"""

from metarank._util.extra import require_extra

require_extra("dask", "dask", "distributed")

from metarank.distributed.partitions import Partitions, read  # noqa: E402
from metarank.distributed.prediction import rank, rank_points  # noqa: E402
from metarank.distributed.ranker import DaskMetaRanker  # noqa: E402
from metarank.distributed.sharded import ShardedRanker  # noqa: E402
from metarank.distributed.workers import connected  # noqa: E402

__all__ = ["DaskMetaRanker", "Partitions", "ShardedRanker", "connected", "rank", "rank_points", "read"]
