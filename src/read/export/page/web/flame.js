// SPDX-License-Identifier: MIT
"use strict";
VIEWS.push((app) => ({ key: "flame", title: "Flame graph", letter: "f", element: el("section", {}), sentence: () => "x", empty: () => null, draw: () => {}, keys: {} }));
