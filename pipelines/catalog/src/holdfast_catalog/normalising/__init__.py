"""A row of a list in canonical form: identifiers, money, words, categories."""
