"""Read, check and save models, of `implicit` and others, without pickle."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from scipy import sparse

from ..core.atomic_files import as_input, as_path, replacing
from ..core.csr import canonical_csr
from ..core.saved_arrays import NPY, UnreadableError, read_arrays, read_sparse
from ..core.threads import one_blas_thread
from ..errors import (
    InvalidCheckpointError,
    InvalidDataError,
    InvalidFileError,
    OutputError,
    UnsupportedModelError,
)
from ..inputs.axes import Axis
from ..inputs.npy import open_array
from ..retrieval.ranker import check_factors
from ..retrieval.score_search import check_weights
from .ids import ITEM_IDS, USER_IDS, id_arrays, ids_of, keep_ids
from .scorers import ITEM_WEIGHTS, SCORES, ItemItemModel, Scorer
from .trained_on import TRAINED_ON, in_one_dtype, without_old_training

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..core.types import AnyArray, CSRMatrix, PathLike


class Checkpoint(NamedTuple):
    """A saved model.

    Attributes
    ----------
    model : SavedFactors, item-item model of implicit, ItemItemModel or Scorer
        It recommends the same items as the saved model, and has its ids.
    parameters : dict
        The other single values in the file, such as ``regularization``.
    """

    model: Any
    parameters: dict[str, object]


class SavedFactors:
    """The factors of a saved model, with the attributes that its model of implicit had.

    So nothing needs implicit, whose import takes longer than ranking a small model.

    Attributes
    ----------
    user_factors, item_factors : ndarray of float32 or float64
    regularization, alpha : float or None
        Of ALS, which has a rule for the factors of a new user.
    """

    def __init__(
        self,
        user_factors: AnyArray,
        item_factors: AnyArray,
        regularization: object,
        alpha: object,
    ) -> None:
        self.user_factors, self.item_factors = user_factors, item_factors
        self.regularization, self.alpha = regularization, alpha

    def to_implicit(self) -> Any:
        """Return the model of implicit.

        The file does not record which family saved it. ALS will do for all of them, because they
        rank by the product of their factors. The biases of BPR and LMF are columns of these.
        """
        from implicit.cpu.als import AlternatingLeastSquares

        with one_blas_thread():
            model = AlternatingLeastSquares()
        for name, value in vars(self).items():
            setattr(model, name, value)
        return model


def read_checkpoint(path: PathLike) -> Checkpoint:
    """Read a model that `implicit` or `save_model` saved, or a matrix.

    Raises `InvalidCheckpointError` if the file is missing, truncated or not an ``.npz`` file,
    contains objects that need pickle or has no factors. If the factors are not finite (the error
    names the row), or user and item factors differ in width.

    Parameters
    ----------
    path : str or Path
        An ``.npz`` file with ``user_factors`` and ``item_factors``, or with the ``data``,
        ``indices``, ``indptr`` and ``shape`` of a neighbour model. Or a square matrix of items ×
        items, in an ``.npz`` file of `scipy.sparse.save_npz` or a ``.npy`` file. Or scores of users
        × items in a ``.npy`` file. ``.npy`` files stay on disk.

    Returns
    -------
    Checkpoint
        Factors of users and items have the same dtype, float32 or float64.
    """
    path = as_input(path)
    try:
        with path.open("rb") as stream:
            if stream.read(len(NPY)) == NPY:
                return _of_matrix(open_array(path))
            stream.seek(0)
            return _of_arrays(read_arrays(stream), stream)
    except OSError as error:
        raise InvalidCheckpointError(f"cannot be read: {error.strerror or error}", path) from None
    except UnreadableError as error:
        raise InvalidCheckpointError(
            f"{error}; expected an .npz file saved by a model of implicit", path
        ) from None
    except InvalidFileError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidCheckpointError(f"is not a model: {error}", path) from None


def _of_matrix(matrix: AnyArray) -> Checkpoint:
    """Return the model in a ``.npy`` file: item-item weights if the matrix is square, or scores."""
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]:
        return Checkpoint(Scorer(matrix), {})
    return Checkpoint(ItemItemModel(check_weights(matrix), may_be_scores=True), {})


def _of_arrays(arrays: dict[str, AnyArray], stream: BinaryIO) -> Checkpoint:
    """Return the model in an ``.npz`` file; `stream` is the file."""
    parameters = {name: a.item() for name, a in arrays.items() if a.ndim == 0}
    trained_on: Any = parameters.pop(TRAINED_ON, None)
    users, items = (
        Axis.of(arrays[name], name) if name in arrays and arrays[name].ndim else None
        for name in (USER_IDS, ITEM_IDS)
    )
    model: Any
    if "user_factors" in arrays and "item_factors" in arrays:
        factors = arrays["user_factors"], arrays["item_factors"]
        check_factors(*factors)
        # Only ALS saves an alpha. Other families have no rule for the factors of a new user.
        rule = parameters if "alpha" in parameters else {}
        # implicit's compiled code takes these two dtypes, the same for users and items.
        user_factors, item_factors = in_one_dtype(*factors)
        values = rule.get("regularization"), rule.get("alpha")
        model = SavedFactors(user_factors, item_factors, *values)
    elif "format" in arrays or ITEM_WEIGHTS in arrays:  # SciPy's own, or a dense matrix with ids
        weights = check_weights(read_sparse(stream) if "format" in arrays else arrays[ITEM_WEIGHTS])
        may_be_scores = ITEM_WEIGHTS not in arrays and items is None
        return Checkpoint(ItemItemModel(weights, items, may_be_scores, trained_on), {})
    elif SCORES in arrays:
        return Checkpoint(Scorer(arrays[SCORES], users=users, items=items), {})
    elif {"data", "indices", "indptr", "shape"} <= arrays.keys():
        from implicit.nearest_neighbours import ItemItemRecommender, NearestNeighboursScorer

        parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
        if any(part.dtype.kind not in "iu" for part in parts[1:]):
            raise InvalidDataError("the indices of its similarity matrix are not whole numbers")
        matrix = sparse.csr_matrix(parts, shape=tuple(arrays["shape"].tolist()))
        model = ItemItemRecommender()
        similarity: Any = check_similarity(matrix)
        model.similarity = similarity.astype(np.float64)
        # As its own `load` does, which does not check what it reads.
        model.scorer = NearestNeighboursScorer(model.similarity)
    else:
        raise InvalidDataError(
            "it has neither factors of users and items nor similarities, only "
            f"{', '.join(arrays) or 'nothing'}; expected a file saved by a fitted model of implicit"
        )
    keep_ids(model, users, items)
    model.trained_on = trained_on
    return Checkpoint(model, parameters)


def save_model(model: Any, path: PathLike, *, users: Any = None, items: Any = None) -> Path:
    """Save a model together with the ids of its users and items.

    With its ids a model can be evaluated against other data than it was trained on: users and
    items are matched by id. The file is one that ``model.save`` writes, with two more arrays,
    ``user_ids`` and ``item_ids``, which implicit's own ``load`` makes attributes of the model.

    Parameters
    ----------
    model : fitted model of implicit, Factors, ItemItemModel or Scorer
        ALS, BPR, LMF or an item-item neighbour model; the result of `factor_model` or of one of
        `sparse_eval.baselines`; a `Scorer` of a matrix.
    path : str or Path
        Ends in ``.npz``. An existing file is replaced once the new one is complete.
    users, items : sequence of hashable, optional
        The ids of the rows and columns of the matrix that it was trained on: all text or all whole
        numbers. By default the ids that the model has, as from `train_als` with labelled data.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be saved, as before it is fitted.
    InvalidDataError
        If the ids are of other types, repeated, or more or fewer than users or items.
    OutputError
        If the file cannot be written.

    See Also
    --------
    train_als : Train a model that keeps its ids.
    evaluate_model : Evaluate the model, or the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = se.save_model(se.train_als(holdout.train, factors=8), Path(folder) / "als.npz")
    ...     ev = se.evaluate_model(path, holdout, "ndcg@10")
    >>> ev.per_user.index[:3].tolist()
    ['U1', 'U10', 'U100']
    """
    with saving_model(model, path, users=users, items=items) as target:
        return target


def load_model(path: PathLike) -> Any:
    """Read a model, with the ids of its users and items.

    Parameters
    ----------
    path : str or Path
        A file that `save_model`, a callback or a model of implicit saved, or a matrix: every file
        that `evaluate_model` takes. Nothing in it is unpickled.

    Returns
    -------
    model
        ALS of implicit for any file of factors, an item-item model or a `Scorer`. `user_ids` and
        `item_ids` are the ids of its rows and columns, if it was saved with them.

    Raises
    ------
    InvalidCheckpointError
        If the file has no model, or is damaged.

    See Also
    --------
    save_model : The counterpart.
    evaluate_model : Evaluate the model, or the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = se.save_model(se.train_als(clicks, factors=8), Path(folder) / "als.npz")
    ...     model = se.load_model(path)
    >>> model.user_factors.shape, list(model.user_ids)[:3]
    ((200, 8), ['U1', 'U10', 'U100'])
    """
    model = read_checkpoint(path).model
    return model.to_implicit() if isinstance(model, SavedFactors) else model


@contextmanager
def saving_model(
    model: Any, path: PathLike, *, users: Any = None, items: Any = None
) -> Iterator[Path]:
    """Do what `save_model` does, and move the file to its place once the block succeeds."""
    path = as_path(path)
    if path.suffix != ".npz":
        raise InvalidDataError(f"path is {str(path)!r}; expected a file name that ends in .npz")
    if isinstance(model, Scorer) and model.item_item is not None:
        model = ItemItemModel(model.item_item, model.item_ids)
    if not callable(getattr(model, "save", None)) or (
        isinstance(model, Scorer) and model.matrix is None
    ):
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be saved; expected a fitted model of implicit, or "
            "se.Scorer(matrix)"
        )
    model = without_old_training(model)
    arrays = id_arrays(*ids_of(model, users, items))
    if trained_on := getattr(model, TRAINED_ON, None):
        arrays[TRAINED_ON] = np.array(trained_on)
    if isinstance(model, ItemItemModel) and sparse.issparse(model.weights):
        arrays[ITEM_WEIGHTS] = np.array(True)  # a square matrix saved by SciPy could be scores
    with replacing(path) as temporary:
        try:
            model.save(str(temporary))
        except OutputError as error:  # of a model of ours, which names the temporary file
            raise error.__cause__ or error from None
        with zipfile.ZipFile(temporary, "a") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
        yield path


def check_similarity(similarity: object) -> CSRMatrix:
    """Return a neighbour model's matrix in canonical form, or raise `InvalidDataError`.

    It must be square and finite, because implicit's compiled code does not check it.
    """
    csr: CSRMatrix = canonical_csr(similarity, "the similarity matrix", sum_duplicates=True)
    if csr.shape[0] != csr.shape[1]:
        raise InvalidDataError(f"the similarity matrix has shape {csr.shape}; expected a square")
    if not np.isfinite(csr.data).all():
        raise InvalidDataError("the similarity matrix contains numbers that are not finite")
    return csr
