"""Small quadratic programmes, solved exactly and batched over leading axes.

``min_norm`` finds the shortest vector in the convex hull of m gradients from their Gramian;
``nonnegative_qp`` is the engine behind it, and behind every projection on a cone. All m x m work
is done in float64 with unchecked factorizations, so a GPU is never waited for.
"""

from apfex.solvers._min_norm import kkt_residual, min_norm
from apfex.solvers._nonnegative import nonnegative_qp

__all__ = ["kkt_residual", "min_norm", "nonnegative_qp"]
