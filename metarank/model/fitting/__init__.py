"""The fit of a model: `fit.fit_model` is its order, `auto` decides what a user leaves open."""
