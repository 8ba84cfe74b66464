"""Single joints: each simulated alone along the measured trajectory."""
