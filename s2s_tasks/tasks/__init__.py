"""What the YAML files of `task_configs` name: the task class and its metrics."""
