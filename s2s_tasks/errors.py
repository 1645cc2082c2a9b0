"""The one exception that users meet."""


class S2STasksError(Exception):
    """A problem that the user can mend: the message says what, where and what to do."""
