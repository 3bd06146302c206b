"""What the fork server of kill_writes imports once."""

import dpmpc.runs.launcher
import dpmpc.runs.start
import dpmpc.runs.stats
import dpmpc.runs.synth  # noqa: F401
