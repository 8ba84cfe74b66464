"""The full model: what couples the joints, fitted once each joint alone is known."""
