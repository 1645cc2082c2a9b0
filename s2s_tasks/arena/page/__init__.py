"""The voting page: people listen to two answers, and say which is better.

`work` splits battles between annotators, `tables` and `store` keep links, assignments and votes in
a SQLite file, `votes` reads that as judgements, `sounds` makes recordings anonymous, `forms` are
what the browser sends, `arena` is what pages show, `app` answers, `board` and `counts` show what
was voted, `serve` is the command.
"""
