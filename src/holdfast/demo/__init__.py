"""The demo: unreliable servers, sample data and pipelines, without using the internet."""
