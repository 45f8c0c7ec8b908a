"""The paper's data sets, found or fetched by themselves, and synthetic tables with known bias."""

from ._dataset import Dataset
from ._load import list_datasets, load_dataset
from ._registry import DatasetInfo
from ._synthetic import make_biased

__all__ = ["Dataset", "DatasetInfo", "list_datasets", "load_dataset", "make_biased"]
