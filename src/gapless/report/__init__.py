"""Pages and plots: what a person would rather look at than read."""
