"""Shortest paths and company control, kept true while roads and shares change."""

from evermat import KnowledgeBase

kb = KnowledgeBase("""
    % the shortest way from each depot: a minimum of what depends on it
    way(?d, ?d, 0) :- depot(?d) .
    way(?d, ?y, ?c + ?w) :- distance(?d, ?x, ?c), road(?x, ?y, ?w) .
    distance(?d, ?y, ?c) :- ?c = min{ ?n : way(?d, ?y, ?n) } .

    % a company controls another with more than half of its shares, its own or those
    % of companies that it controls
    holds(?x, ?x, ?y, ?s) :- share(?x, ?y, ?s) .
    holds(?x, ?z, ?y, ?s) :- controls(?x, ?z), share(?z, ?y, ?s) .
    controls(?x, ?y) :- sum{ ?s, ?z : holds(?x, ?z, ?y, ?s) } > 50 .

    reached(?d, ?n) :- depot(?d), ?n = count{ ?y : distance(?d, ?y, _) } .
""")
kb.load(
    {
        "depot": [("north",)],
        "road": [("north", "mill", 5), ("north", "port", 1), ("port", "mill", 2)],
        "share": [("a", "b", 60), ("a", "c", 30), ("b", "c", 25)],
    }
)
print(kb.query("distance(north, ?y, ?c)").to_list())
print(kb.query("controls(a, ?y)").to_list())

change = kb.update(
    delete={"road": [("port", "mill", 2)], "share": [("a", "b", 60)]},
    insert={"share": [("a", "b", 50)]},
)
print(change)
print(kb.explain("distance(north, mill, 5)"))
