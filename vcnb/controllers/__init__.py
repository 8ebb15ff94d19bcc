"""Why things move: work queues and reconcilers, each ignorant of the store it talks to."""
