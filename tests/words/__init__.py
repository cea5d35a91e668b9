"""Checks on the words of the source: shares of vague names, blind samples, proofs of renames."""
