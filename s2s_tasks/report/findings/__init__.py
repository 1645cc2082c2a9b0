"""What a report says: each file makes one section of pairs of runs, read and heard."""
