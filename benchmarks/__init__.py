"""How fast and how frugal scoring is; run by `make bench`."""
