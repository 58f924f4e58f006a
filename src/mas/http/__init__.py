"""The product behind HTTP: routes that call the `Mas` protocol, guards in front of them."""
