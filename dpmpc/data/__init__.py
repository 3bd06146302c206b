"""Data sets, their preprocessing into the unit ball, and their partition over owners."""

from dpmpc.data.csvfile import load_csv
from dpmpc.data.dataset import Dataset
from dpmpc.data.owners import Partition, partition
from dpmpc.data.preprocess import Preprocessing
from dpmpc.data.sets import NAMES, load_dataset
from dpmpc.data.table import read_table

__all__ = ["NAMES", "Dataset", "Partition", "Preprocessing", "load_csv", "load_dataset", "partition", "read_table"]
