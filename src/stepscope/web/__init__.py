"""The web application: runs below some directories, shown as pages in a browser and answered as JSON."""
