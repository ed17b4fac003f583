"""An endpoint between an agent whose tools are hard-wired and its model, in the model's own API."""
