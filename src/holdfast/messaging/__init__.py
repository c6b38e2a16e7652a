"""Messages: the envelope, the relay of the outbox, RabbitMQ."""
