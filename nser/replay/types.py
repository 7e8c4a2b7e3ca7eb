"""Names of the array types that the index passes about."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Columns = tuple[Ints, Ints, Ints, Floats, Floats]
Stretch = tuple[int, int, int, int]
Numbers = tuple[float, float, float]
Blocks = tuple[Floats, Ints]
