"""The paper's data sets, found or fetched by themselves, and synthetic tables with known bias."""

from apfex.datasets._dataset import Dataset
from apfex.datasets._load import list_datasets, load_dataset
from apfex.datasets._registry import DatasetInfo
from apfex.datasets._synthetic import make_biased

__all__ = ["Dataset", "DatasetInfo", "list_datasets", "load_dataset", "make_biased"]
