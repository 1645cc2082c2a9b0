"""S2SBench as its authors publish it: found, unpacked, indexed, joined and checked."""
