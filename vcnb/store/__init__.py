"""Where objects live: the object store, its journal, and the informer."""
