"""What pyproject.toml cannot say: the packages, and start-up files in editable installs.

`adapters/` and `task_configs/` stand at the top of the repository and are installed inside
`s2s_tasks`, because a top-level package `adapters` would collide with another one on PyPI.
"""

from setuptools import Distribution, find_packages, setup

INSIDE = ("adapters", "task_configs")


class DistributionWithData(Distribution):
    """Lets an editable install take `data-files`, which hold the start-up hook.

    setuptools' `editable_wheel` asks for them under this name, and `Distribution` has another.
    """

    has_data = Distribution.has_data_files


setup(
    distclass=DistributionWithData,
    packages=[
        *find_packages(include=["s2s_tasks", "s2s_tasks.*"]),
        *(
            f"s2s_tasks.{package}"
            for top in INSIDE
            for package in find_packages(include=[top, f"{top}.*"])
        ),
    ],
    package_dir={f"s2s_tasks.{top}": top for top in INSIDE},
)
