"""`python -m evermat.bench SUITE`, where the `evermat` command is not installed."""

from __future__ import annotations

import argparse

from evermat.bench import SUITES, run


def main() -> None:
    """Read the options and run a suite."""
    parser = argparse.ArgumentParser(prog="python -m evermat.bench")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--write", metavar="DOCUMENT")
    chosen = parser.parse_args()
    run(
        chosen.suite,
        scale=chosen.scale,
        repeat=chosen.repeat,
        peers=not chosen.no_peers,
        only=chosen.only,
        time_limit=chosen.time_limit,
        json=chosen.json,
        write=chosen.write,
    )


if __name__ == "__main__":
    main()
