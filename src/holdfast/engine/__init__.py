"""Discovery, work and upkeep: what moves records from source to outcome."""
