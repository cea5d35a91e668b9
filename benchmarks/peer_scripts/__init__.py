"""The peers of `accuracy.peers`, one script each; see `common`."""
