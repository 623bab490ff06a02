// Zoom, search and details of the flame graph. Without it the picture is whole; titles then show the details.
(function () {
  "use strict";
  var svg = document.documentElement, pad = 10, charWidth = 6.65;
  if (svg.localName !== "svg") svg = document.getElementById("greenprof");
  var alone = svg === document.documentElement && window.top === window;
  var width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height, inner = width - 2 * pad;
  var details = document.getElementById("details");
  var frames = Array.prototype.map.call(document.getElementById("frames").children, function (g) {
    var rect = g.querySelector("rect"), title = g.querySelector("title").textContent.split("\n");
    return { g: g, rect: rect, text: g.querySelector("text"), name: title[0], about: title.slice(1),
             x: (+rect.getAttribute("x") - pad) / inner, w: +rect.getAttribute("width") / inner,
             y: +rect.getAttribute("y") };
  });
  if (!frames.length) return;
  var all = frames[0], zoomed = all, pattern = null;

  function label(frame, pixels) {
    var room = Math.floor((pixels - 6) / charWidth);
    if (room < 3) return "";
    return frame.name.length <= room ? frame.name : frame.name.slice(0, room - 1) + "\u2026";
  }

  function draw() {
    var lo = zoomed.x, hi = zoomed.x + zoomed.w, tiny = 1e-9;
    frames.forEach(function (f) {
      var inside = f.x >= lo - tiny && f.x + f.w <= hi + tiny && f.y <= zoomed.y;
      var above = !inside && f.x <= lo + tiny && f.x + f.w >= hi - tiny && f.y > zoomed.y;
      f.g.style.display = inside || above ? "" : "none";
      if (!inside && !above) return;
      var x = above ? 0 : (f.x - lo) / zoomed.w, w = above ? 1 : f.w / zoomed.w;
      f.rect.setAttribute("x", pad + x * inner);
      f.rect.setAttribute("width", Math.max(w * inner, 0));
      f.g.classList.toggle("above", above);
      f.g.classList.toggle("t", w * inner < 3);
      var shown = label(f, w * inner);
      if (!f.text && shown) {
        f.text = document.createElementNS(svg.namespaceURI, "text");
        f.text.setAttribute("y", f.y + 12);
        f.g.appendChild(f.text);
      }
      if (f.text) {
        f.text.textContent = shown;
        f.text.setAttribute("x", pad + x * inner + 4);
      }
    });
    reset.style.display = zoomed === all ? "none" : "";
    count();
  }

  // The share of the shown width that lies in matching frames; a match below a match counts once.
  function count() {
    var end = {}, sum = 0;
    var hits = frames.filter(function (f) { return f.hit && f.g.style.display === "" && !f.g.classList.contains("above"); });
    hits.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
    var covered = -1;
    hits.forEach(function (f) {
      if (f.x + f.w > covered + 1e-12) {
        sum += f.x + f.w - Math.max(f.x, covered);
        covered = f.x + f.w;
      }
    });
    if (frames.some(function (f) { return f.hit && f.g.classList.contains("above"); })) sum = zoomed.w;
    matched.textContent = pattern ? "matched " + (100 * sum / zoomed.w).toFixed(2) + " %" : "";
  }

  function search(text) {
    pattern = null;
    box.style.borderColor = "";
    if (text) try { pattern = new RegExp(text); } catch (error) { box.style.borderColor = "#d1242f"; }
    frames.forEach(function (f) {
      f.hit = pattern !== null && f !== all && pattern.test(f.name);
      f.g.classList.toggle("match", f.hit);
    });
    count();
  }

  function zoom(frame) {
    zoomed = frame;
    draw();
  }

  function add(name, attributes, text) {
    var element = document.createElementNS(svg.namespaceURI, name);
    for (var key in attributes) element.setAttribute(key, attributes[key]);
    if (text) element.textContent = text;
    svg.appendChild(element);
    return element;
  }

  var reset = add("text", { "class": "button sub", y: 28, "text-anchor": "end" }, "\u2190 reset zoom  (Esc)");
  var matched = add("text", { id: "matched", y: 48, "text-anchor": "end" });
  var holder = add("foreignObject", { y: 10, width: 236, height: 26 });
  var box = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
  box.setAttribute("placeholder", "search, a regular expression  (/)");
  box.setAttribute("style", "box-sizing:border-box;width:236px;height:24px;font:12px system-ui,sans-serif;" +
    "border:1px solid #afb8c1;border-radius:5px;padding:2px 8px;background:transparent;color:inherit");
  holder.appendChild(box);
  svg.style.color = getComputedStyle(document.querySelector(".heading")).fill;

  function place() {
    if (alone) {
      width = Math.max(window.innerWidth, 480);
      svg.setAttribute("width", width);
      svg.setAttribute("viewBox", "0 0 " + width + " " + height);
      inner = width - 2 * pad;
    }
    holder.setAttribute("x", width - pad - 236);
    matched.setAttribute("x", width - pad);
    reset.setAttribute("x", width - pad - 236 - 16);
    Array.prototype.forEach.call(svg.querySelectorAll(".paper"), function (r) { r.setAttribute("width", width); });
    draw();
  }

  frames.forEach(function (f) {
    f.g.addEventListener("click", function () { zoom(f); });
    f.g.addEventListener("mouseenter", function () { details.textContent = f.name + "   " + f.about.join("   "); });
    f.g.addEventListener("mouseleave", function () { details.textContent = ""; });
  });
  reset.addEventListener("click", function () { zoom(all); });
  box.addEventListener("input", function () { search(box.value); });
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { box.value = ""; search(""); zoom(all); box.blur(); }
    if ((event.key === "/" && event.target !== box) || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
      event.preventDefault();
      box.focus();
    }
  });
  if (alone) window.addEventListener("resize", place);
  place();
})();
