"""`python -m mas` is the `mas` command."""

from mas.cli.main import main

main()
