"""Run the command line for ``python -m pipeprof``."""

from pipeprof.cli import main

if __name__ == "__main__":
    main()
