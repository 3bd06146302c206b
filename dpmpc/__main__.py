"""`python -m dpmpc`: the command `dpmpc`."""

from dpmpc.cli.main import program

if __name__ == "__main__":
    program()
