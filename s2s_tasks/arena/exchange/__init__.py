"""Judgements in others' formats, read and written."""
