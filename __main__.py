"""``python -m tilegg``: the command line."""

from .cli import main

raise SystemExit(main())
