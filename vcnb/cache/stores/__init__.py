"""Where jobs are kept: one job store over any of three conditional key-value stores (memory, RocksDB, etcd)."""
