"""The voting page: people listen to two answers, and say which is better.

`work` splits battles between annotators, `tables`, `rows`, `links`, `dealing` and `store` keep
links, assignments and votes in a SQLite file, `votes` reads that as judgements, `probing` mixes
battles of known outcome in, `preparing` puts all of it together. `sounds` makes recordings
anonymous, `forms` are what the browser sends, `arena` is what pages show, `app` answers, `board`
and `counts` show what was voted, `serve` is the command.
"""
