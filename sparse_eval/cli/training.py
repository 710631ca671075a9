"""Commands that split data and train models: demo, run, split, train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.files import make_folder
from ..errors import InvalidDataError
from .checks import check_als, check_seed, check_splitting
from .loading import holdout_of, is_split, load, load_parts, refuse_filters, times_for
from .options import (
    ALS,
    METRICS,
    AllowSeen,
    FactorCount,
    Filtering,
    Format,
    Iterations,
    JudgedOnly,
    Loading,
    Metrics,
    Out,
    Printed,
    Progress,
    Rules,
    Seed,
    Splitting,
    TestAt,
)
from .printing import print_evaluation, step
from .scoring import check_metrics, score_model
from .splitting import describe, only_known, split_by

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, JSONValue


def demo(
    command: typer.Context,
    users: Annotated[int, typer.Option(help="Number of synthetic users.")] = 50_000,
    items: Annotated[int, typer.Option(help="Number of synthetic items.")] = 51_277,
    factors: FactorCount = 64,
    iterations: Iterations = 15,
    seed: Seed = 0,
    metric: Metrics = [METRICS],
    progress: Progress = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("sparse_eval_demo"),
    format: Printed = Format.table,
) -> None:
    """Run every step on synthetic clicks: generate, split, train, recommend, score."""
    from .. import datasets
    from ..datasets import split

    check_metrics(metric)
    als = ALS(factors, iterations=iterations)
    check_als(als)
    make_folder(out)
    with step("generate clicks") as note:
        interactions = datasets.synthetic(users, items, seed=seed)
        note(repr(interactions))
    with step("hold out a fifth of each user's") as note:
        holdout = split.random(interactions, fraction=0.2, seed=seed)
        holdout.save(out / "split")
        note(describe(holdout))
    model = _train(holdout.train, als, seed, progress, out / "model.npz")
    ev = score_model(model, holdout, metric, progress, lists=True)
    print_evaluation(command, ev, format, out, **_about("synthetic", als, seed))
    typer.echo(f"left in {out}: split/, model.npz, per_user.csv, summary.json", err=True)


def run(
    command: typer.Context,
    input: Annotated[
        Path, typer.Argument(help="Interactions, or the training part of a ready-made split.")
    ],
    validation: Annotated[
        Path | None, typer.Argument(help="The validation part of a ready-made split.")
    ] = None,
    *,
    loading: Loading,
    filtering: Filtering,
    splitting: Splitting,
    seed: Seed = 0,
    als: ALS,
    metric: Metrics = [METRICS],
    convention: Rules = None,
    allow_seen: AllowSeen = False,
    judged_only: JudgedOnly = False,
    progress: Progress = None,
    out: Out = None,
    format: Printed = Format.table,
) -> None:
    """Split, train ALS, recommend and score."""
    metric = check_metrics(metric, convention)
    check_splitting(splitting)
    check_seed(seed)
    check_als(als)
    if out is not None:
        make_folder(out)
    if validation is None:
        interactions = load(input, loading, filtering, times_for(splitting))
        holdout = split_by(interactions, splitting, seed)
    elif splitting._replace(timestamp=None, only_known=False) != Splitting():
        raise InvalidDataError(
            "--method and its options split one file, but two files are a split already"
        )
    else:
        refuse_filters(filtering)
        holdout = holdout_of(*load_parts(input, validation, loading, times_for(splitting)))
        holdout = only_known(holdout) if splitting.only_known else holdout
    if out is not None:
        holdout.save(out / "split")
    checkpoint = None if out is None else out / "model.npz"
    model = _train(holdout.train, als, seed, progress, checkpoint)
    lists = out is not None
    ev = score_model(
        model,
        holdout,
        metric,
        progress,
        convention,
        lists=lists,
        allow_seen=allow_seen,
        judged_only=judged_only,
    )
    print_evaluation(command, ev, format, out, **_about(str(input), als, seed))


def split(
    input: Annotated[Path, typer.Argument(help="Interactions.")],
    out: Annotated[
        Path,
        typer.Option(help="Folder for train.npz, validation.npz, labels.npz and other parts."),
    ],
    *,
    loading: Loading,
    filtering: Filtering,
    splitting: Splitting,
    test_at: TestAt = None,
    seed: Seed = 0,
) -> None:
    """Hold out a part of each user's interactions, what came after a point in time, or users."""
    check_splitting(splitting)
    check_seed(seed)
    interactions = load(input, loading, filtering, times_for(splitting))
    holdout = split_by(
        interactions, splitting, seed, three_way=test_at is not None, test_at=test_at
    )
    holdout.save(out)
    more = [f"{name}.npz" for name in ("test", "fold_in") if getattr(holdout, name) is not None]
    files = ", ".join(["train.npz", "validation.npz", *more, "labels.npz"])
    typer.echo(f"left in {out}: {files}", err=True)


def train(
    input: Annotated[Path, typer.Argument(help="A folder that `split` wrote, or interactions.")],
    out: Annotated[Path, typer.Option(help="The checkpoint to write (.npz).")],
    *,
    loading: Loading,
    filtering: Filtering,
    als: ALS,
    seed: Seed = 0,
    progress: Progress = None,
) -> None:
    """Train an ALS model of implicit and save it."""
    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    check_seed(seed)
    check_als(als)
    make_folder(out.parent)
    if is_split(input):
        from ..datasets.split import Holdout

        refuse_filters(filtering)
        matrix = Holdout.load(input).train
    else:
        matrix = load(input, loading, filtering).matrix()
    _train(matrix, als, seed, progress, out)


def _train(matrix: CSRMatrix, als: ALS, seed: int, progress: bool | None, out: Path | None) -> Any:
    """Return a trained model of implicit, which has no common type, and save it to `out`."""
    from ..models.checkpoints import save_model
    from ..models.train import train_als

    with step("train") as note:
        model = train_als(matrix, **als._asdict(), seed=seed, progress=progress)
        note(f"ALS, {als.factors} factors, {als.iterations} iterations")
    if out is not None:
        save_model(model, out)
    return model


def _about(data: str, als: ALS, seed: int) -> dict[str, JSONValue]:
    """Return what is saved about the origin of a result."""
    return {"data": data, "model": {"class": "ALS", **als._asdict()}, "seed": seed}
