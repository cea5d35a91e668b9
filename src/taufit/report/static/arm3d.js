// The arm along its motion as a stick figure: drag to turn, slide through time.
"use strict";
(() => {
  const decode = (text) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float32Array(bytes.buffer);
  };
  const start = (figure) => {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const points = decode(spec.points), count = spec.count, frames = spec.frames;
    const canvas = figure.querySelector("canvas"), slider = figure.querySelector("input");
    const play = figure.querySelector("button");
    let yaw = -0.7, pitch = 0.35, from = null, playing = false;
    const at = (f, k) => points.subarray(3 * (f * count + k), 3 * (f * count + k) + 3);
    const draw = () => {
      const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
      if (!width) return;
      canvas.width = width * ratio; canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const style = getComputedStyle(document.documentElement);
      const scale = (0.42 * Math.min(width, height)) / spec.reach;
      const project = ([x, y, z]) => {
        const a = Math.cos(yaw) * x - Math.sin(yaw) * y, b = Math.sin(yaw) * x + Math.cos(yaw) * y;
        return [width / 2 + scale * a, height / 2 - scale * (Math.cos(pitch) * z + Math.sin(pitch) * b)];
      };
      pen.strokeStyle = style.getPropertyValue("--grid"); pen.lineWidth = 1;
      const r = spec.reach;
      for (let i = -4; i <= 4; i++)
        for (const line of [[[i * r / 4, -r, 0], [i * r / 4, r, 0]], [[-r, i * r / 4, 0], [r, i * r / 4, 0]]]) {
          pen.beginPath(); pen.moveTo(...project(line[0])); pen.lineTo(...project(line[1])); pen.stroke();
        }
      pen.strokeStyle = style.getPropertyValue("--accent"); pen.globalAlpha = 0.35; pen.beginPath();
      for (let f = 0; f < frames; f++) pen.lineTo(...project(at(f, count - 1)));
      pen.stroke(); pen.globalAlpha = 1;
      const f = Number(slider.value);
      pen.strokeStyle = style.getPropertyValue("--ink"); pen.lineWidth = 7; pen.lineCap = pen.lineJoin = "round";
      pen.beginPath();
      for (let k = 0; k < count; k++) pen.lineTo(...project(at(f, k)));
      pen.stroke();
      pen.fillStyle = style.getPropertyValue("--accent");
      for (let k = 0; k < count; k++) { pen.beginPath(); pen.arc(...project(at(f, k)), 4, 0, 7); pen.fill(); }
    };
    canvas.addEventListener("pointerdown", (e) => { from = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      if (!from) return;
      yaw += (e.clientX - from[0]) * 0.01; pitch += (e.clientY - from[1]) * 0.01;
      from = [e.clientX, e.clientY]; draw();
    });
    canvas.addEventListener("pointerup", () => { from = null; });
    slider.addEventListener("input", draw);
    const step = () => {
      if (!playing) return;
      slider.value = (Number(slider.value) + 1) % frames; draw();
      setTimeout(step, (1000 * spec.seconds) / frames);
    };
    play.onclick = () => { playing = !playing; play.textContent = playing ? "Pause" : "Play"; step(); };
    new ResizeObserver(draw).observe(canvas);
    draw();
  };
  const all = () => document.querySelectorAll("figure.arm3d").forEach(start);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", all); else all();
})();
