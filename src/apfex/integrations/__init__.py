"""Where people keep their experiments: MLflow and TensorBoard.

Both are extras (``pip install "apfex[mlflow]"``, ``"apfex[tensorboard]"``), imported where they are
used. What is written comes from one record (:class:`Figures`), so that both tell the same.
"""

from apfex.integrations._mlflow import log_mlflow_model, log_to_mlflow, save_mlflow_model
from apfex.integrations._tensorboard import TensorBoardLog

__all__ = ["TensorBoardLog", "log_mlflow_model", "log_to_mlflow", "save_mlflow_model"]
