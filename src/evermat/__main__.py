"""Lets `python -m evermat` run the command `evermat`."""

from evermat.cli import main

if __name__ == "__main__":
    main()
