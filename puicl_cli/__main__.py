"""`python -m puicl_cli`: the `puicl` command, where it is not on the PATH."""

from puicl_cli.main import main

if __name__ == "__main__":
    main()
