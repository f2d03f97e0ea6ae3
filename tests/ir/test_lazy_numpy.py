"""NumPy by another name, imported at first use."""

from __future__ import annotations

import subprocess
import sys

# Names are copied in a process of its own: afterwards the module has them. What is copied from changes meanwhile.
PROBE = """
import sys, threading
import numpy
import tilegg.ir.lazy_numpy as lazy

sys.setswitchinterval(1e-6)
done = False

def importing():
    while not done:
        for i in range(50):
            setattr(numpy, f"part_{i}", i)
        for i in range(50):
            delattr(numpy, f"part_{i}")

other = threading.Thread(target=importing)
other.start()
try:
    for _ in range(300):
        lazy.__getattr__("float32")
finally:
    done = True
    other.join()
print(lazy.float32 is numpy.float32, lazy.__name__)
"""


def test_others_may_import_parts_meanwhile() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.split() == ["True", "tilegg.ir.lazy_numpy"]
