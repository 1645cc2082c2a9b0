"""The task files (YAML) that lm-eval reads; installed as `s2s_tasks.task_configs`."""
