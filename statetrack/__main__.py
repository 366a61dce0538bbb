"""`python -m statetrack` is the program `statetrack`."""

from statetrack.cli.app import main

if __name__ == "__main__":
    main()
