"""The commands that end with a model: demo, run, split, train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.files import make_folder, replacing
from ..errors import InvalidDataError
from .data import describe, is_split, load, load_split, loader_options, split_by
from .options import (
    METRICS,
    Alpha,
    FactorCount,
    Format,
    Fraction,
    Header,
    Held,
    History,
    InputFormat,
    Item,
    Iterations,
    Metrics,
    Out,
    Printed,
    Progress,
    Regularization,
    Rules,
    Seed,
    SkipBad,
    SplitMethod,
    Time,
    User,
    Value,
)
from .printing import print_evaluation, step
from .scoring import check_metrics, score_model

__all__ = ["demo", "run", "split", "train"]


def demo(
    command: typer.Context,
    users: Annotated[int, typer.Option(help="Synthetic users.")] = 50_000,
    items: Annotated[int, typer.Option(help="Synthetic items.")] = 51_277,
    factors: FactorCount = 64,
    iterations: Iterations = 15,
    seed: Seed = 0,
    metric: Metrics = [METRICS],  # noqa: B006 - typer copies it
    progress: Progress = None,
    out: Annotated[Path, typer.Option(help="Folder for what it leaves.")] = Path(
        "sparse_eval_demo"
    ),
    format: Printed = Format.table,  # noqa: A002 - the option's name
) -> None:
    """Do the whole way on synthetic clicks: generate, split, train, recommend, score."""
    from .. import datasets
    from ..datasets import split

    check_metrics(metric)
    make_folder(out)
    with step("generate clicks") as note:
        interactions = datasets.synthetic(users, items, seed=seed)
        note(repr(interactions))
    with step("hold out a fifth of each user's") as note:
        holdout = split.random(interactions, fraction=0.2, seed=seed)
        holdout.save(out / "split")
        note(describe(holdout))
    checkpoint = out / "model.npz"
    model = _train(holdout.train, factors, 0.1, 40.0, iterations, seed, progress, checkpoint)
    ev = score_model(model, holdout, metric, progress, lists=True)
    about = _about("synthetic", factors, 0.1, 40.0, iterations, seed)
    print_evaluation(command, ev, format, out, **about)
    typer.echo(f"left in {out}: split/, model.npz, per_user.csv, summary.json", err=True)


def run(
    command: typer.Context,
    input: Annotated[Path, typer.Argument(help="Interactions; or the train part of a split.")],  # noqa: A002
    validation: Annotated[
        Path | None, typer.Argument(help="The other part of a ready-made split.")
    ] = None,
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    seed: Seed = 0,
    factors: FactorCount = 64,
    alpha: Alpha = 40.0,
    regularization: Regularization = 0.1,
    iterations: Iterations = 15,
    metric: Metrics = [METRICS],  # noqa: B006
    convention: Rules = None,
    progress: Progress = None,
    out: Out = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Split, train ALS, recommend and score."""
    metric = check_metrics(metric, convention)
    if out is not None:
        make_folder(out)
    options = loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    if validation is None:
        holdout = split_by(load(input, input_format, options), method, fraction, n, seed)
    elif any(option is not None for option in (method, fraction, n)):
        raise InvalidDataError(
            "--method, --fraction and --n say how to split, but two files are a split already"
        )
    else:
        holdout = load_split(input, validation, input_format, options)
    if out is not None:
        holdout.save(out / "split")
    checkpoint = None if out is None else out / "model.npz"
    model = _train(
        holdout.train, factors, regularization, alpha, iterations, seed, progress, checkpoint
    )
    ev = score_model(model, holdout, metric, progress, convention, lists=out is not None)
    about = _about(str(input), factors, regularization, alpha, iterations, seed)
    print_evaluation(command, ev, format, out, **about)


def split(
    input: Annotated[Path, typer.Argument(help="Interactions.")],  # noqa: A002
    out: Annotated[Path, typer.Option(help="Folder for train.npz, validation.npz, labels.npz.")],
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    seed: Seed = 0,
) -> None:
    """Hold out a part of each user's interactions."""
    options = loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    split_by(load(input, input_format, options), method, fraction, n, seed).save(out)
    typer.echo(f"left in {out}: train.npz, validation.npz, labels.npz", err=True)


def train(
    input: Annotated[Path, typer.Argument(help="A folder that `split` wrote, or interactions.")],  # noqa: A002
    out: Annotated[Path, typer.Option(help="The checkpoint to write (.npz).")],
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    factors: FactorCount = 64,
    alpha: Alpha = 40.0,
    regularization: Regularization = 0.1,
    iterations: Iterations = 15,
    seed: Seed = 0,
    progress: Progress = None,
) -> None:
    """Train an ALS model of implicit and save it."""
    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    make_folder(out.parent)
    if is_split(input):
        from ..datasets.split import Holdout

        matrix = Holdout.load(input).train
    else:
        options = loader_options(user, item, value, None, header, skip_bad_lines, history)
        matrix = load(input, input_format, options).matrix()
    _train(matrix, factors, regularization, alpha, iterations, seed, progress, out)


def _train(
    matrix: Any,
    factors: int,
    regularization: float,
    alpha: float,
    iterations: int,
    seed: int,
    progress: bool | None,
    out: Path | None,
) -> Any:
    from ..models.train import train_als

    with step("train") as note:
        model = train_als(matrix, factors, regularization, alpha, iterations, seed, progress)
        note(f"ALS, {factors} factors, {iterations} iterations")
    if out is not None:
        with replacing(out) as temporary:
            model.save(str(temporary))
    return model


def _about(
    data: str, factors: int, regularization: float, alpha: float, iterations: int, seed: int
) -> dict[str, Any]:
    """Return what the result comes from."""
    model = {
        "factors": factors,
        "regularization": regularization,
        "alpha": alpha,
        "iterations": iterations,
    }
    return {"data": data, "model": {"class": "ALS", **model}, "seed": seed}
