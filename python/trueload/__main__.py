"""``python -m trueload`` is the same as ``trueload``."""

from trueload.cli.app import main

if __name__ == "__main__":
    main()
