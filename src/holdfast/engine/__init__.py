"""Discovery, work and upkeep: moves records from their source to their outcome."""
