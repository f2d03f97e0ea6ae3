"""The script of the HTML report: filtering, linked lines, and the drawing of e-graphs that fold and unfold.

The page says everything without it: the script draws what the lists of classes hold.
"""

SCRIPT = r"""
'use strict';
(function () {
  const NS = 'http://www.w3.org/2000/svg';
  const box = document.getElementById('find'), count = document.getElementById('found');
  const rows = Array.from(document.querySelectorAll('[data-find]'));
  const texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  const graphs = [];

  // -- filtering ------------------------------------------------------------------------------------------
  function filter() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach(function (row, i) {
      const fits = words.every(function (w) { return texts[i].includes(w); });
      row.classList.toggle('hide', !fits);
      if (fits) { shown += 1; }
      if (!fits || !words.length) { return; }
      for (let fold = row.parentElement.closest('details'); fold; fold = fold.parentElement.closest('details')) {
        fold.open = true;
      }
    });
    graphs.forEach(function (g) { g.mark(words); });
    count.textContent = words.length ? shown + ' of ' + rows.length : '';
  }
  box.addEventListener('input', filter);
  document.addEventListener('keydown', function (e) {
    const typing = e.target === box;
    if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey) { e.preventDefault(); box.focus(); box.select(); }
    if (e.key === 'Escape' && typing) { box.value = ''; filter(); box.blur(); }
  });

  // -- lines that belong together -------------------------------------------------------------------------
  function light(event, on) {
    const here = event.target.closest && event.target.closest('[data-line]');
    if (!here) { return; }
    document.querySelectorAll('[data-line="' + here.dataset.line + '"]').forEach(function (other) {
      other.classList.toggle('lit', on);
    });
  }
  document.addEventListener('mouseover', function (e) { light(e, true); });
  document.addEventListener('mouseout', function (e) { light(e, false); });

  // -- e-graphs -------------------------------------------------------------------------------------------
  function make(kind, attributes, text) {
    const made = document.createElementNS(NS, kind);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    if (text !== undefined) { made.textContent = text; }
    return made;
  }
  function clip(text, most) { return text.length > most ? text.slice(0, most - 1) + '…' : text; }

  function Graph(panel) {
    this.panel = panel;
    this.classes = JSON.parse(panel.querySelector('script').textContent);
    this.view = panel.querySelector('.graph');
    this.said = panel.querySelector('.hidden-nodes');
    this.open = new Set();
    this.total = this.classes.reduce(function (n, c) { return n + c.nodes.length; }, 0);
    this.words = [];
    const self = this;
    panel.querySelectorAll('button').forEach(function (b) {
      b.addEventListener('click', function () {
        self.open = new Set(b.dataset.act === 'unfold' ? self.classes.keys() : []);
        self.draw();
      });
    });
    this.draw();
  }
  Graph.prototype.shown = function (c) {
    const nodes = this.classes[c].nodes;
    if (this.open.has(c)) { return nodes; }
    return [nodes.find(function (n) { return n.p; }) || nodes[0]];
  };
  Graph.prototype.visible = function () {
    const seen = new Set(), self = this;
    // Literals are written in place.
    const stack = this.classes.map(function (_, i) { return i; }).filter(function (i) {
      return self.classes[i].u && !self.classes[i].l;
    });
    if (!stack.length && this.classes.length) { stack.push(0); }
    while (stack.length) {
      const c = stack.pop();
      if (seen.has(c)) { continue; }
      seen.add(c);
      this.shown(c).forEach(function (n) {
        n.k.forEach(function (k) { if (!self.classes[k].l) { stack.push(k); } });
      });
    }
    return seen;
  };
  Graph.prototype.layers = function (seen) {
    // A class stands below what its first shown node needs; edges back are drawn upwards.
    const depth = new Map(), self = this;
    seen.forEach(function (root) {
      const stack = [[root, false]], entered = new Set();
      while (stack.length) {
        const [c, leaving] = stack.pop();
        const nodes = self.shown(c);
        const node = nodes.find(function (n) { return n.p; }) || nodes[0];
        if (leaving) {
          let d = 0;
          node.k.forEach(function (k) { if (k !== c) { d = Math.max(d, (depth.get(k) || 0) + 1); } });
          depth.set(c, d);
        } else if (!depth.has(c) && !entered.has(c)) {
          entered.add(c);
          stack.push([c, true]);
          node.k.forEach(function (k) {
            if (seen.has(k) && !depth.has(k) && !entered.has(k)) { stack.push([k, false]); }
          });
        }
      }
    });
    const layers = [];
    Array.from(seen).sort(function (a, b) { return a - b; }).forEach(function (c) {
      (layers[depth.get(c)] = layers[depth.get(c)] || []).push(c);
    });
    return layers.filter(Boolean);
  };
  Graph.prototype.order = function (layers) {
    const at = new Map(), users = new Map(), self = this;
    function place() {
      layers.forEach(function (l) { l.forEach(function (c, i) { at.set(c, (i + .5) / l.length); }); });
    }
    layers.flat().forEach(function (c) {
      self.shown(c).forEach(function (n) {
        n.k.forEach(function (k) { users.set(k, (users.get(k) || []).concat([c])); });
      });
    });
    function mean(c, others) {
      const found = others.filter(function (k) { return at.has(k); }).map(function (k) { return at.get(k); });
      return found.length ? found.reduce(function (a, b) { return a + b; }) / found.length : at.get(c);
    }
    place();
    for (let turn = 0; turn < 4; turn += 1) {
      layers.forEach(function (l) {
        const key = new Map(l.map(function (c) {
          const near = turn % 2 ? users.get(c) || [] : self.shown(c).flatMap(function (n) { return n.k; });
          return [c, mean(c, near)];
        }));
        l.sort(function (a, b) { return key.get(a) - key.get(b) || a - b; });
      });
      place();
    }
  };
  Graph.prototype.draw = function (focus) {
    const self = this, seen = this.visible(), layers = this.layers(seen);
    this.order(layers);
    const boxes = new Map(), gap = 26, wide = 7.25;
    let y = 14, width = 0;
    layers.forEach(function (layer) {
      let x = 14, tall = 0;
      layer.forEach(function (c) {
        const found = self.classes[c], nodes = self.shown(c), more = found.nodes.length - nodes.length;
        const lines = nodes.map(function (n) { return clip(self.label(n), 58); });
        const head = clip(found.n, 50);
        const most = Math.max(head.length + 9, ...lines.map(function (t) { return t.length + 3; }));
        const made = { c: c, x: x, y: y, w: most * wide + 14, h: 26 + 18 * lines.length, head: head, lines: lines,
          nodes: nodes, more: more };
        boxes.set(c, made);
        x += made.w + gap;
        tall = Math.max(tall, made.h);
      });
      width = Math.max(width, x - gap + 14);
      y += tall + 46;
    });
    layers.forEach(function (layer) {
      const last = boxes.get(layer[layer.length - 1]), shift = (width - 14 - (last.x + last.w)) / 2;
      layer.forEach(function (c) { boxes.get(c).x += shift; });
    });
    const svg = make('svg', { width: Math.ceil(width), height: Math.max(y - 32, 30), role: 'group',
      'aria-label': 'e-graph: classes of equal values; arrow keys move, Enter unfolds' });
    const edges = make('g', {});
    svg.appendChild(edges);
    this.edges = [];
    boxes.forEach(function (from) {
      from.nodes.forEach(function (n, i) {
        new Set(n.k).forEach(function (k) {
          const to = boxes.get(k);
          if (!to || k === from.c) { return; }
          const x1 = to.x + to.w / 2, y1 = to.y + to.h, x2 = from.x + from.w / 2, y2 = from.y;
          const bend = y2 > y1 ? (y2 - y1) / 2 : 60;
          const way = ['M', x1, y1, 'C', x1, y1 + bend, x2, y2 - bend, x2, y2].join(' ');
          const path = make('path', { d: way, 'class': n.p ? 'used' : '' });
          edges.appendChild(path);
          self.edges.push({ path: path, from: from.c, to: k });
        });
      });
    });
    this.boxes = boxes;
    this.drawn = new Map();
    boxes.forEach(function (b) { svg.appendChild(self.box(b)); });
    this.view.replaceChildren(svg);
    const left = this.view.clientWidth;
    if (left && width > left) { this.view.scrollLeft = (width - left) / 2; }
    const shown = Array.from(seen).reduce(function (n, c) { return n + self.shown(c).length; }, 0);
    this.said.textContent = (this.total - shown) + ' of ' + this.total + ' nodes hidden';
    this.mark(this.words);
    const first = focus !== undefined ? focus : boxes.keys().next().value;
    if (this.drawn.has(first)) { this.drawn.get(first).setAttribute('tabindex', '0'); }
    if (focus !== undefined) { this.drawn.get(focus).focus({ preventScroll: true }); }
  };
  Graph.prototype.label = function (n) {
    const price = n.x ? ' · not legal' : n.c ? ' · ' + n.c : '';
    return (n.p ? '✓ ' : '  ') + n.t + price;
  };
  Graph.prototype.box = function (b) {
    const self = this, found = this.classes[b.c], folds = found.nodes.length > 1;
    const g = make('g', { 'class': 'box' + (found.u ? ' used' : ''), tabindex: '-1', role: 'button',
      transform: 'translate(' + b.x + ',' + b.y + ')', 'data-class': b.c,
      'aria-label': found.n + ', ' + found.nodes.length + ' node' + (folds ? 's' : '') });
    if (folds) { g.setAttribute('aria-expanded', String(this.open.has(b.c))); }
    g.appendChild(make('rect', { width: b.w, height: b.h }));
    g.appendChild(make('text', { x: 8, y: 17, 'class': 'name' }, b.head));
    if (folds) { g.appendChild(make('text', { x: b.w - 8, y: 17, 'class': 'more' }, b.more ? '+' + b.more : '−')); }
    b.nodes.forEach(function (n, i) {
      const line = make('text', { x: 8, y: 36 + 18 * i, 'class': n.p ? 'pick' : n.x ? 'not' : 'off' }, b.lines[i]);
      line.appendChild(make('title', {}, n.t + (n.r ? '\nby ' + n.r : '\nas written') + (n.x ? '\n' + n.x : '')));
      g.appendChild(line);
    });
    g.addEventListener('click', function () { self.toggle(b.c); });
    g.addEventListener('keydown', function (e) { self.key(e, b.c); });
    g.addEventListener('focus', function () { self.near(b.c, true); });
    g.addEventListener('blur', function () { self.near(b.c, false); });
    g.addEventListener('mouseenter', function () { self.near(b.c, true); });
    g.addEventListener('mouseleave', function () { self.near(b.c, false); });
    this.drawn.set(b.c, g);
    return g;
  };
  Graph.prototype.toggle = function (c) {
    if (this.classes[c].nodes.length < 2) { return; }
    if (!this.open.delete(c)) { this.open.add(c); }
    this.draw(c);
  };
  Graph.prototype.near = function (c, on) {
    this.edges.forEach(function (e) { if (e.from === c || e.to === c) { e.path.classList.toggle('near', on); } });
  };
  Graph.prototype.key = function (e, c) {
    const moves = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); this.toggle(c); return; }
    if (!moves[e.key]) { return; }
    e.preventDefault();
    const [dx, dy] = moves[e.key], here = this.boxes.get(c);
    let best = null, least = Infinity;
    this.boxes.forEach(function (b) {
      const x = b.x + b.w / 2 - here.x - here.w / 2, y = b.y - here.y, along = x * dx + y * dy;
      const far = along + 3 * Math.abs(dx ? y : x);
      if (b.c !== c && along > 1 && far < least) { least = far; best = b.c; }
    });
    if (best === null) { return; }
    this.drawn.get(c).setAttribute('tabindex', '-1');
    this.drawn.get(best).setAttribute('tabindex', '0');
    this.drawn.get(best).focus();
  };
  Graph.prototype.mark = function (words) {
    const self = this;
    this.words = words;
    this.drawn.forEach(function (g, c) {
      const found = self.classes[c];
      const text = (found.n + ' ' + found.nodes.map(function (n) { return n.t + ' ' + n.r; }).join(' ')).toLowerCase();
      const hit = words.length > 0 && words.every(function (w) { return text.includes(w); });
      g.classList.toggle('hit', hit);
      g.classList.toggle('miss', words.length > 0 && !hit);
    });
  };
  document.querySelectorAll('.egraph').forEach(function (fold) {
    // Drawn when it is first seen: many regions cost nothing until then.
    function start() {
      if (fold.open && !fold.graph) { fold.graph = new Graph(fold); graphs.push(fold.graph); filter(); }
    }
    fold.addEventListener('toggle', start);
    start();
  });
})();
"""
