"""What operators watch: logs, metrics, traces and health."""
