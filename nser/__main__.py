"""`python -m nser` is the command `nser`."""

from nser.cli.main import main

main()
