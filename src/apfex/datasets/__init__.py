"""The paper's data sets, found or fetched by themselves; images; tables with known bias."""

from apfex.datasets._dataset import Dataset
from apfex.datasets._images import load_images
from apfex.datasets._load import list_datasets, load_dataset
from apfex.datasets._registry import DatasetInfo
from apfex.datasets._synthetic import make_biased

__all__ = ["Dataset", "DatasetInfo", "list_datasets", "load_dataset", "load_images", "make_biased"]
