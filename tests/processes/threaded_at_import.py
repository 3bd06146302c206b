"""A module whose import starts a thread, as some packages do: a fork after it would not be safe."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
