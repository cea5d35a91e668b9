"""LAPACK routines of SciPy without the rest of it: `scipy.linalg` takes longer to load than NumPy.

Where the compiled module is not found alone, `scipy.linalg` is loaded as usual.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int

_NAME = "scipy.linalg._flapack"


def _find_routines() -> Any:
    """SciPy's module of LAPACK routines, under its name, so that `scipy.linalg` takes the same."""
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    # On Windows SciPy has to tell first where its libraries are.
    spec = None if sys.platform == "win32" else find_spec("scipy")
    for folder in (spec and spec.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder, "linalg", f"_flapack{suffix}")
            if path.exists():
                loader = ExtensionFileLoader(_NAME, str(path))
                module_spec = spec_from_file_location(_NAME, path, loader=loader)
                assert module_spec is not None
                module = module_from_spec(module_spec)
                loader.exec_module(module)
                sys.modules[_NAME] = module
                return module
    import scipy.linalg.lapack

    return scipy.linalg.lapack


_routines = _find_routines()
dgeqrt, dpstrf = _routines.dgeqrt, _routines.dpstrf


def solve_triangular(upper: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve U x = y with an upper triangular U."""
    solution, status = _routines.dtrtrs(upper, right)
    if status:
        raise np.linalg.LinAlgError("triangular matrix is singular")
    return np.asarray(solution)


def solve_positive_definite(
    matrix: Float[Array, "n n"], right: Float[Array, "n ..."]
) -> Float[Array, "n ..."]:
    """Solve A x = y by Cholesky's factor; raises LinAlgError if A is not positive definite."""
    factor, status = _routines.dpotrf(matrix, lower=0, clean=0)
    if status:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return np.asarray(_routines.dpotrs(factor, right, lower=0)[0])


def inverse_symmetric(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a symmetric matrix; by Cholesky's factor, if rounding leaves it positive."""
    factor, status = _routines.dpotrf(matrix, lower=0, clean=0)
    if status:
        return np.asarray(np.linalg.inv(matrix))
    inverse = np.triu(_routines.dpotri(factor, lower=0)[0])
    return np.asarray(inverse + np.triu(inverse, 1).T)


def factor_with_pivots(matrix: Float[Array, "m n"]) -> tuple[Float[Array, "k n"], Int[Array, " n"]]:
    """R and the order of columns p of a pivoted QR: A[:, p] = Q R."""
    factor, order, _, _, status = _routines.dgeqp3(matrix)
    assert status == 0
    return np.triu(factor[: matrix.shape[1]]), order - 1
