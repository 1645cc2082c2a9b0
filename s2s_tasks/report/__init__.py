"""What a model lost by listening, how sure that is, and where: from lm-eval's output folders."""
