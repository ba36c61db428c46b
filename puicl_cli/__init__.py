"""The `puicl` command: argument parsing, one file per subcommand."""
