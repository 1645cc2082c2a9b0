"""Where instructions come from."""
