"""What the fork server of kill_writes imports once."""

import dpmpc.consortium.start
import dpmpc.local.launcher
import dpmpc.tables.asked
import dpmpc.tables.meet
import dpmpc.tables.synth  # noqa: F401
