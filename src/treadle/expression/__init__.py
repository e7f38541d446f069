"""L1, pure: what authors write to read data, compiled once and evaluated often.

A room of its own because both `language` (checks at deploy) and `graph` (compilation) need it. Everything
here is a function of its arguments: compiling raises `ExpressionError`, evaluating never changes what it is
shown.

    paths       "$.state.ideas[0].text" ⇄ ("state", "ideas", 0, "text")
    view        what an expression may see of a token's scope
    conditions  structured conditions → closures; the only place that decides what "unevaluable" means
    cel         CEL behind two methods, with our limits around the library
    sources     right-hand sides and targets of mappings
    schemas     JSON Schema, offline
    backoff     the arithmetic of retry delays
"""
