"""Walking: a robot that walks by itself, compared by distributions, as nothing can be aligned."""
