"""What all tests have in common."""

import signal

from hypothesis import settings

settings.register_profile("epd", deadline=None)  # machines that run tests are shared: no test judges wall time
settings.load_profile("epd")

# Programs that are started here heed SIGHUP, also where the tests themselves were started to survive it (nohup).
signal.signal(signal.SIGHUP, signal.SIG_DFL)
