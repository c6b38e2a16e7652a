"""Records that arrive one by one, while workers wait for them: Holdfast and its peers."""
