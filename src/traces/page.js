// The page of a trace: the tree with its waterfall, of which only what is seen is made; details and the flame graph of the
// chosen span.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent), height = 20;
  var spans = data.spans, path = [];
  spans.forEach(function (s, i) {
    s.at = i;
    s.children = [];
    path.length = s.d;
    s.parent = s.d > 0 ? path[s.d - 1] : null;
    if (s.parent) s.parent.children.push(s);
    path[s.d] = s;
  });
  var shown = [], chosen = null, pattern = null;

  function element(name, parent, text, className) {
    var made = document.createElement(name);
    if (text !== undefined && text !== "") made.textContent = text;
    if (className) made.className = className;
    if (parent) parent.appendChild(made);
    return made;
  }

  function many(count, one, several) { return count + " " + (count === 1 ? one : several || one + "s"); }
  function ms(ns) { return (ns / 1e6).toFixed(3); }

  function hash(text) {
    var h = 0;
    for (var i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) >>> 0;
    return h;
  }

  function colour(service) { return "hsl(" + hash(service) % 360 + " 55% 55%)"; }

  function process(s) { return data.processes[s.p]; }

  function label(s) { return (process(s).service || "?") + ": " + s.k + " " + s.n; }

  var body = document.body;
  element("h1", body, "trace " + data.trace);
  element("p", body, data.start + ", " + ms(data.duration) + " ms, " + many(spans.length, "span") + " of " + many(data.services, "service"));
  data.verdicts.forEach(function (text) { element("p", body, text, "verdict"); });
  data.processes.forEach(function (p) {
    if (p.clock) element("p", body, "clock of " + p.service + " on " + p.host + (p.pid ? ", pid " + p.pid : "") + ": " + p.clock, "clock");
  });
  var bar = element("div", body);
  bar.id = "bar";
  var box = element("input", bar);
  box.id = "search";
  box.placeholder = "search, a regular expression  (/)";
  var only = element("label", bar);
  var critical = element("input", only);
  critical.type = "checkbox";
  critical.id = "critical";
  only.appendChild(document.createTextNode(" critical path only"));
  element("span", bar, "time in ms; underlined in red: on the critical path; arrow keys move and fold", "kind");
  var tree = element("div", body), room = element("div", tree), details = element("div", body), flame = element("div", body);
  tree.id = "tree";
  details.id = "details";
  flame.id = "flame";

  function list() {
    shown = [];
    for (var i = 0; i < spans.length; i++) {
      var s = spans[i];
      if (critical.checked && !s.x) continue;
      shown.push(s);
      if (s.folded) while (i + 1 < spans.length && spans[i + 1].d > s.d) i++;
    }
    room.style.height = shown.length * height + "px";
  }

  function put(s, number) {
    var row = element("div", room, "", "row" + (s === chosen ? " chosen" : "") + (s.x ? " critical" : "") +
      (pattern && pattern.test(label(s)) ? " match" : ""));
    row.style.top = number * height + "px";
    row.dataset.span = s.i;
    var name = element("div", row, "", "name");
    name.style.paddingLeft = Math.min(s.d, 40) * 12 + "px";
    if (s.d > 40) element("span", name, "[" + s.d + "] ", "kind");
    var fold = element("span", name, s.children.length ? (s.folded ? "\u25b8" : "\u25be") : "", "fold");
    fold.onclick = function (event) { event.stopPropagation(); s.folded = !s.folded; list(); draw(); };
    element("span", name, process(s).service || "?", "service").style.color = colour(process(s).service);
    element("span", name, " " + s.k + " ", "kind");
    element("span", name, s.n);
    if (s.m.length) element("span", name, " (" + s.m.join(", ") + ")", s.m.indexOf("failed") >= 0 ? "failed" : "kind");
    name.title = label(s);
    element("div", row, ms(s.t), "time");
    var lane = element("div", element("div", row, "", "lane"), "", "bar"), all = data.duration || 1;
    lane.style.left = Math.max(0, Math.min(100, 100 * s.f / all)) + "%";
    lane.style.width = Math.min(100, 100 * s.t / all) + "%";
    lane.style.background = colour(process(s).service);
    lane.title = label(s) + "\nstart " + ms(s.f) + " ms, duration " + ms(s.t) + " ms, self " + ms(s.s) + " ms";
    row.onclick = function () { choose(s); };
  }

  function draw() {
    var from = Math.max(0, Math.floor(tree.scrollTop / height) - 5);
    var to = Math.min(shown.length, from + Math.ceil((tree.clientHeight || 400) / height) + 10);
    room.textContent = "";
    for (var i = from; i < to; i++) put(shown[i], i);
  }

  function choose(s) {
    chosen = s;
    draw();
    describe(s);
    drawFlame(s);
  }

  function times(t) {
    return "cpu " + ms(t[0]) + ", ready " + ms(t[1]) + ", parked " + ms(t[2]) + ", blocked " + ms(t[3]) + ", preempted " + ms(t[4]) +
      ", waiting " + ms(t[5]);
  }

  function describe(s) {
    details.textContent = "";
    var table = element("table", details), p = process(s);
    function line(key, value) {
      var row = element("tr", table);
      element("td", row, key);
      element("td", row, value);
    }
    line("span", s.k + " " + s.n);
    line("service", p.service + (p.host ? " on " + p.host : "") + (p.pid ? ", pid " + p.pid : ""));
    line("id", s.i);
    if (s.m.length) line("is", s.m.join(", "));
    line("time, ms", "start " + ms(s.f) + ", duration " + ms(s.t) + ", self " + ms(s.s) + ", of the critical path " + ms(s.c));
    if (s.r) line("request, ms", times(s.r) + "; " + many(s.r[6], "coroutine"));
    if (s.w) line("coroutine, ms", times(s.w) + "; " + many(s.w[6], "switch", "switches"));
    s.v.forEach(function (field) { line(field[0], field[1]); });
  }

  // Flame graphs: the stacks of a span and of the spans below it. Another process' stacks hang where the span waited.
  function node(name) { return { name: name, weight: 0, children: new Map(), parent: null, depth: 0 }; }

  function child(n, name) {
    var found = n.children.get(name);
    if (!found) {
      found = node(name);
      found.parent = n;
      found.depth = n.depth + 1;
      n.children.set(name, found);
    }
    return found;
  }

  function addStack(root, frames, weight) {
    var at = root;
    at.weight += weight;
    frames.forEach(function (frame) {
      at = child(at, frame);
      at.weight += weight;
    });
    return at;
  }

  function stacksOf(text) {
    return text.split("\n").map(function (line) {
      var space = line.lastIndexOf(" ");
      return { frames: line.slice(0, space).split(";"), weight: +line.slice(space + 1) };
    }).filter(function (stack) { return stack.weight > 0; });
  }

  function waits(stack) { return /^\[(parked|waiting|blocked)/.test(stack.frames[stack.frames.length - 1]); }

  // The stacks of a span and of the spans below it in its process, and stacks of other processes; children have been done before. Others'
  // stacks hang at the longest wait, and take its time; without a wait here, the parent has them.
  function collect(s) {
    s.stacks = s.g ? stacksOf(s.g) : [];
    s.others = [];
    s.children.forEach(function (c) {
      if (c.p === s.p) {
        s.stacks = s.stacks.concat(c.stacks);
        s.others = s.others.concat(c.others);
      } else {
        c.stacks.concat(c.others).forEach(function (stack) {
          s.others.push({ frames: ["[" + label(c) + "]"].concat(stack.frames), weight: stack.weight });
        });
      }
    });
    var waiting = s.stacks.filter(waits).sort(function (a, b) { return b.weight - a.weight; });
    if (!waiting.length || !s.others.length) return;
    var before = waiting[0].frames.slice(0, -1), left = 0;
    s.others.forEach(function (stack) {
      s.stacks.push({ frames: before.concat(stack.frames), weight: stack.weight });
      left += stack.weight;
    });
    s.others = [];
    waiting.forEach(function (stack) {
      var taken = Math.min(left, stack.weight);
      stack.weight -= taken;
      left -= taken;
    });
  }

  function flameOf(s) {
    var last = s.at + 1, i;
    while (last < spans.length && spans[last].d > s.d) last++;
    for (i = last - 1; i >= s.at; i--) collect(spans[i]);
    var root = node(label(s));
    s.stacks.concat(s.others).forEach(function (stack) { if (stack.weight > 0) addStack(root, stack.frames, stack.weight); });
    return root;
  }

  var graph = null, zoomed = null;

  function shade(name) {
    var kind = /^\[(parked|waiting|blocked|ready|preempted)/.test(name) ? 210 : name[0] === "[" ? 165 : 25;
    return "hsl(" + kind + " " + (55 + hash(name) % 25) + "% " + (70 + hash(name) % 12) + "%)";
  }

  function putFrame(n, x, w, above) {
    var div = element("div", flame, w > 24 ? n.name : "", above ? "above" : "");
    div.style.left = x + "px";
    div.style.width = w + "px";
    div.style.top = n.depth * 17 + "px";
    div.style.background = shade(n.name);
    div.title = n.name + "\n" + (n.weight / 1000).toFixed(3) + " ms, " + (100 * n.weight / (graph.weight || 1)).toFixed(2) + " %";
    div.onclick = function () { zoomed = n; drawFrames(); };
  }

  function drawFrames() {
    var all = flame.clientWidth || 1000, todo = [[zoomed, 0, all]], deepest = 0, up, item;
    flame.textContent = "";
    for (up = zoomed.parent; up; up = up.parent) putFrame(up, 0, all, true);
    while (todo.length) {
      item = todo.pop();
      var x = item[1], scale = item[2] / (item[0].weight || 1);
      putFrame(item[0], x, item[2], false);
      deepest = Math.max(deepest, item[0].depth);
      item[0].children.forEach(function (c) {
        var w = c.weight * scale;
        if (w >= 0.5) todo.push([c, x, w]);
        x += w;
      });
    }
    flame.style.height = (deepest + 1) * 17 + "px";
  }

  function drawFlame(s) {
    graph = zoomed = flameOf(s);
    if (graph.weight > 0) return drawFrames();
    flame.style.height = "";
    flame.textContent = "";
    element("p", flame, "No samples of this span: a capture of its process, or profiles that its consumer wrote, would have them.");
  }

  function search() {
    pattern = null;
    box.style.borderColor = "";
    if (box.value) try { pattern = new RegExp(box.value); } catch (error) { box.style.borderColor = "#d1242f"; }
    var first = pattern ? shown.findIndex(function (s) { return pattern.test(label(s)); }) : -1;
    if (first >= 0) tree.scrollTop = Math.max(0, first - 2) * height;
    draw();
  }

  function move(by) {
    var at = Math.max(0, Math.min(shown.length - 1, shown.indexOf(chosen) + by));
    if (at * height < tree.scrollTop || (at + 1) * height > tree.scrollTop + tree.clientHeight) tree.scrollTop = Math.max(0, at - 3) * height;
    choose(shown[at]);
  }

  box.oninput = search;
  critical.onchange = function () { list(); draw(); };
  tree.onscroll = draw;
  window.onresize = function () { draw(); if (graph && graph.weight > 0) drawFrames(); };
  window.onkeydown = function (event) {
    if (event.target === box && event.key !== "Escape") return;
    if (event.key === "Escape") { box.value = ""; search(); box.blur(); if (graph && graph.weight > 0) { zoomed = graph; drawFrames(); } }
    if (event.key === "/") { event.preventDefault(); box.focus(); }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); move(event.key === "ArrowDown" ? 1 : -1); }
    if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && chosen && chosen.children.length) {
      chosen.folded = event.key === "ArrowLeft";
      list();
      draw();
    }
  };
  list();
  if (spans.length) choose(spans[0]);
})();
