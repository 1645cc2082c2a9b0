"""From the log of judgements to ratings that say how sure they are."""
