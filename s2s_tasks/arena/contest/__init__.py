"""Battles: who meets whom, what a judge says, and the log of it."""
