"""The `puicl` command: argument parsing, one file a subcommand."""
