import pytest


@pytest.fixture(params=["numba", "numpy"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Indexes made in the test use these kernels."""
    monkeypatch.setenv("NSER_NUMBA", "1" if request.param == "numba" else "0")
    return str(request.param)
