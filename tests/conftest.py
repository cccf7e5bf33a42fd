"""What all tests have in common."""

from hypothesis import settings

settings.register_profile("epd", deadline=None)  # machines that run tests are shared: no test judges wall time
settings.load_profile("epd")
