"""Reading CSV files that other tools wrote: columns known by header, values in our units, damage reported by row."""
