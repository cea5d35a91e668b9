"""Tools of the benchmark, one file each; `benchmarks.open.tool_process` says what it calls."""
