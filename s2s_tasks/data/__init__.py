"""S2SBench on disk, on the hub or embedded, as rows of one canonical form."""
