"""The side that decides: claims waiting jobs, lists their sources, hands batches to workers, and keeps the accounts."""
