"""What a party imports: it is one process of many, and reads no records."""

import subprocess
import sys


def test_a_party_loads_no_reader_of_records_and_no_package_of_statistics() -> None:
    code = (
        "import sys, dpmpc.aggregation.party, dpmpc.mpc.backends.sharing;"
        "loaded = {m.partition('.')[0] for m in sys.modules};"
        "print(*sorted({'duckdb', 'scipy', 'sklearn', 'matplotlib', 'click'} & loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    heavy = subprocess.run(
        [sys.executable, "-c", code.replace("import sys,", "import sys, click,")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert heavy.stdout.strip() == "click"
