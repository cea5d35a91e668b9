// The column mapper: shows what the server knows, sends what the owner says, one request at a time.
"use strict";
(() => {
  const settings = JSON.parse(document.getElementById("settings").textContent);
  // The token leaves the address bar and the history; this tab keeps it, for a reload.
  sessionStorage.setItem("taufit-token", settings.token);
  history.replaceState(null, "", location.pathname);
  const byId = (name) => document.getElementById(name);
  const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text ?? "" }, more);
  const words = (name) => name.replace(/_/g, " ") || "not used";
  const number = (x) => (x === null ? "–" : taufitCharts.significant(x, 4));
  let state = null, choices = 0;

  const ask = async (path, body) => {
    const headers = { "X-Taufit-Token": settings.token };
    const how = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, how);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  };
  let queue = Promise.resolve();
  const tell = (path, body) => {
    document.body.setAttribute("aria-busy", "true");
    queue = queue.then(async () => {
      try { state = await ask(path, body); show(); put(byId("problem"), state.problem); return state; }
      catch (error) {
        put(byId("problem"), error.message || "no connection to taufit");
        if (path === "map") byId("save").disabled = byId("fit").disabled = true;
      }
      finally { document.body.setAttribute("aria-busy", "false"); }
    });
    return queue;
  };

  // --- the robot ---
  const robot = byId("robot"), drop = byId("drop"), file = byId("file");
  for (const name of settings.robots) robot.append(make("option", name, { value: name }));
  robot.onchange = () => { if (robot.value) { choices++; tell("robot", { name: robot.value }); } };
  const take = async (given) => { if (given) { choices++; robot.value = ""; tell("robot", { name: given.name, text: await given.text() }); } };
  file.onchange = () => take(file.files[0]);
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (e) => { e.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (e) => { e.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (e) => take(e.dataTransfer.files[0]));

  // --- the columns ---
  const body = document.querySelector("#columns tbody");
  const spark = (canvas, line) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    let low = Math.min(...line), high = Math.max(...line);
    if (!(high > low)) { low -= 1; high += 1; }
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--model");
    pen.lineWidth = 1; pen.beginPath();
    line.forEach((value, i) => pen.lineTo((i / Math.max(1, line.length - 1)) * width, 2 + (1 - (value - low) / (high - low)) * (height - 4)));
    pen.stroke();
  };
  document.getElementById("columns").hidden = !settings.columns.length;
  const rows = settings.columns.map((column, i) => {
    const row = make("tr"), canvas = make("canvas"), role = make("select"), joint = make("select");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `column ${column.label} from ${number(column.low)} to ${number(column.high)}`);
    for (const name of settings.roles) role.append(make("option", words(name), { value: name }));
    role.setAttribute("aria-label", `what column ${column.label} is`);
    joint.setAttribute("aria-label", `joint of column ${column.label}`);
    const cells = [make("td", column.label, { className: "text" }), make("td", "", { className: "text" }), make("td", number(column.low)), make("td", number(column.high)), make("td", "", { className: "text" }), make("td", "", { className: "text" })];
    cells[1].append(canvas); cells[4].append(role); cells[5].append(joint);
    row.append(...cells); body.append(row);
    role.onchange = () => { choices++; fill(joint, role.value, nextJoint(role.value, i)); said(); };
    joint.onchange = () => { choices++; said(); };
    return { row, role, joint, canvas, column };
  });
  const nextJoint = (name, but) => 1 + rows.filter((r, i) => i !== but && r.role.value === name).length;
  const fill = (select, name, chosen) => {
    const single = !name || settings.single.includes(name);
    select.classList.toggle("hidden", single);
    const most = Math.max(chosen, state?.read?.joints ?? 0, state?.robot_joints ?? 0, 7) + 1;
    select.replaceChildren(...Array.from({ length: most }, (_, k) => make("option", String(k + 1), { value: String(k + 1) })));
    select.value = String(Math.max(1, chosen));
  };
  const units = {};
  const said = () => {
    const roles = {};
    rows.forEach((r, i) => { if (r.role.value) roles[i] = [r.role.value, settings.single.includes(r.role.value) ? 0 : Number(r.joint.value)]; });
    const used = new Set(Object.values(roles).map((x) => x[0]));
    tell("map", { roles, units: Object.fromEntries(Object.entries(units).filter(([name]) => used.has(name))) });
  };

  // --- what the server says ---
  const show = () => {
    const check = byId("check"), found = state.check;
    // A robot given with --robot or dropped: its entry, or its name in place of "choose".
    if (state.robot && !choices && settings.robots.includes(state.robot)) robot.value = state.robot;
    put(robot.options[0], robot.value || !state.robot ? "choose" : state.robot);
    put(check, !state.robot ? "No robot is chosen yet." : found ? `${{ yes: "Yes", no: "No", open: "Cannot tell" }[found.verdict]}: ${found.text}` : `${state.robot}, ${state.robot_joints} joints.`);
    check.className = found ? { yes: "good", no: "bad", open: "warn" }[found.verdict] : "";
    byId("joints").replaceChildren(...(found ? found.joints : []).filter((j) => j.slope !== null).map((j) => {
      const line = make("div"), bar = make("i"), inner = make("i");
      line.className = j.explained > 0.5 && j.slope > 0 ? "good" : "bad";
      inner.style.width = `${Math.round(100 * j.explained)}%`;
      bar.append(inner);
      line.append(make("span", `joint ${j.joint}`), bar, make("span", `${Math.round(100 * j.explained)} %, slope ${number(j.slope)}`));
      return line;
    }));
    rows.forEach((r, i) => {
      const [name, joint] = state.roles[i] || ["", 0];
      r.role.value = name; fill(r.joint, name, joint);
      r.row.classList.toggle("used", Boolean(name));
    });
    for (const name of Object.keys(units)) delete units[name];
    Object.assign(units, state.units);
    byId("quantities").replaceChildren(...Object.entries(state.units).filter(([name]) => settings.units[name] && settings.units[name].length > 1).map(([name, unit]) => {
      const label = make("label", words(name), { className: "unit" }), select = make("select");
      for (const other of settings.units[name]) select.append(make("option", other, { value: other }));
      select.value = unit;
      select.onchange = () => { choices++; units[name] = select.value; said(); };
      label.append(select);
      return label;
    }));
    byId("rate-label").classList.toggle("hidden", !state.needs_rate);
    if (state.rate_hz !== null) byId("rate").value = state.rate_hz;
    const read = state.read;
    put(byId("read"), read ? `The map works: ${read.runs === 1 ? "one run" : `${read.runs} runs`}, ${read.samples} samples, ${read.joints} joints, ${read.unit === "A" ? "current in A" : read.unit === "N m" ? "torque in N m" : "a signal without a unit"}.` : "");
    byId("read").className = read ? "good" : "";
    const listed = [...state.reasons, ...state.open.map((text) => `check: ${text}`), ...(read ? read.findings.map((text) => `warning: ${text}`) : [])];
    byId("reasons").replaceChildren(...listed.map((text) => make("li", text)));
    byId("why").classList.toggle("hidden", !listed.length);
    put(byId("map"), state.map);
    byId("save").disabled = !(read && state.map);
    byId("fit").disabled = !(read && state.robot) || state.fit.state === "running";
    if (state.saved) put(byId("saved"), `Written: ${state.saved}`);
    fitted();
  };
  let polling = null;
  const fitted = () => {
    const fit = state.fit, running = fit.state === "running";
    byId("progress").classList.toggle("hidden", !running);
    put(byId("fitted"), { idle: "", running: `fitting, ${fit.seconds.toFixed(0)} s, ${fit.steps} steps`, done: `${fit.text} Written: ${fit.model}.`, failed: fit.text }[fit.state]);
    byId("fitted").className = fit.state === "failed" ? "bad" : "";
    const report = byId("report");
    report.classList.toggle("hidden", !fit.report);
    if (fit.report) report.href = `report?token=${encodeURIComponent(settings.token)}`;
    if (running && !polling) polling = setInterval(() => tell("state"), 700);
    if (!running && polling) { clearInterval(polling); polling = null; }
  };
  byId("rate").onchange = () => { choices++; tell("rate", { rate_hz: Number(byId("rate").value) }); };
  byId("save").onclick = () => tell("save", {});
  byId("fit").onclick = () => tell("fit", {});
  const draw = () => rows.forEach((r) => r.column.spark.length && spark(r.canvas, r.column.spark));
  new ResizeObserver(draw).observe(byId("columns"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  tell("state");
  window.taufit = { get state() { return state; }, get choices() { return choices; } };
})();
