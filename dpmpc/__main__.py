"""`python -m dpmpc`: the command `dpmpc`."""

from dpmpc.cli.main import main

if __name__ == "__main__":
    main()
