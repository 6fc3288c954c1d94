"""Pages of the web application: one module for each that is more than declared sections."""
