// The live page: every sample of the stream into a history, one drawing per batch.
"use strict";
(() => {
  const settings = JSON.parse(document.getElementById("settings").textContent);
  // The token leaves the address bar and the history; this tab keeps it, for a reload.
  sessionStorage.setItem("taufit-token", settings.token);
  history.replaceState(null, "", location.pathname);
  const byId = (name) => document.getElementById(name);
  const J = settings.joints.length, F = settings.fields.length, WINDOW = 20;
  const at = Object.fromEntries(settings.fields.map((name, k) => [name, k]));

  // Every sample is kept in the history, and in columns of 1/RATE s with the smallest and the largest
  // value of each field and joint, from which longer stretches are drawn.
  const RATE = 50, COARSE_FROM = 8;
  class History {
    constructor(size) {
      this.size = size; this.end = 0; this.time = new Float64Array(2 * size);
      this.values = settings.fields.map(() => Array.from({ length: J }, () => new Float32Array(2 * size)));
    }
    get start() { return Math.max(0, this.end - this.size); }
    clear() { this.end = 0; }
    next(time) {
      if (this.end === 2 * this.size) {
        for (const column of [this.time, ...this.values.flat()]) column.copyWithin(0, this.size, 2 * this.size);
        this.end = this.size;
      }
      this.time[this.end] = time;
      return this.end++;
    }
    // First sample at or after a time.
    from(time) {
      let a = this.start, b = this.end;
      while (a < b) { const m = (a + b) >> 1; if (this.time[m] < time) a = m + 1; else b = m; }
      return Math.max(this.start, a - 2);
    }
    x(first = this.start) { return this.time.subarray(first, this.end); }
    y(k, j, first = this.start) { return this.values[k][j].subarray(first, this.end); }
  }
  const fine = new History(1 << 15), coarse = new History(1 << 13);
  const now = settings.fields.map(() => new Float32Array(J).fill(NaN));
  const count = { received: 0, missing: 0, frames: 0, batches: 0, ended: false, paused: false };
  let column = null, clock = 0, expected = null, state = {}, masses = [], events = 0, dirty = false, heard = 0, rate = 0;
  let lowSlot = 0, highSlot = 0;
  const keep = (rows, from) => {
    const slot = fine.next(clock), number = Math.floor(clock * RATE);
    if (number !== column) {
      if (column !== null && number < column) { coarse.clear(); fine.clear(); return keep(rows, from, (column = null)); }
      column = number;
      lowSlot = coarse.next(number / RATE); highSlot = coarse.next((number + 0.5) / RATE);
      if (highSlot < lowSlot) lowSlot = highSlot - 1;
      for (let k = 0, n = from; k < F; k++) for (let j = 0; j < J; j++, n++) coarse.values[k][j][lowSlot] = coarse.values[k][j][highSlot] = rows[n];
    }
    for (let k = 0, n = from; k < F; k++)
      for (let j = 0; j < J; j++, n++) {
        const value = rows[n], band = coarse.values[k][j];
        fine.values[k][j][slot] = value;
        if (value < band[lowSlot]) band[lowSlot] = value;
        if (value > band[highSlot]) band[highSlot] = value;
      }
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
      keep(rows, row + 1);
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

  // --- drawing: the charts of all pages, fed from the history ---
  const { Panel, Figure, Group, legendOf, toolbarOf, fixed: number, named, readTheme } = taufitCharts;
  const charts = byId("charts"), group = new Group(), unit = (j) => (settings.prismatic[j] ? "N" : "N m");
  const figures = settings.joints.map((name, j) => {
    const element = byId(`figure-${j}`), [upper, lower] = element.querySelectorAll("canvas");
    const torque = new Panel(upper, { ylabel: `torque [${unit(j)}]`, xname: "time [s]", above: true, steady: [NaN, NaN], x: [], series: [
      { name: "95 % interval", colour: "var(--model)", kind: "band", low: [], high: [], loose: true },
      { name: "measured", short: "meas", colour: "var(--measured)", kind: "wide", y: [] },
      { name: "predicted", short: "pred", colour: "var(--model)", kind: "line", y: [] }] });
    const external = new Panel(lower, { ylabel: `ext. [${unit(j)}]`, xname: "time [s]", steady: [NaN, NaN], x: [], series: [
      { name: "", colour: "var(--model)", kind: "band", low: [], high: [], loose: true },
      { name: "external torque, own scale", short: "ext", colour: "var(--residual)", kind: "line", y: [] }] });
    return new Figure(element, group, [torque, external]);
  });
  const edges = (k, half, j, from, first) => {
    const middle = from.y(k, j, first), wide = from.y(half, j, first), size = middle.length;
    const low = new Float32Array(size), high = new Float32Array(size);
    for (let i = 0; i < size; i++) { low[i] = middle[i] - wide[i]; high[i] = middle[i] + wide[i]; }
    return { low, high };
  };
  const feed = () => {
    const [low, high] = group.range, from = high - low > COARSE_FROM ? coarse : fine, first = from.from(low), x = from.x(first);
    figures.forEach(({ visible, panels: [torque, external] }, j) => {
      if (!visible) return;
      torque.x = external.x = x;
      Object.assign(torque.series[0], edges(at.predicted, at.half_width, j, from, first));
      torque.series[1].y = from.y(at.filtered, j, first); torque.series[2].y = from.y(at.predicted, j, first);
      Object.assign(external.series[0], edges(at.external, at.external_half_width, j, from, first));
      external.series[1].y = from.y(at.external, j, first);
      const limit = (state.limit && state.limit[j]) || 0;
      external.levels = limit > 0 ? [-limit, limit].map((y) => ({ y, colour: "var(--bad)" })) : [];
    });
  };
  group.listeners.push(() => { if (count.received) feed(); });
  const tools = document.createElement("div");
  tools.className = "bar";
  tools.append(legendOf(figures), toolbarOf(charts, figures, `Live ${settings.joints.length} joints`));
  charts.prepend(tools);
  const massGroup = new Group(), massFigure = new Figure(byId("mass-figure"), massGroup, [
    new Panel(byId("mass-chart"), { ylabel: "[kg]", xname: "time [s]", x: [], series: [
      { name: "95 % interval", colour: "var(--model)", kind: "band", low: [], high: [], loose: true },
      { name: "mass", colour: "var(--model)", kind: "line", y: [] }] })]);
  const drawMass = () => {
    if (masses.length < 2) return;
    const end = masses[masses.length - 1][0], begin = Math.min(masses[0][0], end - 10), panel = massFigure.panels[0];
    massGroup.full = [begin, end];
    panel.x = Float64Array.from(masses, (m) => m[0]);
    panel.series[0].low = masses.map((m) => m[2]); panel.series[0].high = masses.map((m) => m[3]);
    panel.series[1].y = masses.map((m) => m[1]);
    massFigure.later();
  };
  const pens = new Map();
  const pen = (canvas) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; pens.delete(canvas); }
    if (!pens.has(canvas)) pens.set(canvas, canvas.getContext("2d"));
    const context = pens.get(canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
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
    const { context: p, width, height } = pen(arm), reach = settings.chain.reach, s = (0.5 * Math.min(width, height * 1.25)) / reach;
    const ca = Math.cos(yaw), sa = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch);
    const project = ([x, y, z]) => {
      const a = ca * x - sa * y, b = sa * x + ca * y;
      return [width / 2 + s * a, height * 0.66 - s * (cp * z + sp * b), b * cp - z * sp];
    };
    p.strokeStyle = named("line"); p.lineWidth = 1; p.beginPath();
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
      for (const [ink, size] of [[named("soft"), wide + 2], [named("body"), wide]]) {
        p.strokeStyle = ink; p.lineWidth = size;
        p.beginPath(); p.moveTo(a[0], a[1]); p.lineTo(b[0], b[1]); p.stroke();
      }
    }
    if (state.contact) {
      const tip = P[P.length - 1];
      p.strokeStyle = named("bad"); p.lineWidth = 3; p.beginPath(); p.arc(tip[0], tip[1], 16, 0, 7); p.stroke();
    }
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
      figures[j].noteText = `meas ${taufitCharts.significant(v("filtered"))} pred ${taufitCharts.significant(v("predicted"))} ${unit(j)}`;
      if (group.cursor === null) figures[j].point(null);
    }
    const load = state.payload;
    if (load) {
      const half = (load.interval[1] - load.interval[0]) / 2;
      put(byId("mass"), load.ready ? `${number(load.mass, 2)} ± ${number(half, 2)} kg` : "estimating");
      const centre = load.ready && !load.empty && load.centre ? `centre ${load.centre.map((x) => number(x * 1000, 0)).join(", ")} mm` : "";
      put(byId("centre"), load.ready ? (load.empty ? "nothing is carried" : centre) : `${number(load.mass, 2)} kg so far, not settled`);
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

  const later = () => { if (!dirty && !document.hidden) { dirty = true; requestAnimationFrame(draw); } };
  function draw() {
    dirty = false;
    if (count.paused || document.hidden) return;
    drawArm();
    if (!count.received) return;
    const first = coarse.end ? coarse.time[coarse.start] : clock;
    group.full = [Math.max(clock - WINDOW, Math.min(first, clock - 5)), clock]; group.limits = [Math.min(first, clock - WINDOW), clock];
    feed();
    for (const figure of figures) if (figure.visible) { figure.stale = true; figure.draw(); }
    if (count.batches % 5 === 0 || count.ended) drawMass();
    count.frames++;
  }
  new ResizeObserver(later).observe(arm);
  document.addEventListener("visibilitychange", later);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); later(); });

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
  readTheme();
  later();
  window.taufit = { count, points, settings, group, figures, fine, coarse };
})();
