"""What all controllers share: queues, workers, events, stories."""
