"""Parts of commands. In: options. Out: steps of a command.

Not here: the commands (`cli/<command>.py`).
"""
