"""What the tests of the core, of the client and of the pipelines share."""

pytest_plugins = ["tests.fixtures"]
