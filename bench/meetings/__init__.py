"""The largest municipality of the design document, and four ways to fetch it."""
