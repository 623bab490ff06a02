// The differential flame graph: widths are one side's time (or both sides'), colour is the change. What chance in
// sampling may explain is pale.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent), row = 17;
  var nodes = data.nodes.map(function (n) {
    return { name: n[0] < 0 ? "all" : data.names[n[0]], depth: n[1], base: n[2] / data.scale, file: n[3] / data.scale,
             error: n[4] / data.scale, sure: n[5] === 1, children: [], parent: null };
  });
  var path = [], deepest = 0;
  nodes.forEach(function (n) {
    path.length = n.depth;
    n.parent = path[n.depth - 1] || null;
    if (n.parent) n.parent.children.push(n);
    path[n.depth] = n;
    deepest = Math.max(deepest, n.depth);
  });
  var root = nodes[0], zoomed = root, width = "file", pattern = null;

  function size(n) { return width === "base" ? n.base : width === "file" ? n.file : n.base + n.file; }

  // Red is more, blue is less; the stronger the larger the change is beside what it changes.
  function colour(n) {
    var larger = Math.max(n.base, n.file);
    var change = larger > 0 ? (n.file - n.base) / larger : 0;
    var strength = Math.min(1, Math.abs(change) * 1.5) * (n.sure ? 1 : 0.35);
    return "hsl(" + (change >= 0 ? 8 : 212) + " " + Math.round(85 * strength) + "% " + Math.round(90 - 28 * strength) + "%)";
  }

  function number(value) { return value.toFixed(data.unit === "%" ? 2 : 3); }

  function describe(n) {
    var change = n.file - n.base;
    return n.name + "\nbase " + number(n.base) + "   file " + number(n.file) + " " + data.unit + "\nchange " +
      (change >= 0 ? "+" : "\u2212") + number(Math.abs(change)) + " \u00b1 " + number(n.error) +
      (n.sure ? "" : "   (chance may explain it)");
  }

  function element(name, parent, text) {
    var made = document.createElement(name);
    if (text) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  var body = document.body;
  element("h1", body, document.title);
  ["base", "file"].forEach(function (side) {
    element("p", body, side + ": " + data[side].path + ", " + (data[side].total_ms / 1000).toFixed(3) + " s of " + data[side].measure + ", " +
            data[side].samples + " samples");
  });
  var bar = element("div", body);
  bar.id = "bar";
  element("span", bar, "width:");
  var choice = element("select", bar);
  choice.id = "width";
  [["file", "file"], ["base", "base"], ["both", "both together"]].forEach(function (pair) {
    element("option", choice, pair[1]).value = pair[0];
  });
  var box = element("input", bar);
  box.id = "search";
  box.placeholder = "search, a regular expression  (/)";
  var reset = element("button", bar, "reset zoom (Esc)");
  [["more", 1, 0, true], ["less", 0, 1, true], ["more, perhaps", 1, 0, false], ["the same", 1, 1, false]].forEach(function (k) {
    var key = element("span", element("span", bar));
    key.className = "key";
    key.style.background = colour({ file: k[1], base: k[2], sure: k[3] });
    key.parentNode.appendChild(document.createTextNode(" " + k[0]));
  });
  var graph = element("div", body), details = element("div", body);
  graph.id = "graph";
  details.id = "details";

  function put(n, x, w, above) {
    var div = element("div", graph, w > 24 ? n.name : "");
    div.style.left = x + "px";
    div.style.width = w + "px";
    div.style.top = n.depth * row + 2 + "px";
    div.style.background = colour(n);
    div.title = describe(n);
    div.className = (above ? "above" : "") + (pattern && n !== root && pattern.test(n.name) ? " match" : "");
    div.onclick = function () { zoomed = n; draw(); };
    div.onmouseenter = function () { details.textContent = describe(n); };
    return div;
  }

  function draw() {
    var all = graph.clientWidth || 1200;
    graph.textContent = "";
    graph.style.height = (deepest + 1) * row + 4 + "px";
    for (var up = zoomed.parent; up; up = up.parent) put(up, 0, all, true);
    var todo = [[zoomed, 0, all]];
    while (todo.length) {
      var item = todo.pop(), n = item[0], x = item[1], mine = size(n);
      put(n, x, item[2], false);
      n.children.forEach(function (child) {
        var w = mine > 0 ? size(child) / mine * item[2] : 0;
        if (w >= 0.5) todo.push([child, x, w]);
        x += w;
      });
    }
    reset.style.visibility = zoomed === root ? "hidden" : "";
  }

  function search() {
    pattern = null;
    box.style.borderColor = "";
    if (box.value) try { pattern = new RegExp(box.value); } catch (error) { box.style.borderColor = "#d1242f"; }
    draw();
  }

  choice.onchange = function () { width = choice.value; draw(); };
  box.oninput = search;
  reset.onclick = function () { zoomed = root; draw(); };
  window.onresize = draw;
  window.onkeydown = function (event) {
    if (event.key === "Escape") { box.value = ""; zoomed = root; search(); box.blur(); }
    if (event.key === "/" && event.target !== box) { event.preventDefault(); box.focus(); }
  };
  draw();
})();
