"""The result of a search for hyperparameters."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.formatting import MOST_ROWS, text_of_frame

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from ..results.evaluation import Evaluation


class Tuning(NamedTuple):
    """The result of a search, as `tune` returns it. Printed, a table.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row per finished trial: ``trial``, its number in the study; ``best``, true for at most
        one trial; ``status``, "ok", "pruned" or "failed"; ``error``, empty or the reason in one
        line; ``factors``, ``alpha``, ``regularization`` and ``iterations``; ``best_iteration``,
        the number of iterations after which the monitored metric was best; each metric on the
        validation part at that point, NaN if the trial failed, called ``hit_rate@10 (1+99)`` and
        the like among candidates; ``seconds``, its duration.
    best : dict or None
        The options with which `train_als` reproduces the model of the best trial: its parameters,
        with ``iterations`` its best iteration, and ``seed``. None if no trial came to its end.
    test : Evaluation or None
        The test of the best trial. None without a test part.
    study : optuna.Study
        The study, such as for ``optuna.visualization``. The metrics of a trial are among its
        ``user_attrs``.
    """

    trials: pd.DataFrame
    best: dict[str, Any] | None
    test: Evaluation | None
    study: optuna.Study

    def scores(self) -> pd.DataFrame:
        """Return the metrics of the best trial: ``metric``, ``validation`` and ``test``.

        Empty without a test.
        """
        import pandas as pd

        rows = []
        if self.test is not None:
            best = self.trials[self.trials["best"]].iloc[0]
            names = {name: self.test.shown(name) for name in self.test.names}
            rows = [(shown, float(best[shown]), self.test[name]) for name, shown in names.items()]
        return pd.DataFrame(rows, columns=["metric", "validation", "test"])

    def to_markdown(self) -> str:
        """Return what ``print(tuning)`` shows as Markdown, with all trials."""
        return self._show("pipe", len(self.trials))

    def __repr__(self) -> str:
        return f"<{self._heading()}>\n{self._show('simple', MOST_ROWS)}"

    def __str__(self) -> str:
        return self._show("simple", len(self.trials))

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>{self._show('html', MOST_ROWS)}"

    def _heading(self) -> str:
        counts = self.trials["status"].value_counts()
        states = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "none finished"
        return f"Tuning of {len(self.trials):,} trial{'s' * (len(self.trials) != 1)}: {states}"

    def _show(self, style: str, most: int) -> str:
        """Return the trials, the metrics of the best one, and a line about each."""
        trials = self.trials
        ok, failed = (trials["status"] == "ok").all(), (trials["status"] == "failed").any()
        shown = trials.assign(
            best=["*" if best else "" for best in trials["best"]],
            alpha=[f"{value:g}" for value in trials["alpha"]],
            regularization=[f"{value:g}" for value in trials["regularization"]],
            seconds=[f"{value:.1f}" for value in trials["seconds"]],
        ).drop(columns=["status"] * bool(ok) + ["error"] * (not failed))
        texts = [text_of_frame(shown.head(most), style)]
        lines = []
        if len(trials) > most:
            lines.append(f"… and {len(trials) - most:,} more trials: .trials")
        if self.best is not None:
            number_of_best = trials.loc[trials["best"], "trial"].iloc[0]
            parameters = ", ".join(f"{name} {value:g}" for name, value in self.best.items())
            lines.append(f"best: trial {number_of_best} ({parameters})")
        if self.test is not None:
            texts.append(text_of_frame(self.scores(), style))
            lines.append(
                "test: trained again on train and validation; means over "
                f"{self.test.n_users:,} users, {self.test.n_skipped:,} left out (nothing relevant)"
            )
        if style == "html":
            return "".join([*texts, *(f"<p>{html.escape(line)}</p>" for line in lines)])
        return "\n\n".join([*texts, "\n".join(lines)]).rstrip()
