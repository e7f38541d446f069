"""Pure: expressions of authors, compiled once and evaluated often.

A package of its own because both `language` (checks at deploy) and `graph` (compilation) need it. Everything here is a
function of its arguments: compiling raises `ExpressionError`, evaluating never changes the data it reads.

    paths       "$.state.ideas[0].text" ⇄ ("state", "ideas", 0, "text")
    view        what an expression may see of a token's scope
    conditions  structured conditions → closures; the only place that decides what "unevaluable" means
    cel         CEL behind two methods, with our limits around the library
    sources     right-hand sides and targets of mappings
    schemas     JSON Schema, offline
    backoff     the arithmetic of retry delays
"""
