"""The notebooks of examples/python run from their first to their last cell."""

import pytest
from conftest import ROOT

FOLDER = ROOT / "examples" / "python"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")


def test_there_are_some():
    assert len(NOTEBOOKS) >= 3
