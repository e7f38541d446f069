"""The client of a service: the same words as for a store, spoken over HTTP.

`connection` sends requests and reads refusals; `reading` is a store whose reading verbs ask the service; `commanding`
turns commands into requests; `client` is the face. So `Run` and everything built on it works unchanged.
"""
