// Robots in a page: primitive shapes drawn on a canvas from recorded poses; play, pause, scrub, turn and zoom. No library.
"use strict";
(() => {
const rotate = (q, v) => {  // by a quaternion (w, x, y, z)
  const [w, x, y, z] = q, [a, b, c] = v;
  const s = 2 * (y * c - z * b), t = 2 * (z * a - x * c), u = 2 * (x * b - y * a);
  return [a + w * s + y * u - z * t, b + w * t + z * s - x * u, c + w * u + x * t - y * s];
};
const ring = (r, z, n) => [...Array(n)].map((_, i) => [r * Math.cos(2 * Math.PI * i / n), r * Math.sin(2 * Math.PI * i / n), z]);
function lathe(rings) {  // faces between rings of as many points
  const n = rings[0].length, points = rings.flat(), faces = [];
  for (let k = 0; k + 1 < rings.length; k++)
    for (let i = 0; i < n; i++) faces.push([k * n + i, k * n + (i + 1) % n, (k + 1) * n + (i + 1) % n, (k + 1) * n + i]);
  faces.push([...Array(n).keys()].reverse(), [...Array(n).keys()].map((i) => (rings.length - 1) * n + i));
  return { points, faces };
}
const makers = {
  box: ([x, y, z]) => lathe([-z, z].map((h) => [[x, y, h], [-x, y, h], [-x, -y, h], [x, -y, h]])),
  cylinder: ([r, h]) => lathe([-h, h].map((z) => ring(r, z, 12))),
  capsule: ([r, h]) => lathe([-1, -0.7, 0, 0.7, 1].flatMap((s) => {
    const width = r * Math.sqrt(Math.max(1 - s * s, 0.02));
    return s ? [ring(width, Math.sign(s) * h + r * s, 8)] : [ring(r, -h, 8), ring(r, h, 8)];
  })),
  ellipsoid: ([a, b, c]) => lathe([-0.98, -0.7, -0.25, 0.25, 0.7, 0.98].map((s) =>
    ring(Math.sqrt(1 - s * s), s, 10).map(([x, y, z]) => [a * x, b * y, c * z]))),
  mesh: (_, shape) => ({ points: shape.points, faces: shape.faces }),
};
function solid(shape) {
  const { points, faces } = makers[shape.kind](shape.size, shape);
  return { body: shape.body, colour: shape.colour, faces, points: points.map((p) => rotate(shape.quat, p).map((v, i) => v + shape.pos[i])) };
}
const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

function film(place) {
  const data = JSON.parse(place.querySelector("script").textContent), canvas = place.querySelector("canvas");
  const slider = place.querySelector("input[type=range]"), button = place.querySelector("button"), clock = place.querySelector("output");
  const time = floats(data.time), solids = data.shapes.map(solid), bodies = data.bodies;
  const robots = data.robots.map((r) => ({ ...r, poses: floats(r.poses) }));
  const boxes = [...place.querySelectorAll("input[type=checkbox]")];
  let yaw = 0.9, pitch = 0.35, zoom = 1, playing = false, frame = 0, before = 0, now = 0;
  const context = canvas.getContext("2d");
  function draw() {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio; canvas.height = height * ratio;
    context.scale(ratio, ratio);
    const reach = data.radius * 2.7 / zoom, scale = 1.35 * Math.min(width, height);
    const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    const seen = (p) => {  // to the right, up, and away from the eye
      const x = p[0] - data.centre[0], y = p[1] - data.centre[1], z = p[2] - data.centre[2];
      const ahead = -(cy * x + sy * y);
      return [-sy * x + cy * y, cp * z + sp * ahead, reach + cp * ahead - sp * z];
    };
    const shown = ([x, y, d]) => [width / 2 + scale * x / d, height / 2 - scale * y / d];
    const ink = getComputedStyle(place).color, unit = data.radius / 2;
    context.strokeStyle = ink; context.globalAlpha = 0.13;
    for (let k = -6; k <= 6; k++) for (const turn of [0, 1]) {
      const ends = [-6, 6].map((e) => (turn ? [k, e] : [e, k])).map(([x, y]) =>
        seen([data.centre[0] + unit * x, data.centre[1] + unit * y, data.floor]));
      if (ends.some((p) => p[2] < 0.2 * unit)) continue;
      context.beginPath(); ends.forEach((p, i) => context[i ? "lineTo" : "moveTo"](...shown(p))); context.stroke();
    }
    const faces = [];
    robots.forEach((robot, r) => {
      if (!boxes[r].checked) return;
      for (const s of solids) {
        const first = (frame * bodies + s.body) * 7, pose = robot.poses.subarray(first, first + 7);
        const points = s.points.map((p) => seen(rotate(pose.subarray(3), p).map((v, i) => v + pose[i])));
        for (const f of s.faces) {
          const [a, b, c] = [points[f[0]], points[f[1]], points[f[2]]];
          const u = b.map((v, i) => v - a[i]), v = c.map((w, i) => w - a[i]);
          const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
          if (n[0] * a[0] + n[1] * a[1] + n[2] * a[2] < 0 || f.some((i) => points[i][2] < 0.05 * unit)) continue;
          const depth = f.reduce((sum, i) => sum + points[i][2], 0) / f.length, size = Math.hypot(...n) || 1;
          faces.push({ depth: depth - 1e-3 * r, robot, s, light: 0.55 + 0.45 * Math.abs((0.3 * n[0] + 0.8 * n[1] - 0.5 * n[2]) / size),
            corners: f.map((i) => shown(points[i])) });
        }
      }
    });
    faces.sort((a, b) => b.depth - a.depth);
    for (const { robot, s, light, corners } of faces) {
      const colour = (robot.colour || s.colour).map((v) => Math.round(255 * v * light));
      context.globalAlpha = robot.alpha; context.fillStyle = context.strokeStyle = `rgb(${colour})`; context.lineWidth = 0.6;
      context.beginPath(); corners.forEach((p, i) => context[i ? "lineTo" : "moveTo"](...p)); context.closePath();
      context.fill(); context.stroke();
    }
    context.globalAlpha = 1;
    slider.value = frame; clock.textContent = `${(time[frame] - time[0]).toFixed(2)} s`;
  }
  function advance(stamp) {
    if (!playing) return;
    now += (stamp - before) / 1000; before = stamp;
    if (now > time[time.length - 1]) now = time[0];
    frame = time.findIndex((t) => t >= now);
    draw(); requestAnimationFrame(advance);
  }
  button.onclick = () => {
    playing = !playing; button.textContent = playing ? "pause" : "play";
    now = time[frame]; before = performance.now();
    if (playing) requestAnimationFrame(advance);
  };
  slider.max = time.length - 1;
  slider.oninput = () => { frame = +slider.value; now = time[frame]; draw(); };
  boxes.forEach((box) => { box.onchange = draw; });
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); };
  canvas.onpointermove = (event) => {
    if (!event.buttons) return;
    yaw -= 0.01 * event.movementX; pitch = Math.max(-0.2, Math.min(1.5, pitch + 0.01 * event.movementY)); draw();
  };
  canvas.onwheel = (event) => { event.preventDefault(); zoom = Math.max(0.4, Math.min(5, zoom * Math.exp(-0.001 * event.deltaY))); draw(); };
  addEventListener("resize", draw); draw();
}
document.querySelectorAll(".film").forEach(film);
})();
