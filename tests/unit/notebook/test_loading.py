"""``%load_ext vcnb`` is quick: what magics need is imported when one is first used."""

import subprocess
import sys

PROGRAM = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
began = time.process_time()
shell.run_line_magic("load_ext", "vcnb")
took = time.process_time() - began
heavy = {"pandas", "plotly", "pydantic", "ipywidgets", "anywidget", "kubernetes", "aiohttp", "yaml", "rocksdict", "papermill"}
print(took, *(heavy & set(sys.modules)), "vcnb.client.cluster" in sys.modules)
"""


def test_the_extension_is_loaded_in_well_below_300_milliseconds_and_imports_nothing_heavy():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60).stdout

    took, *rest = out.split()
    assert rest == ["False"]
    assert float(took) < 0.15
