"""Numbers -> shares -> opened numbers: fields, engines, connections."""
