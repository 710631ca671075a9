"""Commands that split data and train models: demo, run, split, train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..core.arguments import check_whole
from ..core.files import make_folder, make_folder_of, remove
from ..errors import InvalidDataError, shown
from .echo import note
from .hyperparameters import Hyperparameters
from .interrupts import leaves
from .loading import Events, Splitting, check_inputs_are_kept, describe, files_of_split, is_split
from .measuring import Measuring, score_model
from .options import Evaluating, Execution, Output, Progress, Seed, option
from .printing import Printing, step, warnings_in_a_line

if TYPE_CHECKING:
    from ..datasets.split import Holdout


def demo(
    *,
    n_users: Annotated[int, option("--users")] = 50_000,
    n_items: Annotated[int, option("--items")] = 51_277,
    model: Hyperparameters,
    measuring: Measuring,
    execution: Evaluating,
    out: Output[Path] = Path("sparse_eval_demo"),
    printing: Printing,
) -> None:
    """Run every step on synthetic clicks: generate, split, train, recommend, score.

    Parameters
    ----------
    n_users
        Number of synthetic users.
    n_items
        Number of synthetic items.
    out
        Folder for the results.
    """
    from .. import datasets
    from ..datasets import split

    protocol = measuring.of_models()
    model.settings()  # raises before data are made
    make_folder(out)
    leaves(lambda: _left_in(out))
    with step("generate clicks") as done:
        interactions = datasets.synthetic(n_users, n_items, seed=model.seed)
        done(repr(interactions))
    with step("hold out a fifth of each user's") as done:
        holdout = split.random(interactions, fraction=0.2, seed=model.seed)
        _save_split(holdout, out)
        done(describe(holdout))
    trained = model.train(holdout.train, execution.bars, out / "model.npz")
    ev = score_model(trained, holdout, protocol, execution, lists=True)
    printing.evaluation(ev, out, **model.about("synthetic"))
    note(f"left in {shown(out)}: split/, model.npz, per_user.csv, summary.json")


def run(
    input: Path,
    validation: Path | None = None,
    *,
    splitting: Splitting,
    model: Hyperparameters,
    measuring: Measuring,
    execution: Evaluating,
    out: Output[Path | None] = None,
    printing: Printing,
) -> None:
    """Split, train a model, recommend and score.

    Example: sparse-eval run clicks.csv --at 2019-11-14 --out results

    Parameters
    ----------
    input
        Interactions, or the training part of a ready-made split.
    validation
        The validation part of a ready-made split.
    out
        Folder for summary.json and per_user.csv; created if missing.
    """
    protocol = measuring.of_models()
    model.settings()  # raises before data are read
    if splitting.how == "users":
        model.check_new_users("--method users")
    if out is not None:
        outputs = [*files_of_split(out / "split"), out / "model.npz"]
        check_inputs_are_kept([input, validation], outputs)
        make_folder(out)
        leaves(lambda: _left_in(out))
    if validation is None:
        holdout = splitting.split(splitting.events(input), model.seed)
    elif splitting.is_given:
        raise InvalidDataError(
            "--method and its options split one file, but two files are a split already"
        )
    else:
        splitting.refuse_conditions()
        holdout = splitting.known(splitting.parts(input, validation, splitting.times)[1])
    if out is not None:
        _save_split(holdout, out)
    checkpoint = None if out is None else out / "model.npz"
    trained = model.train(holdout.train, execution.bars, checkpoint)
    ev = score_model(trained, holdout, protocol, execution, lists=out is not None)
    printing.evaluation(ev, out, **model.about(str(input)))


def split(
    input: Path, *, out: Output[Path], splitting: Splitting, seed: Seed = 0, execution: Execution
) -> None:
    """Hold out a part of each user's interactions, what came after a point in time, or users.

    Example: sparse-eval split clicks.csv --at 2019-11-14 --out split

    Parameters
    ----------
    input
        Interactions.
    out
        Folder for train.npz, validation.npz, labels.npz and other parts.
    """
    check_inputs_are_kept([input], files_of_split(out))
    holdout = splitting.split(splitting.events(input), seed)
    holdout.save(out)
    more = [f"{name}.npz" for name in ("test", "fold_in") if getattr(holdout, name) is not None]
    files = ", ".join(["train.npz", "validation.npz", *more, "labels.npz"])
    note(f"left in {shown(out)}: {files}")


def train(
    input: Path,
    *,
    out: Output[Path],
    validation: Path | None = None,
    loading: Events,
    model: Hyperparameters,
    metrics: Annotated[list[str] | None, option("--metric", "-m")] = None,
    patience: int | None = None,
    checkpoints: Output[Path | None] = None,
    keep_best: bool = False,
    resume: bool = False,
    execution: Progress,
) -> None:
    """Train a model of implicit and save it.

    Example: sparse-eval train split --out als.npz

    Parameters
    ----------
    input
        A folder that `split` wrote, or interactions.
    out
        The checkpoint to write (.npz).
    validation
        The validation part, if the input is the training part of a ready-made split.
    metrics
        Evaluate each iteration; repeatable. The first metric says which is best. [ndcg@10 with any
        of these options]
    patience
        Stop after this many iterations without improvement; the model is the best one.
    checkpoints
        Folder for a checkpoint of each iteration; created if missing.
    keep_best
        Keep only the best checkpoint there, best.npz.
    resume
        Continue a training that was stopped, after its last checkpoint there.
    """
    from ..datasets.split import Holdout

    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    settings = model.settings()  # raises before data are read
    names = ("--validation", "--metric", "--patience", "--checkpoints", "--keep-best", "--resume")
    values = (validation, metrics, patience, checkpoints, keep_best, resume)
    evaluating = next((name for name, value in zip(names, values, strict=True) if value), None)
    if evaluating and "iterations" not in settings:
        raise InvalidDataError(
            f"{evaluating} is for models that are trained in iterations, and {model.model} is "
            "not; leave it out, and evaluate with: sparse-eval score"
        )
    if (keep_best or resume) and checkpoints is None:
        needed = "--resume continues from" if resume else "--keep-best keeps"
        raise InvalidDataError(f"{needed} a checkpoint; name its folder with --checkpoints")
    if patience is not None:
        check_whole("--patience", patience, 1)
    protocol = Measuring(metrics or ["ndcg@10"], None, False, False).of_models()
    check_inputs_are_kept([input, validation], [out])
    make_folder_of(out)
    if is_split(input) and validation is not None:
        raise InvalidDataError(f"{input} has a validation part of its own; leave out --validation")
    callback = None
    if is_split(input) or validation is not None:
        loading.refuse_conditions()
        holdout = loading.parts(input, validation)[1] if validation else Holdout.load(input)
        matrix = holdout.train
        if evaluating:
            from ..jobs.callback import EvaluationCallback

            if holdout.fold_in is not None:
                model.check_new_users(str(input))
            keep: Literal["best", "all"] = "best" if keep_best else "all"
            callback = EvaluationCallback(
                holdout, protocol, patience=patience, out=checkpoints, keep=keep, resume=resume
            )
    elif evaluating:
        raise InvalidDataError(f"{evaluating} needs --validation, or a folder that `split` wrote")
    else:
        matrix = loading.read(input, **loading.conditions()).matrix()

    def left() -> str | None:
        if checkpoints is None or not any(checkpoints.glob("[!.]*.npz")):
            return None
        score = f"score {checkpoints}" + (f" --split {input}" if input.is_dir() else "")
        return f"checkpoints so far are in {checkpoints}; compare them with: sparse-eval {score}"

    leaves(left)
    with warnings_in_a_line():
        model.train(matrix, execution.bars, out, callback)


def _left_in(out: Path) -> str | None:
    """Describe the work that `demo` and `run` leave in their folder."""
    if not (out / "split" / "labels.npz").exists():
        return None
    if (out / "model.npz").exists():
        score = f"score {out / 'model.npz'} --split {out / 'split'}"
        return f"{out} has the split and the model; go on with: sparse-eval {score}"
    return f"{out} has the split; go on with: sparse-eval train {out / 'split'}"


def _save_split(holdout: Holdout, out: Path) -> None:
    """Save a split, and remove the files of an earlier run.

    They are kept if there is no room for the split.
    """
    from ..results.saving import remove_saved

    with holdout.saving(out / "split"):
        remove_saved(out)
        remove(out / "model.npz")
