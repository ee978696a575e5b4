"""What oomrec's public modules are made of: nothing in here is a promise to programs."""
