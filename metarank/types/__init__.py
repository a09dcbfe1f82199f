"""What all rooms hand each other: views and folds, candidates, tables, rankings, and the checks of inputs."""
