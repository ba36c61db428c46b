"""`python -m puicl_cli`: the `puicl` command for environments without it on the PATH."""

from puicl_cli.main import main

if __name__ == "__main__":
    main()
