"""`python -m evermat` is the command `evermat`."""

from evermat.cli import main

if __name__ == "__main__":
    main()
