// Line charts on a canvas: drag to zoom, double-click to go back, charts of one group move together.
"use strict";
(() => {
  const decode = (text) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float32Array(bytes.buffer);
  };
  const groups = new Map();

  const niceStep = (span, count) => {
    const rough = span / Math.max(1, count);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    for (const factor of [1, 2, 5, 10]) if (power * factor >= rough) return power * factor;
    return 10 * power;
  };
  const label = (value, step) => {
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    return Math.abs(value) >= 1e5 ? value.toExponential(1) : value.toFixed(digits);
  };

  class Chart {
    constructor(figure) {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      this.spec = spec;
      this.x = decode(spec.x);
      this.series = spec.series.map((s) => ({
        ...s,
        y: s.y ? decode(s.y) : null,
        low: s.low ? decode(s.low) : null,
        high: s.high ? decode(s.high) : null,
        x: s.x ? decode(s.x) : null,
        shown: true,
      }));
      this.canvas = figure.querySelector("canvas");
      this.readout = figure.querySelector(".readout");
      this.view = null;
      this.full = this.extent();
      if (spec.group) {
        if (!groups.has(spec.group)) groups.set(spec.group, []);
        groups.get(spec.group).push(this);
      }
      this.legend(figure);
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      this.draw();
    }

    extent() {
      let low = Infinity, high = -Infinity;
      for (const xs of [this.x, ...this.series.map((s) => s.x)]) {
        if (!xs) continue;
        for (const value of xs) if (isFinite(value)) { if (value < low) low = value; if (value > high) high = value; }
      }
      return low < high ? [low, high] : [low - 1, low + 1];
    }

    legend(figure) {
      const box = figure.querySelector(".legend");
      this.series.forEach((s, i) => {
        if (!s.name) return;
        const item = document.createElement("button");
        item.type = "button";
        item.innerHTML = `<i style="background:${s.color}"></i>`;
        item.append(s.name);
        item.onclick = () => {
          s.shown = !s.shown;
          item.classList.toggle("off", !s.shown);
          this.draw();
        };
        box.append(item);
      });
    }

    peers() { return this.spec.group ? groups.get(this.spec.group) : [this]; }

    listen() {
      const at = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
      let start = null;
      this.canvas.addEventListener("pointerdown", (e) => { start = at(e); this.canvas.setPointerCapture(e.pointerId); });
      this.canvas.addEventListener("pointermove", (e) => {
        this.drag = start === null ? null : [start, at(e)];
        this.hover = at(e);
        this.draw();
      });
      this.canvas.addEventListener("pointerup", (e) => {
        const stop = at(e);
        if (start !== null && Math.abs(stop - start) > 6) {
          const view = [this.toX(Math.min(start, stop)), this.toX(Math.max(start, stop))];
          for (const chart of this.peers()) { chart.view = view; chart.draw(); }
        }
        start = null; this.drag = null; this.draw();
      });
      this.canvas.addEventListener("pointerleave", () => { this.hover = null; this.readout.textContent = ""; this.draw(); });
      this.canvas.addEventListener("dblclick", () => {
        for (const chart of this.peers()) { chart.view = null; chart.draw(); }
      });
    }

    toX(pixel) {
      const [low, high] = this.view || this.full;
      return low + ((pixel - this.left) / (this.width - this.left - 8)) * (high - low);
    }

    draw() {
      const ratio = window.devicePixelRatio || 1;
      const width = (this.width = this.canvas.clientWidth), height = this.canvas.clientHeight;
      if (!width) return;
      this.canvas.width = width * ratio; this.canvas.height = height * ratio;
      const pen = this.canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.clearRect(0, 0, width, height);
      const style = getComputedStyle(document.documentElement);
      const ink = style.getPropertyValue("--ink"), grid = style.getPropertyValue("--grid");
      const left = (this.left = 58), right = 8, top = 8, bottom = 34;
      const [x0, x1] = this.view || this.full;
      let y0 = Infinity, y1 = -Infinity;
      const take = (xs, ys) => {
        for (let i = 0; i < ys.length; i++)
          if (xs[i] >= x0 && xs[i] <= x1 && isFinite(ys[i])) { if (ys[i] < y0) y0 = ys[i]; if (ys[i] > y1) y1 = ys[i]; }
      };
      for (const s of this.series) {
        if (!s.shown) continue;
        for (const ys of [s.y, s.low, s.high]) if (ys) take(s.x || this.x, ys);
      }
      if (!(y0 <= y1)) { y0 = -1; y1 = 1; }
      const pad = 0.06 * (y1 - y0) || 1;
      y0 -= pad; y1 += pad;
      const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - right);
      const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom);
      pen.font = "11px system-ui, sans-serif";
      pen.fillStyle = ink; pen.strokeStyle = grid; pen.lineWidth = 1;
      pen.textAlign = "right"; pen.textBaseline = "middle";
      const stepY = niceStep(y1 - y0, height / 45);
      for (let y = Math.ceil(y0 / stepY) * stepY; y <= y1; y += stepY) {
        pen.beginPath(); pen.moveTo(left, py(y)); pen.lineTo(width - right, py(y)); pen.stroke();
        pen.fillText(label(y, stepY), left - 6, py(y));
      }
      pen.textAlign = "center"; pen.textBaseline = "top";
      const stepX = niceStep(x1 - x0, width / 90);
      for (let x = Math.ceil(x0 / stepX) * stepX; x <= x1; x += stepX) {
        pen.beginPath(); pen.moveTo(px(x), top); pen.lineTo(px(x), height - bottom); pen.stroke();
        pen.fillText(label(x, stepX), px(x), height - bottom + 4);
      }
      pen.fillText(this.spec.xlabel, (left + width - right) / 2, height - 14);
      pen.save();
      pen.translate(11, (top + height - bottom) / 2); pen.rotate(-Math.PI / 2);
      pen.textBaseline = "middle"; pen.fillText(this.spec.ylabel, 0, 0);
      pen.restore();

      pen.save();
      pen.beginPath(); pen.rect(left, top, width - left - right, height - top - bottom); pen.clip();
      for (const s of this.series) {
        if (!s.shown) continue;
        const xs = s.x || this.x;
        if (s.low && s.high) {
          pen.fillStyle = s.color; pen.globalAlpha = 0.18; pen.beginPath();
          for (let i = 0; i < xs.length; i++) pen.lineTo(px(xs[i]), py(s.high[i]));
          for (let i = xs.length - 1; i >= 0; i--) pen.lineTo(px(xs[i]), py(s.low[i]));
          pen.fill(); pen.globalAlpha = 1;
        }
        if (!s.y) continue;
        pen.strokeStyle = pen.fillStyle = s.color;
        if (s.points) {
          // A cloud is drawn finely; few points are to be seen one by one.
          const few = xs.length < 600, size = few ? 4.4 : 2.2;
          pen.globalAlpha = few ? 0.75 : 0.5;
          for (let i = 0; i < xs.length; i++)
            pen.fillRect(px(xs[i]) - size / 2, py(s.y[i]) - size / 2, size, size);
          pen.globalAlpha = 1;
        } else {
          pen.lineWidth = s.width || 1.4; pen.lineJoin = "round"; pen.setLineDash(s.dash || []);
          pen.beginPath();
          let broken = true;
          for (let i = 0; i < xs.length; i++) {
            if (!isFinite(s.y[i])) { broken = true; continue; }
            if (broken) pen.moveTo(px(xs[i]), py(s.y[i])); else pen.lineTo(px(xs[i]), py(s.y[i]));
            broken = false;
          }
          pen.stroke(); pen.setLineDash([]);
        }
      }
      pen.restore();

      if (this.drag) {
        pen.fillStyle = ink; pen.globalAlpha = 0.12;
        pen.fillRect(this.drag[0], top, this.drag[1] - this.drag[0], height - top - bottom);
        pen.globalAlpha = 1;
      } else if (this.hover != null && this.hover > left) {
        const x = this.toX(this.hover);
        pen.strokeStyle = ink; pen.globalAlpha = 0.35; pen.beginPath();
        pen.moveTo(this.hover, top); pen.lineTo(this.hover, height - bottom); pen.stroke(); pen.globalAlpha = 1;
        const near = (xs) => {
          let a = 0, b = xs.length - 1;
          while (b - a > 1) { const m = (a + b) >> 1; if (xs[m] > x) b = m; else a = m; }
          return Math.abs(xs[a] - x) < Math.abs(xs[b] - x) ? a : b;
        };
        this.readout.textContent = `${this.spec.xlabel} ${x.toPrecision(4)}` + this.series
          .filter((s) => s.shown && s.y && !s.points && s.name)
          .map((s) => `  ${s.name} ${s.y[near(s.x || this.x)].toPrecision(3)}`).join("");
      }
    }
  }

  const start = () => document.querySelectorAll("figure.chart").forEach((figure) => new Chart(figure));
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start); else start();
})();
