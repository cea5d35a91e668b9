// The live page: every sample of the stream into columns, one drawing per batch on 2-D canvases.
// Lines are one pixel wide: without a GPU, wider ones cost twice the time of everything else.
"use strict";
(() => {
  const settings = JSON.parse(document.getElementById("settings").textContent);
  // The token leaves the address bar and the history; this tab keeps it, for a reload.
  sessionStorage.setItem("taufit-token", settings.token);
  history.replaceState(null, "", location.pathname);
  const byId = (name) => document.getElementById(name);
  const J = settings.joints.length, F = settings.fields.length, WINDOW = 10;
  const at = Object.fromEntries(settings.fields.map((name, k) => [name, k]));

  // Every sample goes into a column of 1/RATE s: smallest and largest value of each field and joint.
  // The last SIZE columns are kept; `column` is the newest one's number.
  const RATE = 25, SIZE = 512, MASK = SIZE - 1, COLUMNS = WINDOW * RATE;
  const slots = () => settings.fields.map(() => Array.from({ length: J }, () => new Float32Array(SIZE)));
  const lows = slots(), highs = slots();
  const now = settings.fields.map(() => new Float32Array(J).fill(NaN));
  const count = { received: 0, missing: 0, frames: 0, batches: 0, ended: false, paused: false };
  let column = null, clock = 0, expected = null, state = {}, masses = [], events = 0, dirty = false, heard = 0, rate = 0;
  const clear = (slot) => {
    for (let k = 0; k < F; k++)
      for (let j = 0; j < J; j++) { lows[k][j][slot] = Infinity; highs[k][j][slot] = -Infinity; }
  };
  const advance = (next) => {
    const from = column === null || next < column || next - column >= SIZE ? next - SIZE : column;
    for (let c = from + 1; c <= next; c++) clear(c & MASK);
    column = next;
  };

  // --- the stream ---
  const take = (text) => {
    const batch = JSON.parse(text);
    const raw = atob(batch.rows), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const rows = new Float32Array(bytes.buffer), width = 1 + F * J;
    if (expected !== null && batch.first > expected) count.missing += batch.first - expected;
    expected = batch.first + batch.count;
    for (let i = 0; i < batch.count; i++) {
      const row = i * width;
      clock = batch.time + rows[row];
      const next = Math.floor(clock * RATE);
      if (next !== column) advance(next);
      const slot = next & MASK;
      for (let k = 0, n = row + 1; k < F; k++)
        for (let j = 0; j < J; j++, n++) {
          const value = rows[n];
          if (value < lows[k][j][slot]) lows[k][j][slot] = value;
          if (value > highs[k][j][slot]) highs[k][j][slot] = value;
        }
    }
    const last = (batch.count - 1) * width + 1;
    for (let k = 0; k < F; k++) for (let j = 0; j < J; j++) now[k][j] = rows[last + k * J + j];
    count.received += batch.count;
    count.batches++;
    heard = performance.now();
    state = batch;
    if (batch.payload) remember(batch);
    for (const event of batch.events) show(event);
    later();
  };
  const came = (account) => {
    const left = Object.entries(account.left_out).filter(([, n]) => n);
    const total = left.reduce((sum, [, n]) => sum + n, 0);
    const why = total ? ` (${left.map(([reason, n]) => `${reason} ${n}`).join(", ")})` : "";
    return `${account.samples} samples came: ${account.readings} readings, ${account.settling} before the first, ` +
      `${account.waiting} waiting, ${total} left out${why}.`;
  };
  const remember = (batch) => {
    const last = masses[masses.length - 1];
    if (last && batch.time < last[0]) masses = [];
    if (last && batch.time - last[0] < 0.2) return;
    masses.push([batch.time, batch.payload.mass, batch.payload.interval[0], batch.payload.interval[1], batch.payload.ready]);
    while (masses.length && masses[0][0] < batch.time - 120) masses.shift();
  };
  const show = (event) => {
    const item = document.createElement("li"), list = byId("events");
    item.textContent = `${event.t.toFixed(1)} s  ${event.text || event.kind}`;
    list.prepend(item);
    if (++events > 60) list.lastChild.remove();
  };
  const say = (text, kind) => {
    const line = byId("state");
    if (line.textContent !== text) line.textContent = text;
    if (line.className !== kind) line.className = kind;
  };
  const source = new EventSource(`stream?token=${encodeURIComponent(settings.token)}`);
  source.onmessage = (message) => take(message.data);
  source.addEventListener("end", () => { count.ended = true; source.close(); later(); });
  source.onerror = () => { if (!count.ended) say("no connection to taufit", "bad"); };

  // --- drawing ---
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let colour = {};
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "grid", "paper", "card", "raw", "filtered", "model", "external", "limit", "arm", "rim", "shine", "good"])
      colour[name] = style.getPropertyValue(`--${name}`).trim();
    later();
  };
  const pens = new Map();
  const pen = (canvas) => {
    const ratio = window.devicePixelRatio || 1;
    let known = pens.get(canvas);
    if (!known || known.ratio !== ratio || known.stale) {
      const width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.font = "11px system-ui, sans-serif";
      known = { context, width, height, ratio, stale: false };
      pens.set(canvas, known);
    }
    known.context.clearRect(0, 0, known.width, known.height);
    return known;
  };
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) { const known = pens.get(target); if (known) known.stale = true; }
    later();
  });
  const number = (value, digits) => {
    if (!Number.isFinite(value)) return "–";
    return (Math.abs(value) < 0.5 * Math.pow(10, -digits) ? 0 : value).toFixed(digits);
  };

  const ranges = Array.from({ length: J }, () => [[-1, 1], [-1, 1]]);
  // A range grows at once and shrinks slowly, so that the picture stands still.
  const settle = (range, low, high) => {
    if (!(low <= high)) return range;
    const pad = 0.08 * (high - low) || 0.5;
    low -= pad; high += pad;
    range[0] = low < range[0] ? low : range[0] + 0.04 * (low - range[0]);
    range[1] = high > range[1] ? high : range[1] + 0.04 * (high - range[1]);
    return range;
  };
  const extremes = (fields, j) => {
    let low = Infinity, high = -Infinity;
    for (const k of fields)
      for (let c = column - COLUMNS + 1; c <= column; c++) {
        if (lows[k][j][c & MASK] < low) low = lows[k][j][c & MASK];
        if (highs[k][j][c & MASK] > high) high = highs[k][j][c & MASK];
      }
    return [low, high];
  };
  const niceStep = (span) => {
    const power = Math.pow(10, Math.floor(Math.log10(span / 3)));
    for (const factor of [1, 2, 5, 10]) if (power * factor >= span / 3) return power * factor;
    return 10 * power;
  };
  const axis = (p, range, top, bottom, width) => {
    const step = niceStep(range[1] - range[0]), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    p.strokeStyle = colour.grid; p.fillStyle = colour.soft; p.lineWidth = 1; p.textAlign = "right"; p.textBaseline = "middle";
    p.beginPath();
    for (let y = Math.ceil(range[0] / step) * step; y <= range[1]; y += step) {
      const py = Math.round(bottom - ((y - range[0]) / (range[1] - range[0])) * (bottom - top)) + 0.5;
      p.moveTo(38, py); p.lineTo(width, py);
      p.fillText(Math.abs(y) < step / 2 ? "0" : y.toFixed(digits), 34, py);
    }
    p.stroke();
  };

  const charts = settings.joints.map((_, j) => byId(`joint-${j}`));
  const visible = new Set(charts);
  const drawJoint = (j) => {
    const { context: p, width, height } = pen(charts[j]), left = 40, split = Math.round(height * 0.66);
    const main = settle(ranges[j][0], ...extremes([at.torque, at.filtered, at.predicted], j));
    const limit = (state.limit && state.limit[j]) || 0;
    const [low, high] = extremes([at.external], j);
    const outer = settle(ranges[j][1], Math.min(low, -1.15 * limit), Math.max(high, 1.15 * limit));
    axis(p, main, 4, split - 6, width); axis(p, outer, split + 4, height - 3, width);
    const upper = (v) => split - 6 - ((v - main[0]) / (main[1] - main[0])) * (split - 10);
    const lower = (v) => height - 3 - ((v - outer[0]) / (outer[1] - outer[0])) * (height - split - 7);
    const step = (width - left) / COLUMNS, x = (c) => width - (column - c) * step;
    band(p, at.torque, null, j, x, upper, colour.raw, 0.4);
    band(p, at.predicted, at.half_width, j, x, upper, colour.model, 0.22);
    line(p, at.filtered, j, x, upper, colour.filtered);
    line(p, at.predicted, j, x, upper, colour.model);
    band(p, at.external, at.external_half_width, j, x, lower, colour.external, 0.18);
    line(p, at.external, j, x, lower, colour.external);
    if (limit > 0) {
      p.strokeStyle = colour.limit; p.lineWidth = 1; p.setLineDash([4, 4]); p.beginPath();
      for (const side of [-limit, limit]) { p.moveTo(left, lower(side)); p.lineTo(width, lower(side)); }
      p.stroke(); p.setLineDash([]);
    }
  };
  const line = (p, k, j, x, y, stroke) => {
    p.strokeStyle = stroke; p.lineWidth = 1; p.lineJoin = "bevel"; p.beginPath();
    const low = lows[k][j], high = highs[k][j];
    let last = NaN;
    for (let c = column - COLUMNS + 1; c <= column; c++) {
      if (low[c & MASK] > high[c & MASK]) continue;
      const a = y(low[c & MASK]), b = y(high[c & MASK]), px = x(c);
      if (a - b < 1.5) { p.lineTo(px, (last = (a + b) / 2)); continue; }
      const upwards = !(Math.abs(last - b) < Math.abs(last - a));
      p.lineTo(px, upwards ? a : b); p.lineTo(px, (last = upwards ? b : a));
    }
    p.stroke();
  };
  // From the smallest to the largest value, widened by the interval's half width where there is one.
  const band = (p, k, half, j, x, y, fill, alpha) => {
    const low = lows[k][j], high = highs[k][j], back = [];
    p.fillStyle = fill; p.globalAlpha = alpha; p.beginPath();
    for (let c = column - COLUMNS + 1; c <= column; c++) {
      const slot = c & MASK, wide = half === null ? 0 : highs[half][j][slot];
      if (low[slot] > high[slot] || !(wide >= 0)) continue;
      p.lineTo(x(c), y(high[slot] + wide)); back.push(x(c), y(low[slot] - wide) + 1);
    }
    for (let i = back.length - 2; i >= 0; i -= 2) p.lineTo(back[i], back[i + 1]);
    p.fill(); p.globalAlpha = 1;
  };

  // --- the arm: poses M exp([S] q), seen from the side ---
  const times4 = (a, b) => {
    const c = new Array(16).fill(0);
    for (let i = 0; i < 4; i++)
      for (let k = 0; k < 4; k++) for (let j = 0; j < 4; j++) c[4 * i + j] += a[4 * i + k] * b[4 * k + j];
    return c;
  };
  const moved = (s, q) => {
    const [x, y, z, u, v, w] = s, sq = Math.sin(q), cq = 1 - Math.cos(q);
    if (!(x || y || z)) return [1, 0, 0, u * q, 0, 1, 0, v * q, 0, 0, 1, w * q, 0, 0, 0, 1];
    const W = [0, -z, y, z, 0, -x, -y, x, 0], V = new Array(9).fill(0);
    for (let i = 0; i < 3; i++) for (let k = 0; k < 3; k++) for (let j = 0; j < 3; j++) V[3 * i + j] += W[3 * i + k] * W[3 * k + j];
    const one = (i) => (i % 4 === 0 ? 1 : 0);
    const R = V.map((_, i) => one(i) + sq * W[i] + cq * V[i]), G = V.map((_, i) => q * one(i) + cq * W[i] + (q - sq) * V[i]);
    const p = [0, 1, 2].map((i) => G[3 * i] * u + G[3 * i + 1] * v + G[3 * i + 2] * w);
    return [R[0], R[1], R[2], p[0], R[3], R[4], R[5], p[1], R[6], R[7], R[8], p[2], 0, 0, 0, 1];
  };
  const points = (q) => {
    const { placements, screws, tip, base: b } = settings.chain, out = [[0, 0, 0]];
    let pose = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
    for (let j = 0; j < J; j++) {
      pose = times4(times4(pose, placements[j]), moved(screws[j], q[j]));
      out.push([pose[3], pose[7], pose[11]]);
    }
    pose = times4(pose, tip);
    out.push([pose[3], pose[7], pose[11]]);
    return out.map(([x, y, z]) => [b[0] * x + b[1] * y + b[2] * z, b[3] * x + b[4] * y + b[5] * z, b[6] * x + b[7] * y + b[8] * z]);
  };
  const arm = byId("arm");
  let yaw = -0.7, pitch = 0.35, grip = null;
  const turn = (a, b) => { yaw += a; pitch = Math.max(-1.4, Math.min(1.4, pitch + b)); later(); };
  arm.addEventListener("pointerdown", (e) => { grip = [e.clientX, e.clientY]; arm.setPointerCapture(e.pointerId); });
  arm.addEventListener("pointermove", (e) => {
    if (!grip) return;
    turn((e.clientX - grip[0]) * 0.01, (e.clientY - grip[1]) * 0.01);
    grip = [e.clientX, e.clientY];
  });
  arm.addEventListener("pointerup", () => { grip = null; });
  arm.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[e.key];
    if (step) { e.preventDefault(); turn(...step); }
  });
  const drawArm = () => {
    const { context: p, width, height } = pen(arm), reach = settings.chain.reach, s = (0.62 * Math.min(width, height * 1.25)) / reach;
    const ca = Math.cos(yaw), sa = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch);
    const project = ([x, y, z]) => {
      const a = ca * x - sa * y, b = sa * x + ca * y;
      return [width / 2 + s * a, height * 0.66 - s * (cp * z + sp * b), b * cp - z * sp];
    };
    p.strokeStyle = colour.grid; p.lineWidth = 1; p.beginPath();
    const r = 0.75 * reach;
    for (let i = -3; i <= 3; i++)
      for (const [a, b] of [[[i * r / 3, -r, 0], [i * r / 3, r, 0]], [[-r, i * r / 3, 0], [r, i * r / 3, 0]]]) {
        const m = project(a), n = project(b);
        p.moveTo(m[0], m[1]); p.lineTo(n[0], n[1]);
      }
    p.stroke();
    const q = now[at.position];
    if (!q.every(Number.isFinite)) return;
    const P = points(q).map(project), pieces = [];
    for (let i = 1; i < P.length; i++)
      if (Math.hypot(P[i][0] - P[i - 1][0], P[i][1] - P[i - 1][1]) > 0.5) pieces.push([P[i - 1], P[i], i]);
    pieces.sort((a, b) => b[0][2] + b[1][2] - a[0][2] - a[1][2]);
    p.lineCap = "round";
    for (const [a, b, i] of pieces) {
      const wide = Math.max(7, 24 - (14 * i) / P.length);
      for (const [ink, size] of [[colour.rim, wide + 3], [colour.arm, wide], [colour.shine, wide * 0.28]]) {
        p.strokeStyle = ink; p.lineWidth = size;
        p.beginPath(); p.moveTo(a[0], a[1]); p.lineTo(b[0], b[1]); p.stroke();
      }
    }
    if (state.contact) {
      const tip = P[P.length - 1];
      p.strokeStyle = colour.limit; p.lineWidth = 3; p.beginPath(); p.arc(tip[0], tip[1], 16, 0, 7); p.stroke();
    }
  };

  // --- payload ---
  const massChart = byId("mass-chart");
  const drawMass = () => {
    const { context: p, width, height } = pen(massChart);
    if (masses.length < 2) return;
    const end = masses[masses.length - 1][0], begin = Math.min(masses[0][0], end - 10);
    const settled = masses.filter((m) => m[4]), used = settled.length > 1 ? settled : masses;
    let low = Math.min(...used.map((m) => m[2])), high = Math.max(...used.map((m) => m[3]));
    const pad = Math.max(0.1 * (high - low), 0.02);
    low -= pad; high += pad;
    const x = (t) => 40 + ((t - begin) / (end - begin)) * (width - 42), y = (m) => height - 4 - ((m - low) / (high - low)) * (height - 10);
    axis(p, [low, high], 6, height - 4, width);
    p.save(); p.beginPath(); p.rect(40, 0, width - 40, height); p.clip();
    p.fillStyle = colour.model; p.globalAlpha = 0.22; p.beginPath();
    for (const m of masses) p.lineTo(x(m[0]), y(m[3]));
    for (let i = masses.length - 1; i >= 0; i--) p.lineTo(x(masses[i][0]), y(masses[i][2]));
    p.fill(); p.globalAlpha = 1;
    p.strokeStyle = colour.model; p.lineWidth = 1.5; p.beginPath();
    for (const m of masses) p.lineTo(x(m[0]), y(m[1]));
    p.stroke(); p.restore();
  };

  // --- words and numbers, a few times a second ---
  const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const cells = [...byId("table").rows].map((row) => [...row.cells].slice(1));
  const words = () => {
    for (let j = 0; j < J; j++) {
      const v = (name) => now[at[name]][j], c = cells[j];
      const q = v("position");
      put(c[0], settings.prismatic[j] ? `${number(q * 1000, 1)} mm` : `${number(q * 57.29578, 1)}°`);
      put(c[1], number(v("filtered"), 2)); put(c[2], number(v("predicted"), 2)); put(c[3], number(v("external"), 2));
      put(c[4], state.temperature ? number(state.temperature[j], 1) : "–");
      put(c[5], state.friction_index ? number(state.friction_index[j] ?? NaN, 2) : "–");
      put(byId(`now-${j}`), `${number(v("filtered"), 1)} / ${number(v("predicted"), 1)} N m`);
    }
    const load = state.payload;
    if (load) {
      const half = (load.interval[1] - load.interval[0]) / 2;
      put(byId("mass"), load.ready ? `${load.mass.toFixed(2)} ± ${half.toFixed(2)} kg` : "estimating");
      const centre = load.ready && !load.empty && load.centre ? `centre ${load.centre.map((x) => number(x * 1000, 0)).join(", ")} mm` : "";
      put(byId("centre"), load.ready ? (load.empty ? "nothing is carried" : centre) : `${load.mass.toFixed(2)} kg so far, not settled`);
    }
    const touch = state.contact, shown = byId("contact");
    put(shown, touch ? (touch.kind === "contact" ? "Contact" : "Pick or contact") : "None");
    shown.className = touch ? "bad" : "";
    put(byId("contact-detail"), touch ? `${touch.link}, since ${touch.since.toFixed(1)} s` : "");
    put(byId("counts"), `${came(state.account)} This page: ${count.received} readings received, ${count.missing} missing.`);
    const tape = state.recording, button = byId("record");
    if (tape && button) {
      button.setAttribute("aria-pressed", String(tape.on));
      put(button, tape.on ? `Stop (${tape.seconds.toFixed(0)} s)` : "Record");
      if (tape.problem) put(byId("about"), tape.problem);
      else if (!tape.on && tape.written.length) put(byId("about"), `recorded: ${tape.written.join(", ")}`);
    }
    status();
  };
  const status = () => {
    const end = clock;
    if (count.ended) say(`ended at ${end.toFixed(1)} s`, "bad");
    else if (performance.now() - heard > 2000) say(count.received ? "no samples are coming" : "waiting for samples", "bad");
    else say(`${end.toFixed(1)} s, ${rate.toFixed(0)} samples/s`, "good");
  };
  let lastCount = 0, lastClock = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (now - lastClock > 1900) {
      const fresh = (1000 * (count.received - lastCount)) / (now - lastClock);
      rate = fresh; lastCount = count.received; lastClock = now;
    }
    if (count.received) words(); else status();
  }, 250);

  const later = () => { if (!dirty) { dirty = true; requestAnimationFrame(draw); } };
  function draw() {
    dirty = false;
    if (count.paused) return;
    drawArm();
    if (!count.received) return;
    for (let j = 0; j < J; j++) if (visible.has(charts[j])) drawJoint(j);
    if (count.batches % 5 === 0 || count.ended) drawMass();
    count.frames++;
  }
  // A chart nobody sees is not drawn.
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) visible.add(entry.target); else visible.delete(entry.target);
    later();
  });
  for (const canvas of charts) seen.observe(canvas);
  for (const canvas of [...charts, arm, massChart]) resized.observe(canvas);
  dark.addEventListener("change", colours);

  // --- buttons and keys ---
  const pause = byId("pause"), record = byId("record");
  pause.onclick = () => {
    count.paused = !count.paused;
    pause.setAttribute("aria-pressed", String(count.paused));
    pause.textContent = count.paused ? "Go on" : "Pause";
    later();
  };
  if (record) record.onclick = async () => {
    record.disabled = true;
    try {
      const on = record.getAttribute("aria-pressed") !== "true";
      const answer = await fetch("record", { method: "POST", headers: { "X-Taufit-Token": settings.token, "Content-Type": "application/json" }, body: JSON.stringify({ on }) });
      if (!answer.ok) put(byId("about"), (await answer.text()).trim());
      else state.recording = await answer.json();
      words();
    } catch { put(byId("about"), "no connection to taufit"); }
    record.disabled = false;
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || ["BUTTON", "INPUT", "SELECT"].includes(e.target.tagName)) return;
    if (e.key === " ") { e.preventDefault(); pause.click(); }
    if ((e.key === "r" || e.key === "R") && record) record.click();
  });
  colours();
  window.taufit = { count, points, settings };
})();
