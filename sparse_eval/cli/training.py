"""Commands that split data and train models: demo, run, split, train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core.arguments import check_whole
from ..core.files import make_folder, make_folder_of, remove
from ..errors import InvalidDataError, shown
from . import options
from .echo import echo
from .loading import (
    check_inputs_are_kept,
    files_of_split,
    holdout_of,
    is_split,
    load,
    load_parts,
    refuse_filters,
    times_for,
)
from .model_options import Hyperparameters
from .printing import print_evaluation, step, warnings_in_a_line
from .scoring import check_metrics, score_model
from .splitting import describe, only_known, split_by

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, JSONValue
    from ..datasets.split import Holdout
    from ..jobs.callback import EvaluationCallback


_EVALUATION = "Evaluation of each iteration"


def demo(
    command: typer.Context,
    users: Annotated[int, typer.Option(help="Number of synthetic users.")] = 50_000,
    items: Annotated[int, typer.Option(help="Number of synthetic items.")] = 51_277,
    factors: Annotated[int, typer.Option(help="ALS: number of latent factors.")] = 64,
    iterations: Annotated[int, typer.Option(help="ALS: number of iterations.")] = 15,
    seed: options.Seed = 0,
    metric: options.Metrics = [options.METRICS],
    progress: options.Progress = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("sparse_eval_demo"),
    format: options.Printed = options.Format.table,
) -> None:
    """Run every step on synthetic clicks: generate, split, train, recommend, score."""
    from .. import datasets
    from ..datasets import split
    from ..metrics.protocol import Protocol

    check_metrics(metric)
    model = Hyperparameters(factors=factors, iterations=iterations)
    model.settings()  # refuses what is out of range, before data are made
    make_folder(out)
    with step("generate clicks") as note:
        interactions = datasets.synthetic(users, items, seed=seed)
        note(repr(interactions))
    with step("hold out a fifth of each user's") as note:
        holdout = split.random(interactions, fraction=0.2, seed=seed)
        _save_split(holdout, out)
        note(describe(holdout))
    trained = _train(holdout.train, model, seed, progress, out / "model.npz")
    ev = score_model(trained, holdout, Protocol(metric), progress, lists=True)
    print_evaluation(command, ev, format, out, **_about("synthetic", model, seed))
    echo(f"left in {shown(out)}: split/, model.npz, per_user.csv, summary.json", err=True)


def run(
    command: typer.Context,
    input: Annotated[
        Path, typer.Argument(help="Interactions, or the training part of a ready-made split.")
    ],
    validation: Annotated[
        Path | None, typer.Argument(help="The validation part of a ready-made split.")
    ] = None,
    *,
    loading: options.Loading,
    filtering: options.Filtering,
    splitting: options.Splitting,
    seed: options.Seed = 0,
    model: Hyperparameters,
    metric: options.Metrics = [options.METRICS],
    convention: options.Rules = None,
    allow_seen: options.AllowSeen = False,
    judged_only: options.JudgedOnly = False,
    progress: options.Progress = None,
    out: options.Out = None,
    format: options.Printed = options.Format.table,
) -> None:
    """Split, train a model, recommend and score."""
    from ..metrics.protocol import Protocol

    metric = check_metrics(metric, convention)
    model.settings()  # refuses what does not apply, before data are read
    if splitting.how is options.Method.users:
        model.check_new_users("--method users")
    if out is not None:
        outputs = [*files_of_split(out / "split"), out / "model.npz"]
        check_inputs_are_kept([input, validation], outputs)
        make_folder(out)
    if validation is None:
        interactions = load(input, loading, filtering, times_for(splitting))
        holdout = split_by(interactions, splitting, seed)
    elif splitting._replace(timestamp=None, only_known=False) != options.Splitting():
        raise InvalidDataError(
            "--method and its options split one file, but two files are a split already"
        )
    else:
        refuse_filters(filtering)
        holdout = holdout_of(*load_parts(input, validation, loading, times_for(splitting)))
        holdout = only_known(holdout) if splitting.only_known else holdout
    if out is not None:
        _save_split(holdout, out)
    checkpoint = None if out is None else out / "model.npz"
    trained = _train(holdout.train, model, seed, progress, checkpoint)
    protocol = Protocol(
        metric, convention=convention, filter_seen=not allow_seen, judged_only=judged_only
    )
    ev = score_model(trained, holdout, protocol, progress, lists=out is not None)
    print_evaluation(command, ev, format, out, **_about(str(input), model, seed))


def split(
    input: Annotated[Path, typer.Argument(help="Interactions.")],
    out: Annotated[
        Path,
        typer.Option(help="Folder for train.npz, validation.npz, labels.npz and other parts."),
    ],
    *,
    loading: options.Loading,
    filtering: options.Filtering,
    splitting: options.Splitting,
    test_at: options.TestAt = None,
    seed: options.Seed = 0,
) -> None:
    """Hold out a part of each user's interactions, what came after a point in time, or users."""
    check_inputs_are_kept([input], files_of_split(out))
    interactions = load(input, loading, filtering, times_for(splitting))
    holdout = split_by(
        interactions, splitting, seed, three_way=test_at is not None, test_at=test_at
    )
    holdout.save(out)
    more = [f"{name}.npz" for name in ("test", "fold_in") if getattr(holdout, name) is not None]
    files = ", ".join(["train.npz", "validation.npz", *more, "labels.npz"])
    echo(f"left in {shown(out)}: {files}", err=True)


