"""Write data/mind_small/behaviors.tsv: a small click log in MIND's file format.

The clicks come from the package's synthetic generator, so the file carries nobody's licence. The
same package writes the same bytes. Usage: python scripts/make_sample_data.py [FOLDER]
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sparse_eval.core.atomic_files import make_folder, replacing
from sparse_eval.datasets import Interactions, synthetic

N_CLICKED = 2  # clicks of an impression
N_PASSED = 6  # news of an impression that were shown and not clicked

README = """\
# Sample data

`mind_small/behaviors.tsv` is a click log in the file format of MIND, the Microsoft News Dataset:
impression id, user, time, history and impressions, separated by tabs. It is synthetic: written by
`scripts/make_sample_data.py` from `sparse_eval.datasets.synthetic`, with fixed seeds, and holds
nothing of MIND itself. Run the script again to get the same bytes.

`report.png` shows the top of a report: `scripts/make_report_picture.py` evaluates models of
synthetic clicks, writes their report and opens it in a browser.

`benchmarks/charts.py` draws the charts of README.md and `benchmarks/RESULTS.md` from
`benchmarks/results`: `speed.svg`, `speed-dark.svg`, `lists.svg`, `checkpoint.svg`, `loading.svg`,
and `startup.svg`.
"""


def behaviors(interactions: Interactions, seed: int) -> str:
    """Return a click log: the first half of a user's clicks is history, the rest impressions."""
    rng = np.random.default_rng(seed)
    frame = interactions.to_frame()
    popular = frame["item"].to_numpy()  # once per click: passed-over news are drawn by popularity
    impressions = []
    for user, clicks in frame.groupby("user"):
        items, times = clicks["item"].tolist(), clicks["timestamp"].tolist()
        half = len(items) // 2
        history = " ".join(items[:half])
        for start in range(half, len(items), N_CLICKED):
            clicked = items[start : start + N_CLICKED]
            others = dict.fromkeys(rng.choice(popular, size=4 * N_PASSED).tolist())
            passed = [item for item in others if item not in set(items)][:N_PASSED]
            shown = np.array([f"{item}-1" for item in clicked] + [f"{item}-0" for item in passed])
            rng.shuffle(shown)
            impressions.append((times[start], user, history, " ".join(shown.tolist())))
    impressions.sort()
    lines = [
        f"{number}\t{user}\t{_mind_time(time)}\t{history}\t{shown}\n"
        for number, (time, user, history, shown) in enumerate(impressions, start=1)
    ]
    return "".join(lines)


def _mind_time(seconds: int) -> str:
    """Write a time as MIND does, 11/11/2019 9:05:58 AM, in any locale."""
    time = datetime.fromtimestamp(seconds, tz=UTC)
    half = "AM" if time.hour < 12 else "PM"
    return f"{time.month}/{time.day}/{time.year} {time.hour % 12 or 12}:{time:%M:%S} {half}"


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = Path(__file__).resolve().parents[1] / "data"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    folder = make_folder(parser.parse_args().folder)
    interactions = synthetic(n_users=300, n_items=400, n_interactions=4800, n_topics=12, seed=1)
    texts = {
        make_folder(folder / "mind_small") / "behaviors.tsv": behaviors(interactions, seed=2),
        folder / "README.md": README,
    }
    for path, text in texts.items():
        with replacing(path) as temporary:
            temporary.write_bytes(text.encode())
        print(f"wrote {path} ({len(text):,} bytes)")


if __name__ == "__main__":
    main()
