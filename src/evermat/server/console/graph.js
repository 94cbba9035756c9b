// The graph of predicates: those without rules on the left, each level right of what it needs.

import { number } from "./api.js";
import { h, s } from "./dom.js";

const WIDTH = 136, HEIGHT = 46, ACROSS = 50, DOWN = 16, PASSING = 14, MARGIN = 10;

// An edge over several levels passes through a place of its own on each of them.
function withPassages(nodes, edges) {
  const level = new Map(nodes.map((node) => [node.name, node.level]));
  const levels = [...new Set(level.values())].sort((one, other) => one - other);
  const columns = levels.map((each) => nodes.filter((node) => node.level === each).map((node) => ({ id: node.name, height: HEIGHT })));
  const ways = edges.filter(({ from, to }) => from !== to).map((edge, number) => {
    const [first, last] = [levels.indexOf(level.get(edge.from)), levels.indexOf(level.get(edge.to))];
    const stops = [edge.from];
    for (let at = first + 1; at < last; at += 1) {
      const id = `passage ${number} ${at}`;
      columns[at].push({ id, height: PASSING });
      stops.push(id);
    }
    return { ...edge, stops: [...stops, edge.to], isForward: first < last };
  });
  return { columns, ways };
}

// Each column is put in the order of the middles of its neighbours, a few times: fewer edges cross.
function inOrder({ columns, ways }) {
  const neighbours = new Map(columns.flat().map(({ id }) => [id, []]));
  for (const { stops } of ways) {
    for (let at = 1; at < stops.length; at += 1) {
      neighbours.get(stops[at - 1]).push(stops[at]);
      neighbours.get(stops[at]).push(stops[at - 1]);
    }
  }
  for (let pass = 0; pass < 12; pass += 1) {
    const place = new Map();
    columns.forEach((column) => column.forEach(({ id }, at) => place.set(id, (at + 0.5) / column.length)));
    const middle = ({ id }) => {
      const others = neighbours.get(id);
      return others.length ? others.reduce((sum, other) => sum + place.get(other), 0) / others.length : place.get(id);
    };
    columns.forEach((column) => column.sort((one, other) => middle(one) - middle(other)));
  }
}

function path(way, at) {
  const points = way.stops.map((id) => at.get(id));
  const [one, other] = [points[0], points.at(-1)];
  if (!way.isForward) {
    return `M${one.x + WIDTH / 2} ${one.y + HEIGHT}L${other.x + WIDTH / 2} ${other.y - 7}`;
  }
  let drawn = `M${one.x + WIDTH} ${one.y + HEIGHT / 2}`;
  let [x, y] = [one.x + WIDTH, one.y + HEIGHT / 2];
  for (const point of points.slice(1)) {
    const isLast = point === other;
    const to = [point.x - (isLast ? 7 : 0), point.y + (isLast ? HEIGHT : PASSING) / 2];
    const bend = (to[0] - x) / 2;
    drawn += `C${x + bend} ${y} ${to[0] - bend} ${to[1]} ${to[0]} ${to[1]}`;
    [x, y] = to;
    if (!isLast) {
      x += WIDTH;
      drawn += `L${x} ${y}`;
    }
  }
  return drawn;
}

export function graph({ nodes, edges }, sizes) {
  const { columns, ways } = withPassages(nodes, edges);
  inOrder({ columns, ways });
  const heightOf = (column) => column.reduce((sum, each) => sum + each.height + DOWN, -DOWN);
  const height = Math.max(...columns.map(heightOf)) + 2 * MARGIN;
  const width = columns.length * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN;
  const at = new Map();
  columns.forEach((column, number) => {
    let y = (height - heightOf(column)) / 2;
    for (const each of column) {
      at.set(each.id, { x: MARGIN + number * (WIDTH + ACROSS), y });
      y += each.height + DOWN;
    }
  });
  const lines = ways.map((way) => s("path", {
    class: way.is_negated ? "edge negated" : "edge", "marker-end": `url(#${way.is_negated ? "no" : "yes"})`,
    d: path(way, at), "data-from": way.from, "data-to": way.to,
  }, s("title", {}, `${way.to} needs ${way.is_negated ? "that there is no " : ""}${way.from}`)));
  const boxes = nodes.map(({ name, level, is_recursive: recursive }) => {
    const { x, y } = at.get(name);
    const short = name.length > 15 ? `…${name.slice(-14)}` : name;
    return s("a", { class: `node ${level ? "derived" : "explicit"}`, href: `#/facts?predicate=${encodeURIComponent(name)}`, "data-name": name },
      s("title", {}, `${name}: ${number(sizes.get(name) ?? 0)} facts${recursive ? ", recursive" : ""}`),
      s("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 10 }),
      s("text", { class: "label", x: x + 14, y: y + 20 }, short),
      s("text", { class: "size", x: x + 14, y: y + 36 }, `${number(sizes.get(name) ?? 0)}${recursive ? " · recursive" : ""}`));
  });
  const arrow = (id, kind) => s("marker", { id, class: kind, viewBox: "0 0 8 8", refX: 1, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    s("path", { d: "M0 0L8 4L0 8z" }));
  const picture = s("svg", { class: "graph", role: "img", "aria-label": "Which predicate depends on which", viewBox: `0 0 ${width} ${height}`, width, height },
    s("defs", {}, arrow("yes", "arrow"), arrow("no", "arrow negated")), ...lines, ...boxes);
  const light = (name) => {
    picture.classList.toggle("dimmed", Boolean(name));
    const near = new Set([name]);
    for (const line of lines) {
      const isNear = line.dataset.from === name || line.dataset.to === name;
      line.classList.toggle("near", isNear);
      if (isNear) near.add(line.dataset.from).add(line.dataset.to);
    }
    for (const box of boxes) box.classList.toggle("near", near.has(box.dataset.name));
  };
  for (const box of boxes) {
    const name = box.dataset.name;
    for (const event of ["mouseenter", "focus"]) box.addEventListener(event, () => light(name));
    for (const event of ["mouseleave", "blur"]) box.addEventListener(event, () => light(null));
  }
  return h("div", { className: "scroll" }, picture);
}
