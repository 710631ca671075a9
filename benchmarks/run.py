"""Build the rivals' environments, measure, and write results/SUITE.json.

python benchmarks/run.py
python benchmarks/run.py --suite lists --only ranx,rectools --rounds 3
"""

import argparse
import sys

import agreement
import checkpoint
import comparison
import demo
import environment
import inference
import lists
import memory
import report
import retrieval
import scale
import startup
from progress import say

SUITES = {
    "lists": lists.run,
    "startup": startup.run,
    "memory": memory.run,
    "agreement": agreement.run,
    "inference": inference.run,
    "comparison": comparison.run,
    "demo": demo.run,
    "checkpoint": checkpoint.run,
    "retrieval": retrieval.run,
    "scale": scale.run,
}
# Who has a script, where that is another one than for lists.
CONTESTANTS = {
    "agreement": environment.COMPARED,
    "checkpoint": environment.RANKING,
    "inference": inference.COMPARED,
    "scale": ["spark"],
}


def main() -> int:
    arguments = parse()
    for suite in SUITES if arguments.suite == "all" else (arguments.suite,):
        say(f"suite {suite}")
        try:
            has_script = CONTESTANTS.get(suite, environment.TIMED)
            taking_part = [name for name in arguments.only if name in has_script]
            measured = SUITES[suite](taking_part, arguments.rounds)
        except (lists.MismatchError, RuntimeError) as error:
            print(f"error: suite {suite}: {error}; no results written", file=sys.stderr)
            return 1
        say(f"wrote {report.write(suite, arguments.rounds, measured)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--suite", choices=[*SUITES, "all"], default="all", help="what to measure (default: all)"
    )
    parser.add_argument(
        "--only",
        type=rivals,
        default=list(environment.RIVALS),
        metavar="NAME,...",
        help=f"rivals beside {environment.REFERENCE} (default: all of rivals.toml)",
    )
    parser.add_argument(
        "--rounds", type=rounds, default=7, help="timed rounds after the warm-up (default: 7)"
    )
    return parser.parse_args()


def rivals(text: str) -> list[str]:
    """Return the named rivals in the order of `rivals.toml`; the reference always takes part."""
    named = {environment.REFERENCE, *text.split(",")}
    if unknown := named - set(environment.RIVALS):
        raise argparse.ArgumentTypeError(
            f"no rival {', '.join(sorted(unknown))}; there are {', '.join(environment.RIVALS)}"
        )
    return [name for name in environment.RIVALS if name in named]


def rounds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one round")
    return number


if __name__ == "__main__":
    sys.exit(main())
