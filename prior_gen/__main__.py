"""`python -m prior_gen`: the `prior-gen` command for environments without it on the PATH."""

from prior_gen.cli import main

if __name__ == "__main__":
    main()
