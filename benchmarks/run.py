"""Build the rivals' environments, measure, and write results/SUITE.json.

python benchmarks/run.py
python benchmarks/run.py --suite lists --only ranx,rectools --rounds 3
python benchmarks/run.py --smoke                          toys, in the running environment
python benchmarks/run.py --suite lists --checkout PATH    together with another checkout's package
"""

import argparse
import importlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import environment, report
from harness.job import Job, MismatchError
from harness.progress import say

#: The suites: folders with a `suite.py` that has `run(job)`.
SUITES = sorted(path.parent.name for path in environment.SUITES.glob("*/suite.py"))
INPUTS = environment.BENCHMARKS / "inputs"


def main() -> int:
    arguments = parse()
    suites = SUITES if arguments.suite == "all" else [arguments.suite]
    if arguments.build:
        for name in sorted({who for suite in suites for who in contestants(suite, arguments)}):
            environment.python(name)
        return 0
    if not arguments.smoke:
        return max(measure(suite, arguments, INPUTS) for suite in suites)
    environment.use_running_python()
    # These times do not matter, so the suites need not wait for each other.
    with tempfile.TemporaryDirectory() as inputs, ThreadPoolExecutor(report.cores()) as pool:
        jobs = [
            pool.submit(measure, suite, arguments, Path(inputs, suite))
            for suite in reversed(suites)  # the longest ones happen to have late names
        ]
        return max(job.result() for job in jobs)


def measure(suite: str, arguments: argparse.Namespace, inputs: Path) -> int:
    """Run a suite, and write its results or print its ratios; return the exit code."""
    say(f"suite {suite}")
    try:
        job = Job(
            contestants(suite, arguments),
            1 if arguments.smoke else arguments.rounds,
            inputs,
            arguments.smoke,
            arguments.case,
            arguments.data,
        )
        found = importlib.import_module(f"suites.{suite}.suite").run(job)
        found = {"rivals": job.rivals} | found
    except (MismatchError, RuntimeError) as error:
        print(f"error: suite {suite}: {error}; no results written", file=sys.stderr)
        return 1
    if arguments.smoke or arguments.checkout:
        sys.stdout.write("".join(f"{line}\n" for line in report.summarize(suite, found)))
    say(f"finished {suite}")
    folder = arguments.results
    if folder is None and not (arguments.smoke or arguments.checkout or arguments.case):
        folder = report.RESULTS
    if folder is not None:
        say(f"wrote {report.write(suite, arguments.rounds, found, folder)}")
    return 0


def contestants(suite: str, arguments: argparse.Namespace) -> list[str]:
    """Return the contestants: the reference, the checkouts, and the requested rivals."""
    reference, *rivals = environment.contestants(suite)
    only = arguments.only
    if only is None:
        only = [] if arguments.checkout else rivals
    return [reference, *arguments.checkout, *(name for name in rivals if name in only)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--suite", choices=[*SUITES, "all"], default="all", help="what to measure (default: all)"
    )
    parser.add_argument(
        "--case", default="", help="cases whose name begins so (default: all); writes no results"
    )
    parser.add_argument(
        "--only",
        type=rivals,
        metavar="NAME,...",
        help=f"rivals beside {environment.REFERENCE} (default: all; none with --checkout)",
    )
    parser.add_argument(
        "--rounds", type=rounds, default=7, help="timed rounds after the warm-up (default: 7)"
    )
    parser.add_argument(
        "--checkout",
        type=environment.checkout,
        action="append",
        default=[],
        metavar="PATH",
        help="another checkout of the package, measured in turn with this one; its .venv is used "
        "if it has one; prints the ratios instead of writing results",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="where data are that the project does not hold, each set in a folder of its name "
        "(default: ../shared, beside the project)",
    )
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="where to write (default: results/)"
    )
    parser.add_argument(
        "--build", action="store_true", help="build the rivals' environments, and no more"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="toy sizes, one round, in the running environment; writes no results",
    )
    return parser.parse_args()


def rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rounds, which is at least 1")
    return int(text)


def rivals(text: str) -> list[str]:
    """Return the named rivals; the reference always takes part."""
    named = text.split(",")
    if unknown := set(named) - set(environment.RIVALS):
        raise argparse.ArgumentTypeError(
            f"no rival {', '.join(sorted(unknown))}; there are {', '.join(environment.RIVALS)}"
        )
    return named


if __name__ == "__main__":
    sys.exit(main())
