"""tilegg: an e-graph optimizer for tile programs on Ascend NPUs."""
