"""Strongly connected components of a graph."""

from __future__ import annotations


def strong_components(edges: list[list[int]]) -> list[int]:  # noqa: C901  one loop, as published
    """The strongly connected component of each node, by Tarjan's algorithm.

    Components are numbered so that edges lead to the same or a lower number.
    Recursion is kept on a list, for chains may be long.
    """
    unseen = -1
    order = [unseen] * len(edges)
    low = [0] * len(edges)
    component = [unseen] * len(edges)
    stack: list[int] = []
    count = component_count = 0
    for root in range(len(edges)):
        if order[root] != unseen:
            continue
        work = [(root, iter(edges[root]))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if order[target] == unseen:
                    order[target] = low[target] = count
                    count += 1
                    stack.append(target)
                    work.append((target, iter(edges[target])))
                    break
                if component[target] == unseen:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    member = unseen
                    while member != node:
                        member = stack.pop()
                        component[member] = component_count
                    component_count += 1
    return component