def train(
    input: Annotated[Path, typer.Argument(help="A folder that `split` wrote, or interactions.")],
    out: Annotated[Path, typer.Option(help="The checkpoint to write (.npz).")],
    *,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="The validation part, if the input is the training part of a ready-made split.",
            rich_help_panel=_EVALUATION,
        ),
    ] = None,
    loading: options.Loading,
    filtering: options.Filtering,
    model: Hyperparameters,
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            help="Evaluate each iteration; repeatable. The first metric says which is best.",
            show_default="ndcg@10 with any of these options",
            rich_help_panel=_EVALUATION,
        ),
    ] = [],
    patience: Annotated[
        int | None,
        typer.Option(
            help="Stop after this many iterations without improvement; the model is the best one.",
            rich_help_panel=_EVALUATION,
        ),
    ] = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a checkpoint of each iteration; created if missing.",
            rich_help_panel=_EVALUATION,
        ),
    ] = None,
    keep_best: Annotated[
        bool,
        typer.Option(
            "--keep-best",
            help="Keep only the best checkpoint there, best.npz.",
            rich_help_panel=_EVALUATION,
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a training that was stopped, after its last checkpoint there.",
            rich_help_panel=_EVALUATION,
        ),
    ] = False,
    seed: options.Seed = 0,
    progress: options.Progress = None,
) -> None:
    """Train a model of implicit and save it."""
    from ..datasets.split import Holdout

    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    settings = model.settings()  # refuses what does not apply, before data are read
    given = {
        "--validation": validation,
        "--metric": metric,
        "--patience": patience,
        "--checkpoints": checkpoints,
        "--keep-best": keep_best,
        "--resume": resume,
    }
    evaluating = [name for name, value in given.items() if value]
    if evaluating and "iterations" not in settings:
        raise InvalidDataError(
            f"{evaluating[0]} is for models that are trained in iterations, and {model.model} is "
            "not; leave it out, and evaluate with: sparse-eval score"
        )
    if (keep_best or resume) and checkpoints is None:
        needed = "--resume continues from" if resume else "--keep-best keeps"
        raise InvalidDataError(f"{needed} a checkpoint; name its folder with --checkpoints")
    if patience is not None:
        check_whole("patience", patience, 1)
    if evaluating:
        metric = check_metrics(metric or ["ndcg@10"])
    check_inputs_are_kept([input, validation], [out])
    make_folder_of(out)
    if is_split(input) and validation is not None:
        raise InvalidDataError(f"{input} has a validation part of its own; leave out --validation")
    if is_split(input) or validation is not None:
        refuse_filters(filtering)
        if validation is None:
            holdout = Holdout.load(input)
        else:
            holdout = holdout_of(*load_parts(input, validation, loading))
        if evaluating and holdout.fold_in is not None:
            model.check_new_users(str(input))
        matrix = holdout.train
    elif evaluating:
        raise InvalidDataError(
            f"{evaluating[0]} needs --validation, or a folder that `split` wrote"
        )
    else:
        matrix = load(input, loading, filtering).matrix()
    if not evaluating:
        _train(matrix, model, seed, progress, out)
        return
    from ..jobs.callback import EvaluationCallback

    keep: Literal["best", "all"] = "best" if keep_best else "all"
    callback = EvaluationCallback(
        holdout, metric, patience=patience, out=checkpoints, keep=keep, resume=resume
    )
    with warnings_in_a_line():
        _train(matrix, model, seed, progress, out, callback)


def _save_split(holdout: Holdout, out: Path) -> None:
    """Save a split, without what an earlier run left there of another one.

    That is kept where there is no room for the split.
    """
    from ..results.saving import remove_saved

    with holdout.saving(out / "split"):
        remove_saved(out)
        remove(out / "model.npz")


def _train(
    matrix: CSRMatrix,
    model: Hyperparameters,
    seed: int,
    progress: bool | None,
    out: Path | None,
    callback: EvaluationCallback | None = None,
) -> Any:
    """Return a trained model of implicit, which has no common type, and save it to `out`."""
    from ..models.checkpoints import save_model

    with step("train") as note:
        trained = model.train(matrix, seed, progress, callback)
        note(model.describe())
        if callback is not None:
            note(callback.describe())
    if out is not None:
        save_model(trained, out)
    return trained


def _about(data: str, model: Hyperparameters, seed: int) -> dict[str, JSONValue]:
    """Return what is saved about the origin of a result."""
    return {"data": data, "model": model.about(), "seed": seed}
