"""Joint models that learn from chunks of a stream, or from partitions on Dask workers."""

from apfex.chunks._dask_rows import DaskRows, PartitionRows
from apfex.chunks._dask_trees import DaskTreeLearner
from apfex.chunks._learners import ChunkedColumnsLearner, ChunkedNetworkLearner
from apfex.chunks._rows import (
    Chunk,
    ChunkedLearner,
    ChunkedRows,
    JointTargets,
    Part,
    out_of_fold,
)
from apfex.chunks._trees import ChunkedTreeLearner

__all__: list[str] = []
