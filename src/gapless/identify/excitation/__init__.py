"""Excitation: the motion to record next."""
