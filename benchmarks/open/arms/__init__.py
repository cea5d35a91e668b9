"""Arms of the benchmark, one file each; `benchmarks.open.arm` has the contract."""
