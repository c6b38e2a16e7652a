"""What deletes jobs, files and people's data; retention."""
