"""What each module of a model costs."""
