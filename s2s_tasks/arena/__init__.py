"""S2S-Arena (arXiv 2503.05085): spoken instructions, spoken answers, battles and ratings."""
