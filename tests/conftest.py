"""What every test starts from."""

import signal

# A runner in the background may have been started with Ctrl-C ignored, which its children inherit:
# the tests that interrupt one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
