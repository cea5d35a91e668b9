// Charts on canvases. A figure has one or more panels over one abscissa; figures of a group share
// view and cursor. Curves are reduced to their extremes per pixel column, whatever their length.
// Mouse: drag zooms, Shift-drag moves, Ctrl-wheel zooms, double click resets; keys + - < > 0 Esc;
// touch: pinch zooms, one finger moves, double tap resets. The plain wheel scrolls the page.
"use strict";
const taufitCharts = (() => {
  const NAMES = ["paper", "card", "ink", "soft", "line", "grid", "measured", "model", "residual", "good", "warn", "bad", "body"];
  const FONT = "12px system-ui, sans-serif";
  const RIGHT = 8, TOP = 6;
  // Width of a digit of FONT, and of the axis for numbers of up to five digits.
  const DIGIT = 7, AXIS = 56;
  // From the browser: a page that names no address can be searched for addresses.
  const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

  // --- colours: "var(--name)" of the current scheme ---
  let theme = {};
  const readTheme = () => {
    const style = getComputedStyle(document.documentElement);
    theme = Object.fromEntries(NAMES.map((name) => [`var(--${name})`, style.getPropertyValue(`--${name}`).trim()]));
  };
  const colour = (text) => theme[text] || text;
  const named = (name) => theme[`var(--${name})`];

  // --- numbers ---
  const fixed = (value, digits) => {
    if (!Number.isFinite(value)) return "–";
    const text = Math.abs(value).toFixed(Math.max(0, digits));
    return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
  };
  const decimals = (step) => Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const significant = (value, digits = 3) => {
    if (value === 0 || !Number.isFinite(value)) return fixed(value, 0);
    const size = Math.abs(value);
    if (size < 1e-3 || size >= 1e5) return value.toExponential(digits - 1).replace(/-/g, "−").replace("+", "");
    return fixed(value, digits - 1 - Math.floor(Math.log10(Number(size.toPrecision(digits)))));
  };

  // --- ticks: at least two on every axis ---
  const linearTicks = (low, high, most) => {
    const span = high - low, at = (step) => {
      const out = [];
      for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) out.push(k * step);
      return out;
    };
    // Too narrow for numbers that differ: an axis without ticks rather than an endless search.
    if (!(span > 1e-9 * Math.max(Math.abs(low), Math.abs(high)) && Number.isFinite(span))) return [[low, significant(low)]];
    // From the coarsest step on, the last one with no more than `most` ticks, and two at least.
    let best = null;
    for (let power = Math.floor(Math.log10(span)) + 1; power > Math.log10(span) - 3; power--)
      for (const factor of [5, 2, 1]) {
        const step = factor * Math.pow(10, power), ticks = at(step);
        if (ticks.length > most && best && best[1].length > 1) return labelled(...best);
        best = [step, ticks];
      }
    return labelled(...best);
  };
  const labelled = (step, ticks) => ticks.map((value) => [value, Math.abs(value) >= 1e5 ? significant(value, 2) : fixed(value, decimals(step))]);
  const SUPER = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const logTicks = (low, high, most) => {
    const out = [], decades = Math.log10(high / low), every = Math.max(1, Math.ceil(decades / most));
    for (let n = Math.ceil(Math.log10(low) - 1e-9); n <= Math.log10(high) + 1e-9; n += every) {
      const label = n >= -3 && n <= 4 ? fixed(Math.pow(10, n), Math.max(0, -n)) : `10${[...String(n)].map((c) => SUPER[c]).join("")}`;
      out.push([Math.pow(10, n), label]);
    }
    return out.length > 1 ? out : linearTicks(low, high, most);
  };

  // --- data ---
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const wide = (text) => new Float64Array(bytesOf(text));
  const narrow = (text) => new Float32Array(bytesOf(text));
  const lowerIndex = (xs, x) => {
    let a = 0, b = xs.length;
    while (a < b) { const m = (a + b) >> 1; if (xs[m] < x) a = m + 1; else b = m; }
    return a;
  };
  const nearest = (xs, x) => {
    const i = lowerIndex(xs, x);
    if (i === 0) return 0;
    return i < xs.length && xs[i] - x < x - xs[i - 1] ? i : i - 1;
  };
  const interpolate = (xs, ys, at) => {
    const out = new Float32Array(at.length);
    let k = 0;
    for (let i = 0; i < at.length; i++) {
      while (k < xs.length - 2 && xs[k + 1] < at[i]) k++;
      const t = (at[i] - xs[k]) / (xs[k + 1] - xs[k] || 1);
      out[i] = ys[k] + Math.min(1, Math.max(0, t)) * ((ys[k + 1] ?? ys[k]) - ys[k]);
    }
    return out;
  };

  // --- a pen that writes SVG with the calls of a canvas that are used here ---
  class SvgPen {
    constructor(width, height) {
      Object.assign(this, { width, height, out: [], path: "", stack: [], clips: 0, dash: [], transform: "", clipped: "" });
      Object.assign(this, { lineWidth: 1, globalAlpha: 1, strokeStyle: "#000", fillStyle: "#000", textAlign: "left", textBaseline: "alphabetic", font: FONT });
    }
    frame() { return (this.transform ? ` transform="${this.transform.trim()}"` : "") + (this.clipped ? ` clip-path="url(#${this.clipped})"` : ""); }
    save() { this.stack.push([this.transform, this.clipped, this.globalAlpha]); }
    restore() { [this.transform, this.clipped, this.globalAlpha] = this.stack.pop(); }
    translate(x, y) { this.transform += ` translate(${x} ${y})`; }
    rotate(angle) { this.transform += ` rotate(${(angle * 180) / Math.PI})`; }
    beginPath() { this.path = ""; }
    at(x, y) { return `${Math.round(x * 100) / 100} ${Math.round(y * 100) / 100}`; }
    moveTo(x, y) { this.path += `M${this.at(x, y)}`; }
    lineTo(x, y) { this.path += `${this.path ? "L" : "M"}${this.at(x, y)}`; }
    closePath() { this.path += "Z"; }
    rect(x, y, w, h) { this.path += `M${this.at(x, y)}h${w}v${h}h${-w}Z`; }
    clip() {
      this.clipped = `clip${this.clips++}`;
      this.out.push(`<clipPath id="${this.clipped}"${this.transform ? ` transform="${this.transform.trim()}"` : ""}><path d="${this.path}"/></clipPath>`);
    }
    setLineDash(dash) { this.dash = dash; }
    stroke() {
      const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
      this.out.push(`<g${this.frame()}><path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" opacity="${this.globalAlpha}"${dash}/></g>`);
    }
    fill() { this.out.push(`<g${this.frame()}><path d="${this.path}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/></g>`); }
    fillRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.fill(); }
    fillText(text, x, y) {
      const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
      const shift = { middle: "0.35em", top: "0.8em", alphabetic: "0" }[this.textBaseline];
      const weight = /\b(bold|650)\b/.test(this.font) ? ' font-weight="650"' : "";
      const size = /(\d+)px/.exec(this.font)[1];
      this.out.push(`<g${this.frame()}><text x="${x}" y="${y}" dy="${shift}" text-anchor="${anchor}" font-size="${size}"${weight} fill="${this.fillStyle}">${text.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</text></g>`);
    }
    text() { return `<svg xmlns="${SVG}" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}" font-family="system-ui, sans-serif">${this.out.join("")}</svg>\n`; }
  }

  // --- one panel ---
  // series: {name, colour, kind: line | wide | points | band, x, y, low, high, dash, hidden}
  class Panel {
    constructor(canvas, settings) {
      this.canvas = canvas;
      Object.assign(this, { xlabel: "", ylabel: "", log: false, span: null, marks: [], levels: [], series: [], bottom: 20, steady: null }, settings);
      if (this.xlabel) this.bottom = 36;
      if (this.above) this.bottom = 6;
      this.cursor = document.createElement("div");
      this.cursor.className = "cursor";
      this.cursor.hidden = true;
      canvas.parentNode.append(this.cursor);
    }

    rangeY(x0, x1) {
      if (this.span) return this.span;
      let low = Infinity, high = -Infinity, least = Infinity;
      for (const s of this.series) {
        if (s.hidden || s.loose) continue;
        const xs = s.x || this.x;
        const from = s.kind === "points" ? 0 : Math.max(0, lowerIndex(xs, x0) - 1);
        const to = s.kind === "points" ? xs.length : Math.min(xs.length, lowerIndex(xs, x1) + 1);
        for (const ys of s.kind === "band" ? [s.low, s.high] : [s.y])
          for (let i = from; i < to; i++) {
            const y = ys[i];
            if (y < low) low = y;
            if (y > high) high = y;
            if (this.log && y > 0 && y < least) least = y;
          }
      }
      for (const level of this.levels) if (Number.isFinite(level.y)) { low = Math.min(low, level.y); high = Math.max(high, level.y); }
      if (!(low <= high)) return this.log ? [0.1, 10] : [-1, 1];
      if (this.log) {
        if (!(least < high)) least = high / 10;
        return [least / 1.3, high * 1.3];
      }
      const size = Math.max(Math.abs(low), Math.abs(high));
      const pad = high - low > 1e-6 * size ? 0.07 * (high - low) : 0.1 * size || 1;
      const range = [low - pad, high + pad];
      if (!this.steady) return range;
      // A moving picture: the range grows at once and shrinks slowly.
      const [a, b] = this.steady;
      this.steady = Number.isFinite(a) ? [range[0] < a ? range[0] : a + 0.05 * (range[0] - a), range[1] > b ? range[1] : b + 0.05 * (range[1] - b)] : range;
      return this.steady;
    }

    draw(view) {
      const ratio = window.devicePixelRatio || 1, canvas = this.canvas;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      if (!width || !height) return;
      const w = Math.round(width * ratio), h = Math.round(height * ratio);
      if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
      const pen = (this.pen = this.pen || canvas.getContext("2d"));
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      this.paint(pen, width, height, view);
    }

    paint(pen, width, height, view) {
      const [x0, x1] = view, [y0, y1] = this.rangeY(x0, x1);
      const right = width - RIGHT, bottom = height - this.bottom;
      const left = this.leftEdge(bottom - TOP, [y0, y1]), kx = (right - left) / (x1 - x0 || 1);
      const l0 = this.log ? Math.log(y0) : y0, ky = (bottom - TOP) / ((this.log ? Math.log(y1) : y1) - l0 || 1);
      const px = (x) => left + (x - x0) * kx;
      const py = this.log ? (y) => bottom - (Math.log(Math.max(y, y0 * 0.5)) - l0) * ky : (y) => bottom - (y - l0) * ky;
      Object.assign(this, { view, drawn: [y0, y1], plot: [left, TOP, right, bottom] });
      this.axes(pen, view, [y0, y1], px, py, width, height);
      pen.save();
      pen.beginPath(); pen.rect(left, TOP, right - left, bottom - TOP); pen.clip();
      for (const mark of this.marks) {
        pen.fillStyle = named("residual"); pen.globalAlpha = 0.14;
        pen.fillRect(px(mark.from), TOP, Math.max(1, (mark.to - mark.from) * kx), bottom - TOP);
        pen.globalAlpha = 1;
      }
      for (const s of this.series) if (!s.hidden) this.curve(pen, s, view, px, py, [y0, y1]);
      for (const level of this.levels) {
        pen.strokeStyle = colour(level.colour); pen.lineWidth = 1.25; pen.setLineDash([6, 4]);
        pen.beginPath(); pen.moveTo(left, py(level.y)); pen.lineTo(right, py(level.y)); pen.stroke(); pen.setLineDash([]);
      }
      pen.restore();
      if (this.marks.length) {
        pen.font = `bold ${FONT}`; pen.textAlign = "center"; pen.textBaseline = "top"; pen.fillStyle = named("residual");
        for (const mark of this.marks) if (mark.name && mark.from >= x0 && mark.from <= x1) {
          const at = px((mark.from + Math.min(mark.to, x1)) / 2), size = DIGIT * mark.name.length + 6;
          pen.fillStyle = named("paper"); pen.fillRect(at - size / 2, TOP, size, 15);
          pen.fillStyle = named("residual"); pen.fillText(mark.name, at, TOP + 2);
        }
      }
    }

    ticksY(height, [y0, y1]) { return (this.log ? logTicks : linearTicks)(y0, y1, Math.max(2, Math.floor(height / 34))); }

    // Room for the widest number beside the label: the same for all panels of a group, whose time axes are one.
    leftEdge(height, range) {
      const widest = Math.max(0, ...this.ticksY(height, range).map(([, label]) => label.length)), needed = DIGIT * widest + 22;
      const { group } = this;
      if (needed > group.left) { group.left = needed; group.draw(); }
      return group.left;
    }

    axes(pen, [x0, x1], [y0, y1], px, py, width, height) {
      const [left, top, right, bottom] = this.plot;
      pen.font = FONT; pen.lineWidth = 1; pen.strokeStyle = named("grid"); pen.fillStyle = named("soft");
      const wideMany = Math.max(2, Math.floor((right - left) / 70));
      const ys = this.ticksY(bottom - top, [y0, y1]), xs = linearTicks(x0, x1, wideMany);
      this.ticks = { x: xs.length, y: ys.length };
      pen.beginPath();
      for (const [y] of ys) { const at = Math.round(py(y)) + 0.5; pen.moveTo(left, at); pen.lineTo(right, at); }
      for (const [x] of xs) { const at = Math.round(px(x)) + 0.5; pen.moveTo(at, top); pen.lineTo(at, bottom); }
      pen.stroke();
      pen.textAlign = "right"; pen.textBaseline = "middle";
      for (const [y, label] of ys) pen.fillText(label, left - 6, Math.min(bottom - 4, Math.max(top + 5, py(y))));
      if (this.bottom >= 18) {
        pen.textAlign = "center"; pen.textBaseline = "top";
        for (const [x, label] of xs) pen.fillText(label, Math.min(px(x), width - (DIGIT * label.length) / 2), bottom + 4);
        if (this.xlabel) pen.fillText(this.xlabel, (left + right) / 2, height - 14);
      }
      if (this.ylabel) {
        pen.save();
        pen.translate(7, (top + bottom) / 2); pen.rotate(-Math.PI / 2);
        // A low strip has no room for the name of the quantity: its unit.
        const short = DIGIT * this.ylabel.length > bottom - top + 14 ? /\[.*\]$/.exec(this.ylabel)?.[0] : null;
        pen.textAlign = "center"; pen.textBaseline = "middle"; pen.fillText(short || this.ylabel, 0, 0);
        pen.restore();
      }
    }

    curve(pen, s, [x0, x1], px, py, [y0, y1]) {
      const xs = s.x || this.x, ink = colour(s.colour);
      pen.fillStyle = pen.strokeStyle = ink;
      if (s.kind === "points") {
        const size = xs.length < 600 ? 4 : 2.2;
        pen.globalAlpha = xs.length < 600 ? 0.8 : 0.5;
        pen.beginPath();
        for (let i = 0; i < xs.length; i++)
          if (xs[i] >= x0 && xs[i] <= x1) pen.rect(px(xs[i]) - size / 2, py(s.y[i]) - size / 2, size, size);
        pen.fill(); pen.globalAlpha = 1;
        return;
      }
      const from = Math.max(0, lowerIndex(xs, x0) - 1), to = Math.min(xs.length, lowerIndex(xs, x1) + 1);
      if (s.kind === "band") { this.area(pen, xs, s.low, s.high, from, to, px, py, 0); pen.globalAlpha = s.alpha || 0.22; pen.fill(); pen.globalAlpha = 1; return; }
      // Wide strokes are dear without a GPU; a wide curve is an area of constant height instead.
      if (s.kind === "wide") { this.area(pen, xs, s.y, s.y, from, to, px, py, 1.7); pen.fill(); return; }
      // Hairlines in moving pictures: without a GPU wider ones cost twice as much.
      pen.lineWidth = this.steady ? 1 : 1.25; pen.lineJoin = "bevel"; pen.setLineDash(s.dash || []);
      pen.beginPath();
      this.trace(pen, xs, s.y, from, to, px, py);
      pen.stroke(); pen.setLineDash([]);
      if (this.span) this.cut(pen, xs, s.y, from, to, px, y0, y1);
    }

    // A line through the extremes of every pixel column, in the order in which they came.
    trace(pen, xs, ys, from, to, px, py) {
      const dense = to - from > 3 * (this.plot[2] - this.plot[0]);
      let started = false, column = NaN, low = 0, high = 0, lowAt = 0, highAt = 0;
      const flush = () => {
        const first = lowAt < highAt ? low : high, last = lowAt < highAt ? high : low;
        if (started) pen.lineTo(column, py(first)); else { pen.moveTo(column, py(first)); started = true; }
        if (first !== last) pen.lineTo(column, py(last));
      };
      for (let i = from; i < to; i++) {
        const y = ys[i];
        if (y !== y) { if (column === column) { flush(); column = NaN; } started = false; continue; }
        if (!dense) { if (started) pen.lineTo(px(xs[i]), py(y)); else { pen.moveTo(px(xs[i]), py(y)); started = true; } continue; }
        const next = Math.round(px(xs[i]));
        if (next !== column) {
          if (column === column) flush();
          column = next; low = high = y; lowAt = highAt = i;
        } else if (y < low) { low = y; lowAt = i; } else if (y > high) { high = y; highAt = i; }
      }
      if (dense && column === column) flush();
    }

    // The area from the lowest to the highest value of every pixel column, `extra` pixels wider.
    area(pen, xs, lows, highs, from, to, px, py, extra) {
      const back = [];
      let column = NaN, low = 0, high = 0, started = false;
      const dense = to - from > 3 * (this.plot[2] - this.plot[0]);
      const add = (x, a, b) => {
        const top = py(b) - extra, base = py(a) + extra;
        if (started) pen.lineTo(x, top); else { pen.moveTo(x, top); started = true; }
        back.push(x, base);
      };
      const close = () => {
        for (let k = back.length - 2; k >= 0; k -= 2) pen.lineTo(back[k], back[k + 1]);
        if (started) pen.closePath();
        back.length = 0; started = false;
      };
      pen.beginPath();
      for (let i = from; i < to; i++) {
        const a = lows[i], b = highs[i];
        if (a !== a || b !== b) { if (column === column) { add(column, low, high); column = NaN; } close(); continue; }
        if (!dense) { this.steep(add, xs, lows, highs, i, from, px, py, extra); continue; }
        const next = Math.round(px(xs[i]));
        if (next !== column) {
          if (column === column) add(column, low, high);
          column = next; low = a; high = b;
        } else { if (a < low) low = a; if (b > high) high = b; }
      }
      if (dense && column === column) add(column, low, high);
      close();
    }

    // Where a curve is steep, its height must reach the next value, or the area becomes thin.
    steep(add, xs, lows, highs, i, from, px, py, extra) {
      if (extra && i > from && Math.abs(py(lows[i]) - py(lows[i - 1])) > 3) {
        const low = Math.min(lows[i], lows[i - 1]), high = Math.max(highs[i], highs[i - 1]);
        const middle = (px(xs[i]) + px(xs[i - 1])) / 2;
        if (low === low) { add(middle - 1, low, high); add(middle + 1, low, high); }
      }
      add(px(xs[i]), lows[i], highs[i]);
    }

    // Triangles where a curve leaves a fixed range.
    cut(pen, xs, ys, from, to, px, y0, y1) {
      const [, top, , bottom] = this.plot;
      let last = -100;
      pen.beginPath();
      for (let i = from; i < to; i++) {
        const over = ys[i] > y1, under = ys[i] < y0, x = over || under ? px(xs[i]) : 0;
        if (!(over || under) || x - last < 8) continue;
        last = x;
        const edge = over ? top : bottom, tip = over ? 5 : -5;
        pen.moveTo(x, edge); pen.lineTo(x - 3.5, edge + tip); pen.lineTo(x + 3.5, edge + tip); pen.closePath();
      }
      pen.fill();
    }

    toX(pixel) { return this.view[0] + ((pixel - this.plot[0]) / (this.plot[2] - this.plot[0])) * (this.view[1] - this.view[0]); }

    point(x) {
      const inside = this.view && x !== null && x >= this.view[0] && x <= this.view[1];
      this.cursor.hidden = !inside;
      if (!inside) return;
      const [left, top, right, bottom] = this.plot;
      const at = this.canvas.offsetLeft + left + ((x - this.view[0]) / (this.view[1] - this.view[0])) * (right - left);
      Object.assign(this.cursor.style, { left: `${at}px`, top: `${this.canvas.offsetTop + top}px`, height: `${bottom - top}px` });
    }
  }

  // --- figures that share view and cursor ---
  const groups = new Map();
  class Group {
    constructor() { Object.assign(this, { figures: [], full: [Infinity, -Infinity], left: AXIS, view: null, cursor: null, follow: false, listeners: [] }); }
    widen(xs) {
      if (!xs.length) return;
      let low = Infinity, high = -Infinity;
      for (const x of xs) { if (x < low) low = x; if (x > high) high = x; }
      this.full = [Math.min(this.full[0], low), Math.max(this.full[1], high)];
      if (this.full[0] === this.full[1]) this.full = [this.full[0] - 1, this.full[1] + 1];
    }
    get range() { return this.view || this.full; }
    set(low, high) {
      const [a, b] = this.limits || this.full, least = (b - a) * 1e-5;
      const span = Math.min(b - a, Math.max(least, high - low));
      low = Math.max(a, Math.min(low, b - span));
      this.view = span >= (b - a) * 0.9999 && !this.limits ? null : [low, low + span];
      this.draw();
    }
    reset() { this.view = null; this.draw(); }
    zoom(factor, about) {
      const [a, b] = this.range, middle = about ?? (a + b) / 2;
      this.set(middle - (middle - a) * factor, middle - (middle - a) * factor + (b - a) * factor);
    }
    move(fraction) {
      const [a, b] = this.range, step = fraction * (b - a);
      this.set(a + step, b + step);
    }
    draw() { for (const figure of this.figures) figure.later(); for (const listener of this.listeners) listener(); }
    point(x) { this.cursor = x; for (const figure of this.figures) figure.point(x); }
    // A key or a button; whether it was known.
    key(name) {
      const actions = { "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "−": () => this.zoom(2), ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), 0: () => this.reset(), Escape: () => this.reset() };
      if (!actions[name]) return false;
      actions[name]();
      return true;
    }
  }
  const groupOf = (name) => {
    if (!name) return new Group();
    if (!groups.has(name)) groups.set(name, new Group());
    return groups.get(name);
  };

  const shown = new Map();
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) { const figure = shown.get(target); figure.visible = isIntersecting; if (isIntersecting) figure.later(); }
  }, { rootMargin: "200px" });
  const resized = new ResizeObserver((entries) => { for (const { target } of entries) shown.get(target).later(); });

  class Figure {
    constructor(element, group, panels) {
      Object.assign(this, { element, group, panels, visible: false, stale: true, waiting: false, frames: 0 });
      this.caption = element.querySelector("figcaption");
      this.note = element.querySelector(".note");
      this.noteText = this.note ? this.note.textContent : "";
      group.figures.push(this);
      shown.set(element, this);
      seen.observe(element); resized.observe(element);
      panels.forEach((panel) => { panel.group = group; gestures(panel, this); });
    }
    later() {
      this.stale = true;
      if (this.waiting || !this.visible || document.hidden) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }
    draw() {
      if (!this.stale || document.hidden) return;
      this.stale = false; this.frames++;
      for (const panel of this.panels) panel.draw(this.group.range);
      this.point(this.group.cursor);
    }
    point(x) {
      for (const panel of this.panels) panel.point(x);
      if (!this.note) return;
      this.note.textContent = x === null || !this.panels[0].view ? this.noteText : this.reading(x);
    }
    reading(x) {
      const parts = [];
      this.panels.forEach((panel) => {
        for (const s of panel.series) {
          if (s.hidden || !s.y || s.kind === "points" || !s.name) continue;
          const xs = s.x || panel.x;
          if (xs.length) parts.push(`${s.short || s.name} ${significant(s.y[nearest(xs, x)])}`);
        }
      });
      return `${this.element.dataset.at || "x"} ${significant(x, 4)}: ${parts.join(", ")}`;
    }
  }

  // --- gestures of one panel ---
  const gestures = (panel, figure) => {
    const { canvas } = panel, { group } = figure;
    const touches = new Map();
    let start = null, moved = false, panFrom = null, pinch = null, lastTap = 0;
    const box = document.createElement("div");
    box.className = "selection"; box.hidden = true;
    canvas.parentNode.append(box);
    const at = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const inside = (pixel) => Math.min(panel.plot[2], Math.max(panel.plot[0], pixel));
    const select = (a, b) => {
      box.hidden = a === null;
      if (a === null) return;
      const [, top, , bottom] = panel.plot;
      Object.assign(box.style, { left: `${canvas.offsetLeft + Math.min(a, b)}px`, width: `${Math.abs(b - a)}px`, top: `${canvas.offsetTop + top}px`, height: `${bottom - top}px` });
    };
    const spread = () => { const [a, b] = [...touches.values()]; return [Math.max(8, Math.abs(a - b)), (a + b) / 2]; };
    canvas.addEventListener("pointerdown", (event) => {
      if (!panel.view || (event.pointerType === "mouse" && event.button !== 0)) return;
      canvas.setPointerCapture(event.pointerId);
      const pixel = at(event);
      moved = false;
      if (event.pointerType === "touch") {
        touches.set(event.pointerId, pixel);
        if (touches.size === 2) { const [span, middle] = spread(); pinch = { span, x: panel.toX(middle), range: group.range }; panFrom = null; }
        else panFrom = { pixel, range: group.range };
      } else if (event.shiftKey) panFrom = { pixel, range: group.range };
      else start = inside(pixel);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!panel.view) return;
      const pixel = at(event), width = panel.plot[2] - panel.plot[0];
      if (touches.has(event.pointerId)) touches.set(event.pointerId, pixel);
      if (pinch && touches.size === 2) {
        const [span, middle] = spread(), size = ((pinch.range[1] - pinch.range[0]) * pinch.span) / span;
        const low = pinch.x - ((middle - panel.plot[0]) / width) * size;
        group.set(low, low + size);
      } else if (panFrom) {
        moved = moved || Math.abs(pixel - panFrom.pixel) > 4;
        const step = ((panFrom.pixel - pixel) / width) * (panFrom.range[1] - panFrom.range[0]);
        if (moved && group.view) group.set(panFrom.range[0] + step, panFrom.range[1] + step);
        if (!group.view) group.point(panel.toX(inside(pixel)));
      } else if (start !== null) {
        moved = moved || Math.abs(pixel - start) > 4;
        if (moved) select(start, inside(pixel));
      } else group.point(pixel >= panel.plot[0] && pixel <= panel.plot[2] ? panel.toX(pixel) : null);
    });
    const end = (event) => {
      const pixel = inside(at(event));
      if (start !== null && moved && event.type === "pointerup") group.set(panel.toX(Math.min(start, pixel)), panel.toX(Math.max(start, pixel)));
      if (event.pointerType === "touch" && touches.size === 1 && !moved && !pinch && event.type === "pointerup") {
        if (event.timeStamp - lastTap < 350) group.reset(); else group.point(panel.toX(pixel));
        lastTap = event.timeStamp;
      }
      touches.delete(event.pointerId);
      if (!touches.size) pinch = null;
      start = null; panFrom = null; select(null);
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && start === null) group.point(null); });
    canvas.addEventListener("dblclick", () => group.reset());
    canvas.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey) || !panel.view) return;
      event.preventDefault();
      group.zoom(Math.pow(1.0015, event.deltaY), panel.toX(inside(at(event))));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (group.key(event.key)) { event.preventDefault(); event.stopPropagation(); }
    });
  };

  // --- files ---
  const download = (name, content, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const fileName = (text) => text.trim().toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "").slice(0, 60) || "chart";
  // The figures of one container as they stand on the page, painted with any pen.
  const compose = (pen, scope, figures, width, height) => {
    const origin = scope.getBoundingClientRect(), legend = scope.querySelector(".legend");
    pen.fillStyle = named("paper"); pen.fillRect(0, 0, width, height);
    const place = (element) => { const r = element.getBoundingClientRect(); return [r.left - origin.left, r.top - origin.top, r.width, r.height]; };
    if (legend) for (const item of legend.children) {
      const [x, y, , h] = place(item), s = item.series;
      if (s.hidden) continue;
      pen.fillStyle = colour(s.colour); pen.globalAlpha = s.kind === "band" ? 0.3 : 1;
      const thick = { band: 12, wide: 5, points: 5 }[s.kind] || 2;
      pen.fillRect(x, y + h / 2 - thick / 2, s.kind === "points" ? 5 : 20, thick); pen.globalAlpha = 1;
      pen.fillStyle = named("soft"); pen.font = "13px system-ui, sans-serif"; pen.textAlign = "left"; pen.textBaseline = "middle";
      pen.fillText(item.textContent, x + 26, y + h / 2);
    }
    for (const figure of figures) {
      const title = figure.element.querySelector("figcaption b") || figure.caption;
      if (title) {
        const [x, y, , h] = place(title);
        pen.font = "bold 13px system-ui, sans-serif"; pen.fillStyle = named("ink"); pen.textAlign = "left"; pen.textBaseline = "middle";
        pen.fillText(title.textContent, x, y + h / 2);
      }
      if (figure.note) {
        const [x, y, w, h] = place(figure.note);
        pen.font = FONT; pen.fillStyle = named("soft"); pen.textAlign = "right"; pen.textBaseline = "middle";
        pen.fillText(figure.noteText, x + w, y + h / 2);
      }
      for (const panel of figure.panels) {
        const [x, y, w, h] = place(panel.canvas);
        pen.save(); pen.translate(x, y); panel.paint(pen, w, h, figure.group.range); pen.restore();
      }
    }
  };
  const toSvg = (scope, figures) => {
    const { width, height } = scope.getBoundingClientRect(), pen = new SvgPen(Math.ceil(width), Math.ceil(height));
    compose(pen, scope, figures, pen.width, pen.height);
    return pen.text();
  };
  const toPng = (scope, figures) => new Promise((done) => {
    const { width, height } = scope.getBoundingClientRect(), canvas = document.createElement("canvas");
    canvas.width = 2 * Math.ceil(width); canvas.height = 2 * Math.ceil(height);
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    compose(pen, scope, figures, Math.ceil(width), Math.ceil(height));
    canvas.toBlob(done);
  });
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // Columns of one abscissa side by side; series with their own abscissa below, as further blocks.
  const toCsv = (figures) => {
    const blocks = new Map();
    for (const figure of figures) for (const panel of figure.panels) for (const s of panel.series) {
      if (s.hidden) continue;
      const xs = s.x || panel.x, title = (figure.element.querySelector("figcaption b") || figure.caption)?.textContent ?? "";
      if (!blocks.has(xs)) blocks.set(xs, [[panel.xname || figure.element.dataset.x || panel.xlabel || "x", xs, figure.group.range]]);
      const unit = /\[.*\]/.exec(panel.yname || panel.ylabel)?.[0] ?? "";
      const head = `${title}: ${s.name || "series"} ${unit}`.trim();
      if (s.kind === "band") blocks.get(xs).push([`${head} low`, s.low], [`${head} high`, s.high]);
      else blocks.get(xs).push([head, s.y]);
    }
    const cell = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(7))) : "");
    return [...blocks.values()].map((columns) => {
      const rows = [columns.map(([head]) => quote(head)).join(",")], [, xs, [x0, x1]] = columns[0];
      for (let i = 0; i < xs.length; i++)
        if (xs[i] >= x0 && xs[i] <= x1) rows.push(columns.map(([, values], k) => (k ? cell(values[i]) : String(Number(values[i].toPrecision(10))))).join(","));
      return rows.join("\n");
    }).join("\n\n") + "\n";
  };

  // --- legend and toolbar ---
  const button = (text, label, act) => {
    const element = document.createElement("button");
    element.type = "button"; element.textContent = text; element.title = label;
    if (label !== text) element.setAttribute("aria-label", label);
    element.onclick = act;
    return element;
  };
  const legendOf = (figures) => {
    const box = document.createElement("div"), known = new Map();
    box.className = "legend";
    for (const figure of figures) for (const panel of figure.panels) for (const s of panel.series) {
      if (!s.name) continue;
      if (known.has(s.name)) { known.get(s.name).push([s, figure]); continue; }
      const item = document.createElement("button"), swatch = document.createElement("i"), all = [[s, figure]];
      known.set(s.name, all);
      item.type = "button"; item.series = s;
      item.setAttribute("aria-pressed", "true");
      swatch.className = s.dash && s.dash.length ? "dashed" : s.kind;
      swatch.style[swatch.className === "dashed" ? "borderColor" : "background"] = s.colour;
      item.append(swatch, s.name);
      item.onclick = () => {
        const hidden = !s.hidden;
        for (const [other, owner] of all) { other.hidden = hidden; owner.later(); }
        item.setAttribute("aria-pressed", String(!hidden));
      };
      box.append(item);
    }
    return box;
  };
  const toolbarOf = (scope, figures, name) => {
    const box = document.createElement("div"), press = (key) => () => { for (const group of new Set(figures.map((f) => f.group))) group.key(key); };
    box.className = "tools"; box.setAttribute("role", "group"); box.setAttribute("aria-label", `Tools of ${name}`);
    box.append(
      button("+", "Zoom in", press("+")), button("−", "Zoom out", press("-")),
      button("‹", "Earlier", press("ArrowLeft")), button("›", "Later", press("ArrowRight")),
      button("Reset", "Reset", press("0")),
      button("PNG", "Save as PNG", async () => download(`${fileName(name)}.png`, await toPng(scope, figures))),
      button("SVG", "Save as SVG", () => download(`${fileName(name)}.svg`, toSvg(scope, figures), "image/svg+xml")),
      button("CSV", "Save as CSV", () => download(`${fileName(name)}.csv`, toCsv(figures), "text/csv")),
    );
    return box;
  };
  const bar = (scope, figures, name, where) => {
    const row = document.createElement("div");
    row.className = "bar";
    row.append(legendOf(figures), toolbarOf(scope, figures, name));
    where(row);
  };

  // --- figures written in the page ---
  const readFigure = (element) => {
    const spec = JSON.parse(element.querySelector("script").textContent), group = groupOf(spec.group);
    const x = spec.x ? (group.x = wide(spec.x)) : group.x;
    if (spec.x) group.widen(x);
    if (spec.view) group.view = spec.view;
    const canvases = element.querySelectorAll("canvas");
    const all = [];
    const panels = spec.panels.map((settings, k) => {
      const series = settings.series.map((s) => {
        const own = s.x ? wide(s.x) : null, xs = own || x, out = { ...s, x: own };
        if (own) group.widen(own);
        if (typeof s.y === "string") out.y = narrow(s.y);
        if (s.minus) { const [a, b] = s.minus.map((n) => all[n].y); out.y = a.map((v, i) => v - b[i]); }
        if (s.kind === "band") {
          if (s.half) {
            const half = s.half_x ? interpolate(wide(s.half_x), narrow(s.half), xs) : narrow(s.half);
            const middle = s.about === null ? new Float32Array(half.length) : null;
            out.owed = { half, middle, about: s.about };
          } else { out.low = narrow(s.low); out.high = narrow(s.high); }
        }
        all.push(out);
        return out;
      });
      return { ...settings, series, x, k };
    });
    // Points at the ends would stand on the frame.
    if (!group.roomy && all.some((s) => s.kind === "points")) { group.roomy = true; const room = 0.02 * (group.full[1] - group.full[0]); group.full = [group.full[0] - room, group.full[1] + room]; }
    // Bands about a curve that may come after them.
    for (const s of all) if (s.owed) {
      const { half, about } = s.owed, middle = s.owed.middle || all[about].y;
      s.low = half.map((h, i) => middle[i] - h); s.high = half.map((h, i) => middle[i] + h);
    }
    return new Figure(element, group, panels.map((settings, k) => new Panel(canvases[k], settings)));
  };
  const start = () => {
    readTheme();
    document.querySelectorAll(".charts").forEach((scope) => {
      const figures = [...scope.querySelectorAll("figure.chart:has(> script)")].map(readFigure);
      if (figures.length) bar(scope, figures, scope.dataset.name || "charts", (row) => scope.prepend(row));
    });
    document.querySelectorAll("figure.chart:has(> script)").forEach((element) => {
      if (shown.has(element)) return;
      const figure = readFigure(element);
      bar(element, [figure], (element.querySelector("figcaption b") || figure.caption).textContent, (row) => figure.caption.after(row));
    });
  };

  // --- tables: order, search, CSV; blocks to copy ---
  const valueOf = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.replace(/[\u202f\s]/g, "").replace("−", "-");
    const number = parseFloat(text);
    return Number.isFinite(number) ? number : null;
  };
  const sortBy = (table, column, head) => {
    const down = head.getAttribute("aria-sort") === "descending", body = table.tBodies[0];
    const rows = [...body.rows], text = rows.some((row) => row.cells[column] && valueOf(row.cells[column]) === null && row.cells[column].dataset.value !== "" && row.cells[column].textContent.trim() !== "–");
    const key = (row) => (text ? row.cells[column].textContent.trim().toLowerCase() : valueOf(row.cells[column]) ?? (down ? Infinity : -Infinity));
    rows.sort((a, b) => { const p = key(a), q = key(b); return (p < q ? -1 : p > q ? 1 : 0) * (down ? 1 : -1); });
    if (text && !head.hasAttribute("aria-sort")) rows.reverse();
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    const descending = text ? rows.length > 1 && key(rows[0]) > key(rows[rows.length - 1]) : !down;
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    body.append(...rows);
  };
  const tables = () => document.querySelectorAll("table.data").forEach((table) => {
    const rows = [...table.tBodies[0].rows], box = document.createElement("div"), name = table.dataset.name || document.title;
    box.className = "tools right";
    if (rows.length > 8) {
      const find = document.createElement("input");
      find.type = "search"; find.placeholder = "Find"; find.setAttribute("aria-label", `Find in ${name}`);
      find.oninput = () => { const wanted = find.value.toLowerCase(); for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted); };
      box.append(find);
    }
    box.append(button("CSV", `Save ${name} as CSV`, () => {
      const lines = [table.tHead.rows[0], ...[...table.tBodies[0].rows].filter((row) => !row.hidden)];
      const text = (cell) => quote((cell.dataset.value ?? cell.querySelector("button")?.firstChild.textContent ?? cell.textContent).trim().replace("−", "-"));
      download(`${fileName(name)}.csv`, lines.map((row) => [...row.cells].map(text).join(",")).join("\n") + "\n", "text/csv");
    }));
    table.parentNode.before(box);
    if (rows.length > 2) [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const sort = button(head.textContent, `Sort by ${head.textContent}`, () => sortBy(table, column, head));
      sort.removeAttribute("title"); sort.removeAttribute("aria-label");
      head.textContent = ""; head.append(sort);
    });
  });
  const copies = () => document.querySelectorAll(".command").forEach((block) => {
    const code = block.querySelector("code");
    const copy = button("Copy", `Copy ${code.textContent.slice(0, 40)}`, async () => {
      try { await navigator.clipboard.writeText(code.textContent); copy.textContent = "Copied"; } catch { getSelection().selectAllChildren(code); copy.textContent = "Ctrl+C"; }
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    block.append(copy);
  });

  const redraw = () => { readTheme(); for (const figure of shown.values()) figure.later(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) for (const figure of shown.values()) figure.later(); });
  // Paper is white: charts are drawn again in the light scheme, and back afterwards.
  const printing = (is) => {
    document.documentElement.classList.toggle("printing", is);
    readTheme();
    for (const figure of shown.values()) { figure.stale = true; figure.draw(); }
  };
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    printing(true);
  });
  addEventListener("afterprint", () => printing(false));
  const begin = () => { start(); tables(); copies(); };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin); else begin();
  return { Panel, Figure, Group, groups, shown, readTheme, colour, named, fixed, significant, legendOf, toolbarOf, toSvg, toPng, toCsv, linearTicks, logTicks };
})();
