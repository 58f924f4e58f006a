"""What runs the tests: `make test` and `make steady`."""
