"""How good the choice of catalog is: labelled lists, and generated photographs."""
